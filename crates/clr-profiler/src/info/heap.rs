//! Objects on the managed heap: sizes, generations, arrays, references, handles.

use std::ffi::c_void;
use std::ops::ControlFlow;

use clr_profiler_sys::enumerators::ICorProfilerObjectEnum;
use clr_profiler_sys::enums::COR_PRF_HANDLE_TYPE;
use clr_profiler_sys::info::{
    ICorProfilerInfo4, ICorProfilerInfo10, ICorProfilerInfo13, ICorProfilerInfo14, ICorProfilerInfo15,
};
use clr_profiler_sys::structs::{COR_PRF_GC_GENERATION_RANGE, COR_PRF_NONGC_HEAP_RANGE};
use clr_profiler_sys::types::ObjectHandleID;
use windows_core::BOOL;

use super::lists::collect;
use super::{ProfilerInfo, Suspended, ask_array};
use crate::boundary::guard;
use crate::call_context::{CallContext, during, outside_collections, outside_hooks, where_objects_stay};
use crate::callback_args::Generation;
use crate::error::check;
use crate::{ClassId, Error, HResult, ModuleId, ObjectId, Result};

/// An address range of the heap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HeapRange {
    /// Generation of the objects in the range.
    pub generation: Generation,
    /// First address.
    pub start: usize,
    /// Bytes in use. Exact only in `garbage_collection_started` and `..._finished`.
    pub bytes: usize,
    /// Bytes reserved.
    pub reserved_bytes: usize,
}

impl HeapRange {
    /// Whether `address` is in the part in use.
    #[must_use]
    pub const fn contains(&self, address: usize) -> bool {
        address >= self.start && address - self.start < self.bytes
    }
}

/// A reference that an object holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Reference<'cb> {
    /// The referenced object; may be null.
    pub object: ObjectId<'cb>,
    /// Offset of the reference in bytes from the start of the object that holds it.
    pub offset: usize,
}

/// Dimensions and element address of an array object.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ArrayObject {
    /// Number of elements and lowest index of each dimension.
    pub dimensions: Vec<(u32, i32)>,
    /// Address of the first element.
    pub data: usize,
}

/// Kind of a handle: its effect on the object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum HandleKind {
    /// Does not keep the object alive.
    Weak,
    /// Keeps the object alive.
    Strong,
    /// Keeps the object alive and at its address.
    Pinned,
}

/// A handle with which a profiler finds an object again after collections. Dropping this value
/// frees the handle.
///
/// ```compile_fail
/// # fn look(handle: &clr_profiler::ObjectHandle) {
/// // The object can't be carried out: after the callback it may be elsewhere.
/// let object = handle.with(|object| object);
/// # }
/// ```
pub struct ObjectHandle {
    info: ProfilerInfo,
    handle: ObjectHandleID,
}

// SAFETY: all threads may use the runtime's handle table, and the address is only passed back to
// the runtime.
unsafe impl Send for ObjectHandle {}
// SAFETY: as above.
unsafe impl Sync for ObjectHandle {}

impl ObjectHandle {
    /// Runs `look` with the object, or with `None` if the object was collected. Callable in
    /// callbacks with object arguments, such as
    /// [`exception_thrown`](crate::Callbacks::exception_thrown), where no collection can move the
    /// object before the callback returns. The object identifier can't leave `look`.
    ///
    /// # Errors
    /// The runtime's error; a refusal with a reason outside of such callbacks, above all on the
    /// profiler's own threads.
    pub fn with<R>(&self, look: impl for<'cb> FnOnce(Option<ObjectId<'cb>>) -> R) -> Result<R> {
        let method = "GetObjectIDFromHandle";
        where_objects_stay(method)?;
        let mut object = 0;
        let runtime = self.info.at_level::<ICorProfilerInfo13>(method)?;
        // SAFETY: a handle that is not freed, and a valid out-parameter.
        check(unsafe { runtime.GetObjectIDFromHandle(self.handle, &mut object) }, method)?;
        Ok(look((object != 0).then(|| ObjectId::new(object))))
    }

    /// Whether the object has not been collected yet. An unreferenced object exists until its
    /// generation is collected. Callable everywhere but in hooks, on the profiler's own threads
    /// too.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn is_alive(&self) -> Result<bool> {
        let method = "GetObjectIDFromHandle";
        outside_hooks(method)?;
        let mut object = 0;
        let runtime = self.info.at_level::<ICorProfilerInfo13>(method)?;
        // SAFETY: a handle that is not freed, and a valid out-parameter. The address may be out of
        // date at once; it is only compared with null.
        check(unsafe { runtime.GetObjectIDFromHandle(self.handle, &mut object) }, method)?;
        Ok(object != 0)
    }
}

