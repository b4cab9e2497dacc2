//! The runtime's side of loading a profiler: an object that supports interface levels only up to a
//! limit, and the use of the class factory.

use std::ffi::c_void;

use clr_profiler::__export::Loader;
use clr_profiler::{Error, HResult, Result};
use clr_profiler_sys::callback::*;
use clr_profiler_sys::class_factory::IClassFactory;
use clr_profiler_sys::info::*;
use windows_core::{GUID, HRESULT, IUnknown, IUnknown_Vtbl, Interface};

use super::answer::S_OK;
use super::info_v1_to_v2::Info;
use super::world::Shared;

/// The levels above 3, oldest first.
const LEVELS: [(u8, GUID); 12] = [
    (4, ICorProfilerInfo4::IID),
    (5, ICorProfilerInfo5::IID),
    (6, ICorProfilerInfo6::IID),
    (7, ICorProfilerInfo7::IID),
    (8, ICorProfilerInfo8::IID),
    (9, ICorProfilerInfo9::IID),
    (10, ICorProfilerInfo10::IID),
    (11, ICorProfilerInfo11::IID),
    (12, ICorProfilerInfo12::IID),
    (13, ICorProfilerInfo13::IID),
    (14, ICorProfilerInfo14::IID),
    (15, ICorProfilerInfo15::IID),
];

/// The argument of `Initialize`. It returns the information interface, but no level above the
/// runtime's. Its function table is written by hand, because a generated COM object would answer to
/// all levels of its table. The object lives as long as the process, as in the runtime.
#[repr(C)]
pub(super) struct Door {
    table: &'static IUnknown_Vtbl,
    info: ICorProfilerInfo15,
    level: u8,
}

static TABLE: IUnknown_Vtbl = IUnknown_Vtbl { QueryInterface: query, AddRef: count, Release: count };

impl Door {
    pub(super) fn open(world: &Shared) -> *mut c_void {
        let level = world.lock().level;
        let info: ICorProfilerInfo15 = Info { world: world.clone() }.into();
        Box::into_raw(Box::new(Self { table: &TABLE, info, level })).cast()
    }
}

/// Converts the profiler's answer to a result.
pub(super) fn check(hresult: HRESULT, method: &'static str) -> Result<()> {
    if hresult.0 >= 0 { Ok(()) } else { Err(Error::new(HResult(hresult.0), method)) }
}

unsafe extern "system" fn query(this: *mut c_void, iid: *const GUID, out: *mut *mut c_void) -> HRESULT {
    // SAFETY: `this` is a door, which is never freed, and the pointers are the caller's.
    unsafe {
        let door = &*this.cast::<Door>();
        if LEVELS.iter().any(|(level, known)| *level > door.level && *known == *iid) {
            *out = std::ptr::null_mut();
            return HRESULT(HResult::NO_INTERFACE.0);
        }
        door.info.query(iid, out)
    }
}

/// The door is never freed, so references are not counted.
unsafe extern "system" fn count(_this: *mut c_void) -> u32 {
    1
}

/// The callback object of a profiler, created as the runtime creates it. It lives as long as the
/// process.
#[derive(Clone)]
pub(super) struct Callback(ICorProfilerCallback11);

// SAFETY: the runtime calls the object from all its threads.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Callback {
    /// Creates the object through the class factory. Queries interfaces in the runtime's order.
    pub(super) fn fetch(loader: Loader) -> Result<Self> {
        let factory: IClassFactory = clr_profiler::testing::factory(loader);
        let mut object = std::ptr::null_mut();
        // SAFETY: valid pointers.
        let made = unsafe { factory.CreateInstance(std::ptr::null_mut(), &ICorProfilerCallback2::IID, &mut object) };
        check(made, "CreateInstance")?;
        // SAFETY: an owned reference of the interface asked for.
        let object = unsafe { IUnknown::from_raw(object) };
        for iid in [ICorProfilerCallback2::IID, ICorProfilerCallback3::IID, ICorProfilerCallback8::IID] {
            let mut level = std::ptr::null_mut();
            // SAFETY: valid pointers; the reference is taken over and given back.
            unsafe {
                check(object.query(&iid, &mut level), "QueryInterface")?;
                drop(IUnknown::from_raw(level));
            }
        }
        let newest = object.cast().map_err(|error| Error::new(HResult(error.code().0), "QueryInterface"))?;
        Ok(Self(newest))
    }

    pub(super) fn get(&self) -> &ICorProfilerCallback11 {
        &self.0
    }

    /// Asks the profiler whether it is notification-only, as the runtime does before it initializes
    /// a profiler.
    pub(super) fn is_notification_only(&self) -> bool {
        let mut answer = windows_core::BOOL(0);
        // SAFETY: a valid out-parameter.
        let hresult = unsafe { self.0.LoadAsNotificationOnly(&mut answer) };
        hresult == S_OK && answer.as_bool()
    }
}
