//! Callbacks that also get the runtime's frame pointer. The interface has no argument for it, so
//! the entries of the method table that the runtime uses pass the frame pointer along (`arch`).

use std::ffi::c_void;

use clr_profiler_sys::callback::ICorProfilerCallback11;
use clr_profiler_sys::types::{ClassID, EVENTPIPE_PROVIDER, ObjectID, ThreadID};
use windows_core::{AsImpl, GUID, HRESULT, Interface};

use super::object::CallbackObject;
use super::slices::slice;
use crate::arch::frame_in_upper_halves;
use crate::callback_args::EventPipeEvent;
use crate::current_stack::NativeFrame;
use crate::{ClassId, EventPipeProviderId, Guid, ObjectId, ThreadId};

/// Calls `notify` with the object that the runtime calls.
///
/// # Safety
/// `this` must be the interface pointer with which the runtime calls the callback object.
#[inline]
unsafe fn with_object(this: *mut c_void, notify: impl FnOnce(&CallbackObject) -> HRESULT) -> HRESULT {
    // SAFETY: as the caller promises; the object is never freed.
    let interface = unsafe { ICorProfilerCallback11::from_raw_borrowed(&this) };
    // SAFETY: the runtime has this interface from our own factory.
    interface.map_or(HRESULT(0), |interface| notify(unsafe { interface.as_impl() }))
}

/// # Safety
/// All arguments, `this` included, must be those that the runtime passes to `ObjectAllocated`.
pub(super) unsafe extern "system" fn object_allocated(
    this: *mut c_void,
    object_id: ObjectID,
    class_id: ClassID,
    frame: usize,
) -> HRESULT {
    let frame = NativeFrame::new(frame);
    let notify = |object: &CallbackObject| {
        object.notify_with_objects(|p| {
            p.object_allocated_in(ObjectId::new(object_id), ClassId::received(class_id), frame);
        })
    };
    // SAFETY: as the caller promises.
    unsafe { with_object(this, notify) }
}

/// # Safety
/// All arguments, `this` included, must be those that the runtime passes to `ExceptionThrown`.
pub(super) unsafe extern "system" fn exception_thrown(
    this: *mut c_void,
    thrown_object_id: ObjectID,
    frame: usize,
) -> HRESULT {
    let frame = NativeFrame::new(frame);
    let notify = |object: &CallbackObject| {
        object.notify_with_objects(|p| p.exception_thrown_in(ObjectId::new(thrown_object_id), frame))
    };
    // SAFETY: as the caller promises.
    unsafe { with_object(this, notify) }
}

/// # Safety
/// All arguments, `this` included, must be those that the runtime passes to
/// `EventPipeEventDelivered`, with the frame pointer in the upper halves of the event's number and
/// version.
pub(super) unsafe extern "system" fn event_pipe_event_delivered(
    this: *mut c_void,
    provider: EVENTPIPE_PROVIDER,
    event_id: u64,
    event_version: u64,
    cb_metadata_blob: u32,
    metadata_blob: *const u8,
    cb_event_data: u32,
    event_data: *const u8,
    activity_id: *const GUID,
    related_activity_id: *const GUID,
    event_thread: ThreadID,
    num_stack_frames: u32,
    stack_frames: *const usize,
) -> HRESULT {
    // SAFETY: the runtime passes arrays of these lengths and, for the activities, null or a GUID.
    let event = unsafe {
        EventPipeEvent {
            provider: EventPipeProviderId(provider),
            event_id: event_id as u32,
            event_version: event_version as u32,
            metadata: slice(metadata_blob, cb_metadata_blob),
            data: slice(event_data, cb_event_data),
            activity: Guid::from_ptr(activity_id),
            related_activity: Guid::from_ptr(related_activity_id),
            thread: ThreadId(event_thread).non_null(),
            stack: slice(stack_frames, num_stack_frames),
            frame: NativeFrame::new(frame_in_upper_halves(event_id, event_version)),
        }
    };
    // SAFETY: as the caller promises.
    unsafe { with_object(this, |object| object.notify(|p| p.event_pipe_event_delivered(&event))) }
}