impl Drop for ObjectHandle {
    fn drop(&mut self) {
        if let Ok(runtime) = self.info.at_level::<ICorProfilerInfo13>("DestroyHandle") {
            // SAFETY: the handle was made by `create_handle` and is freed once. Nothing can be done
            // about a failure.
            let _ = unsafe { runtime.DestroyHandle(self.handle) };
        }
    }
}

impl ProfilerInfo {
    /// Size of an object on the heap in bytes. Callable in the callback that received the object.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn object_size(&self, object: ObjectId<'_>) -> Result<usize> {
        let method = "GetObjectSize2";
        let mut bytes = 0;
        let runtime = self.at_level::<ICorProfilerInfo4>(method)?;
        // SAFETY: a valid out-parameter; the object's lifetime says that it is alive.
        check(unsafe { runtime.GetObjectSize2(object.address(), &mut bytes) }, method)?;
        Ok(bytes)
    }

    /// Dimensions and elements of an array of this rank (see [`array_class`](Self::array_class)).
    /// Callable in the callback that received the object.
    ///
    /// # Errors
    /// The runtime's error: `E_INVALIDARG` if the object is not an array or has another rank.
    pub fn array_object(&self, array: ObjectId<'_>, rank: u32) -> Result<ArrayObject> {
        let method = "GetArrayObjectInfo";
        let runtime = self.base(method)?;
        /// Maximum rank; no type has a higher one.
        const MOST: u32 = 32;
        if rank == 0 || rank > MOST {
            return Err(Error::new(HResult::INVALID_ARGUMENT, method));
        }
        let (mut sizes, mut lowest) = (vec![0; rank as usize], vec![0; rank as usize]);
        let mut data = std::ptr::null_mut();
        // SAFETY: two arrays of the length said and a valid out-parameter; the object's lifetime
        // says that it is alive.
        let answer = unsafe {
            runtime.GetArrayObjectInfo(array.address(), rank, sizes.as_mut_ptr(), lowest.as_mut_ptr(), &mut data)
        };
        check(answer, method)?;
        Ok(ArrayObject { dimensions: sizes.into_iter().zip(lowest).collect(), data: data as usize })
    }

    /// Offset of the value in a boxed object of a value type, in bytes from the start of the
    /// object. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error: `E_INVALIDARG` for classes that are not value types.
    pub fn box_layout(&self, class: ClassId) -> Result<u32> {
        let method = "GetBoxClassLayout";
        outside_hooks(method)?;
        let runtime = self.base(method)?;
        let _class_stays = class.enter(method)?;
        let mut offset = 0;
        // SAFETY: a valid out-parameter.
        check(unsafe { runtime.GetBoxClassLayout(class.0, &mut offset) }, method)?;
        Ok(offset)
    }

    /// The address ranges of the heap. Not in hooks. The ranges are exact only in
    /// `garbage_collection_started` and `..._finished`.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn generation_bounds(&self) -> Result<Vec<HeapRange>> {
        let method = "GetGenerationBounds";
        outside_hooks(method)?;
        let runtime = self.base(method)?;
        // SAFETY: valid out-parameters.
        let ranges = ask_array(method, |capacity, needed, ranges| unsafe {
            runtime.GetGenerationBounds(capacity, needed, ranges)
        })?;
        Ok(ranges.into_iter().map(heap_range).collect())
    }

    /// The address range of the heap that contains an object; its length is not exact here.
    /// Callable in the callback that received the object.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_NOT_GC_OBJECT` for an object that is never collected
    /// ([`is_frozen`](Self::is_frozen)).
    pub fn object_generation(&self, object: ObjectId<'_>) -> Result<HeapRange> {
        let runtime = self.base("GetObjectGeneration")?;
        let mut range = COR_PRF_GC_GENERATION_RANGE::default();
        // SAFETY: a valid out-parameter; the object's lifetime says that it is alive.
        let answer = unsafe { runtime.GetObjectGeneration(object.address(), &mut range) };
        check(answer, "GetObjectGeneration")?;
        Ok(heap_range(range))
    }

    /// Whether an object is on the part of the heap that is never collected, as string literals are
    /// from .NET 8 on. Callable in the callback that received the object.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn is_frozen(&self, object: ObjectId<'_>) -> Result<bool> {
        let method = "IsFrozenObject";
        let mut frozen = BOOL(0);
        let runtime = self.at_level::<ICorProfilerInfo10>(method)?;
        // SAFETY: a valid out-parameter; the object's lifetime says that it is alive.
        check(unsafe { runtime.IsFrozenObject(object.address(), &mut frozen) }, method)?;
        Ok(frozen.as_bool())
    }

    /// Minimum size in bytes of objects on the large object heap. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn large_object_threshold(&self) -> Result<u32> {
        let method = "GetLOHObjectSizeThreshold";
        outside_hooks(method)?;
        let mut bytes = 0;
        let runtime = self.at_level::<ICorProfilerInfo10>(method)?;
        // SAFETY: a valid out-parameter.
        check(unsafe { runtime.GetLOHObjectSizeThreshold(&mut bytes) }, method)?;
        Ok(bytes)
    }

    /// Visits the references that an object holds, until `visit` breaks. Each has its offset in the
    /// object, which [`NameCache::member`](crate::NameCache::member) can turn into a name
    /// afterwards. Callable only where no other collection can begin: in callbacks during a
    /// collection ([`object_references`](crate::Callbacks::object_references) reports references
    /// without their offsets), or for objects that [`Suspended::heap_objects`] visits.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn references_of(
        &self,
        object: ObjectId<'_>,
        mut visit: impl FnMut(Reference<'_>) -> ControlFlow<()>,
    ) -> Result<()> {
        let method = "EnumerateObjectReferences";
        outside_hooks(method)?;
        let runtime = self.at_level::<ICorProfilerInfo10>(method)?;
        let mut visit: VisitReference<'_> = &mut visit;
        let data = (&raw mut visit).cast::<c_void>();
        // SAFETY: `data` lives through the call and is what the callback expects; the object is
        // alive.
        let answer = unsafe { runtime.EnumerateObjectReferences(object.address(), Some(reference), data) };
        check(answer, method)
    }

    /// The addresses of all objects that are never collected, of all modules. These objects don't
    /// move. From .NET 8 on. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn non_gc_objects(&self) -> Result<Vec<usize>> {
        let method = "EnumerateNonGCObjects";
        outside_hooks(method)?;
        let runtime = self.at_level::<ICorProfilerInfo14>(method)?;
        // SAFETY: a valid out-parameter.
        collect::<ICorProfilerObjectEnum>(method, |out| unsafe { runtime.EnumerateNonGCObjects(out) })
    }

    /// Address ranges of the objects that are never collected. From .NET 8 on. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn non_gc_heap_bounds(&self) -> Result<Vec<HeapRange>> {
        let method = "GetNonGCHeapBounds";
        outside_hooks(method)?;
        let runtime = self.at_level::<ICorProfilerInfo14>(method)?;
        // SAFETY: valid out-parameters.
        let ranges: Vec<COR_PRF_NONGC_HEAP_RANGE> = ask_array(method, |capacity, needed, ranges| unsafe {
            runtime.GetNonGCHeapBounds(capacity, needed, ranges)
        })?;
        let range = |range: COR_PRF_NONGC_HEAP_RANGE| HeapRange {
            generation: Generation::NonGc,
            start: range.range_start,
            bytes: range.range_length,
            reserved_bytes: range.range_length_reserved,
        };
        Ok(ranges.into_iter().map(range).collect())
    }

    /// The addresses of the frozen objects in a module's image. Empty today, because modules
    /// contain no such objects any more. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn frozen_objects(&self, module: ModuleId) -> Result<Vec<usize>> {
        let method = "EnumModuleFrozenObjects";
        outside_hooks(method)?;
        let runtime = self.base(method)?;
        let _inside = self.in_module(module, method)?;
        // SAFETY: a valid out-parameter.
        collect::<ICorProfilerObjectEnum>(method, |out| unsafe { runtime.EnumModuleFrozenObjects(module.0, out) })
    }

    /// Creates a handle to find an object again after collections. Callable in the callback that
    /// received the object, on a managed thread. From .NET 7 on.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn create_handle(&self, object: ObjectId<'_>, kind: HandleKind) -> Result<ObjectHandle> {
        // SAFETY: the object's lifetime says that it is alive.
        unsafe { self.create_handle_at(object.address(), kind) }
    }

    /// Creates a handle for the object at an address from an EventPipe event of the runtime.
    /// Callable in the callback that delivers the event,
    /// [`event_pipe_event_delivered`](crate::Callbacks::event_pipe_event_delivered). The allocation
    /// of the object may not be complete yet; the handle is valid once it is complete. From .NET 7
    /// on.
    ///
    /// # Errors
    /// The runtime's error.
    ///
    /// # Safety
    /// The address must be that of an object that is alive, or that the thread of this callback is
    /// allocating.
    pub unsafe fn create_handle_at(&self, address: usize, kind: HandleKind) -> Result<ObjectHandle> {
        let method = "CreateHandle";
        outside_collections(method)?;
        let runtime = self.at_level::<ICorProfilerInfo13>(method)?;
        let kind = match kind {
            HandleKind::Weak => COR_PRF_HANDLE_TYPE(1),
            HandleKind::Strong => COR_PRF_HANDLE_TYPE(2),
            HandleKind::Pinned => COR_PRF_HANDLE_TYPE(3),
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: a valid out-parameter; the caller vouches for the object.
        check(unsafe { runtime.CreateHandle(address, kind, &mut handle) }, method)?;
        if handle.is_null() {
            return Err(Error::new(HResult::POINTER, method));
        }
        Ok(ObjectHandle { info: self.clone(), handle })
    }
}

