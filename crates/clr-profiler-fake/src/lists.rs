//! Enumerators that the fake runtime hands out: of threads, modules and objects.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use clr_profiler::HResult;
use clr_profiler_sys::enumerators::{
    ICorProfilerModuleEnum, ICorProfilerModuleEnum_Impl, ICorProfilerObjectEnum, ICorProfilerObjectEnum_Impl,
    ICorProfilerThreadEnum, ICorProfilerThreadEnum_Impl,
};
use windows_core::{HRESULT, Interface, implement};

use super::answer::{S_FALSE, S_OK, put};

/// Enumerator of identifiers.
#[implement(ICorProfilerModuleEnum, ICorProfilerObjectEnum, ICorProfilerThreadEnum)]
struct List {
    ids: Vec<usize>,
    next: AtomicUsize,
}

/// Returns an enumerator of `ids` with the interface `I` through `out`.
///
/// # Safety
/// `out` must be null or valid for a write.
pub(super) unsafe fn hand_out<I: Interface + From<ListObject>>(ids: Vec<usize>, out: *mut *mut c_void) -> HRESULT {
    let list = I::from(ListObject(ids));
    // SAFETY: the caller's promise.
    unsafe { put(out, list.into_raw()) };
    S_OK
}

/// The identifiers to enumerate.
pub(super) struct ListObject(Vec<usize>);

macro_rules! enumerators {
    ($($interface:ident, $methods:ident;)*) => {$(
        impl From<ListObject> for $interface {
            fn from(list: ListObject) -> Self {
                List { ids: list.0, next: AtomicUsize::new(0) }.into()
            }
        }

        impl $methods for List_Impl {
            unsafe fn Skip(&self, count: u32) -> HRESULT {
                self.next.fetch_add(count as usize, Ordering::Relaxed);
                S_OK
            }

            unsafe fn Reset(&self) -> HRESULT {
                self.next.store(0, Ordering::Relaxed);
                S_OK
            }

            unsafe fn Clone(&self, _out: *mut *mut c_void) -> HRESULT {
                HRESULT(HResult::NOT_IMPLEMENTED.0)
            }

            unsafe fn GetCount(&self, count: *mut u32) -> HRESULT {
                // SAFETY: the caller's pointer.
                unsafe { put(count, self.ids.len() as u32) };
                S_OK
            }

            unsafe fn Next(&self, capacity: u32, ids: *mut usize, fetched: *mut u32) -> HRESULT {
                let begin = self.next.load(Ordering::Relaxed).min(self.ids.len());
                let some = &self.ids[begin..(begin + capacity as usize).min(self.ids.len())];
                self.next.store(begin + some.len(), Ordering::Relaxed);
                // SAFETY: the caller's pointers, with room for as many as said.
                unsafe {
                    std::ptr::copy_nonoverlapping(some.as_ptr(), ids, some.len());
                    put(fetched, some.len() as u32);
                }
                if some.len() < capacity as usize { S_FALSE } else { S_OK }
            }
        }
    )*};
}

enumerators! {
    ICorProfilerModuleEnum, ICorProfilerModuleEnum_Impl;
    ICorProfilerObjectEnum, ICorProfilerObjectEnum_Impl;
    ICorProfilerThreadEnum, ICorProfilerThreadEnum_Impl;
}