impl Suspended<'_> {
    /// Visits all objects on the heap until `visit` breaks. From .NET 9 on.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn heap_objects(&self, mut visit: impl FnMut(ObjectId<'_>) -> ControlFlow<()>) -> Result<()> {
        let method = "EnumerateGCHeapObjects";
        outside_collections(method)?;
        let runtime = self.info.at_level::<ICorProfilerInfo15>(method)?;
        let mut visit: &mut dyn FnMut(ObjectId<'_>) -> ControlFlow<()> = &mut visit;
        let data = (&raw mut visit).cast::<c_void>();
        // SAFETY: `data` lives through the call and is what the callback expects.
        let walk = || unsafe { runtime.EnumerateGCHeapObjects(Some(heap_object), data) };
        check(during(CallContext::Objects, walk), method)
    }
}

fn heap_range(range: COR_PRF_GC_GENERATION_RANGE) -> HeapRange {
    HeapRange {
        generation: Generation::from_raw(range.generation.0),
        start: range.range_start,
        bytes: range.range_length,
        reserved_bytes: range.range_length_reserved,
    }
}

/// Calls the closure behind `data`; a panic ends the visit.
///
/// # Safety
/// `data` must be the reference to the closure.
unsafe fn visit(object: usize, data: *mut c_void) -> BOOL {
    // SAFETY: the caller's promise.
    let visit = unsafe { &mut *data.cast::<&mut dyn FnMut(ObjectId<'_>) -> ControlFlow<()>>() };
    guard(false, || visit(ObjectId::new(object)).is_continue()).into()
}

type VisitReference<'v> = &'v mut dyn FnMut(Reference<'_>) -> ControlFlow<()>;

unsafe extern "system" fn reference(object: usize, place: *mut usize, data: *mut c_void) -> BOOL {
    if place.is_null() {
        return BOOL(1);
    }
    let offset = place.addr().wrapping_sub(object);
    // SAFETY: the runtime passes the address of a reference, and its data argument, which is the
    // reference to the closure.
    let (found, visit) = unsafe { (ObjectId::new(*place), &mut *data.cast::<VisitReference<'_>>()) };
    guard(false, || visit(Reference { object: found, offset }).is_continue()).into()
}

unsafe extern "system" fn heap_object(object: usize, data: *mut c_void) -> BOOL {
    // SAFETY: the data that the runtime was given.
    unsafe { visit(object, data) }
}
