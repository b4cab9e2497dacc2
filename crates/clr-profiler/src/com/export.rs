//! The library's one entry point, the class factory behind it, and the macro that exports it.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use clr_profiler_sys::class_factory::{IClassFactory, IClassFactory_Impl};
use windows_core::{BOOL, GUID, HRESULT, Interface, implement};

use super::object::CallbackObject;
use super::retired;
use super::table::interface_of;
use crate::boundary::{guard, silence_panics};
use crate::profiler::Loader;
use crate::{Guid, HResult};

/// Returns the loader of a profiler, once or at each call; `None` if no loader is left.
type Load = Box<dyn Fn() -> Option<Loader>>;

#[implement(IClassFactory)]
struct Factory {
    load: Load,
}

impl IClassFactory_Impl for Factory_Impl {
    unsafe fn CreateInstance(&self, outer: *mut c_void, iid: *const GUID, object: *mut *mut c_void) -> HRESULT {
        if object.is_null() || iid.is_null() {
            return HRESULT(HResult::POINTER.0);
        }
        if !outer.is_null() {
            return HRESULT(HResult::NO_AGGREGATION.0);
        }
        guard(HRESULT(HResult::CANCEL_ACTIVATION.0), || {
            let Some(loader) = (self.load)() else { return HRESULT(HResult::FAIL.0) };
            retired::release();
            let is_retired = Arc::new(AtomicBool::new(false));
            let callbacks = CallbackObject {
                callbacks: OnceLock::new(),
                free: Cell::new(None),
                is_retired: Arc::clone(&is_retired),
                is_content_with_notifications: loader.is_content_with_notifications,
                notification_only: AtomicBool::new(false),
                loader: Cell::new(Some(loader)),
                info: OnceLock::new(),
                stacks: OnceLock::new(),
                mapper: OnceLock::new(),
            };
            let callbacks = interface_of(callbacks);
            // SAFETY: both pointers were checked and are the caller's.
            let answer = unsafe { callbacks.query(iid, object) };
            retired::keep(callbacks, is_retired);
            answer
        })
    }

    unsafe fn LockServer(&self, _lock: BOOL) -> HRESULT {
        HRESULT(0)
    }
}

/// A class of the library: its identifier, and the function that makes the loader of its profiler.
type Class = (Guid, fn() -> Loader);

/// Body of the exported `DllGetClassObject`; called by [`export_profiler!`](crate::export_profiler)
/// only.
///
/// # Safety
/// `class` and `iid` must be null or valid for reads, `object` null or valid for a write: the COM
/// contract.
#[doc(hidden)]
pub unsafe fn get_class_object(
    classes: &[Class],
    class: *const Guid,
    iid: *const Guid,
    object: *mut *mut c_void,
) -> HResult {
    if class.is_null() || iid.is_null() || object.is_null() {
        return HResult::POINTER;
    }
    silence_panics();
    super::pin::pin_library();
    // SAFETY: `object` was checked.
    unsafe { *object = std::ptr::null_mut() };
    // SAFETY: `class` was checked.
    let asked = unsafe { *class };
    let Some(&(_, load)) = classes.iter().find(|(ours, _)| *ours == asked) else {
        for (ours, _) in &classes[..classes.len().min(1)] {
            crate::load_log::write(format_args!("class {{{asked:?}}} {{{ours:?}}}"));
        }
        return HResult::CLASS_NOT_AVAILABLE;
    };
    let factory: IClassFactory = Factory { load: Box::new(move || Some(load())) }.into();
    // SAFETY: both pointers were checked, and a GUID is laid out as COM does.
    HResult(unsafe { factory.query(iid.cast(), object) }.0)
}

/// A factory that hands out this one profiler, once.
#[cfg(feature = "testing")]
#[must_use]
pub fn factory(loader: Loader) -> IClassFactory {
    let loader = Cell::new(Some(loader));
    Factory { load: Box::new(move || loader.take()) }.into()
}

/// Turns a library into a profiler: exports the entry point that the runtime looks for.
///
/// The first argument is a type that implements [`Profiler`](crate::Profiler), or a closure that
/// does the same as [`Profiler::initialize`](crate::Profiler::initialize): it returns
/// [`Callbacks`](crate::Callbacks) and their [`Setup`](crate::Setup). The second is the class
/// identifier, which users put into `CORECLR_PROFILER`. Every profiler needs its own class
/// identifier: make a new one (`uuidgen`) when you copy an example.
///
/// ```
/// # use clr_profiler::{Callbacks, Profiler, ProfilerInfo, Result, Setup};
/// struct Mine;
///
/// impl Profiler for Mine {
///     fn initialize(_info: &ProfilerInfo) -> Result<(Self, Setup)> {
///         Ok((Self, Setup::default()))
///     }
/// }
///
/// impl Callbacks for Mine {}
///
/// clr_profiler::export_profiler!(Mine, "{0A1B2C3D-4E5F-6071-8293-A4B5C6D7E8F9}");
/// # fn main() {}
/// ```
///
/// A third argument `notification_only = "{...}"` adds a second class identifier. With this
/// identifier the runtime loads the same profiler as a notification-only profiler, which does not
/// take the main slot and can run together with another profiler.
/// [`Events::ALLOWED_FOR_NOTIFICATION`](crate::Events::ALLOWED_FOR_NOTIFICATION) lists the events
/// that such a profiler may have, and
/// [`ProfilerInfo::is_notification_only`](crate::ProfilerInfo::is_notification_only) tells the
/// profiler how it was loaded. The second identifier works in `CORECLR_NOTIFICATION_PROFILERS` and
/// when attaching.
#[macro_export]
macro_rules! export_profiler {
    ($profiler:ty, $guid:literal) => {
        $crate::export_profiler!(@classes ($guid, || $crate::__export::Loader::new::<$profiler>()));
    };
    ($profiler:ty, $guid:literal, notification_only = $second:literal) => {
        $crate::export_profiler!(
            @classes
            ($guid, || $crate::__export::Loader::new::<$profiler>()),
            ($second, || $crate::__export::Loader::new::<$profiler>().notification_only())
        );
    };
    (|$info:ident| $initialize:expr, $guid:literal) => {
        $crate::export_profiler!(
            @classes ($guid, || $crate::__export::Loader::with(|$info: &$crate::ProfilerInfo| $initialize))
        );
    };
    (@classes $(($guid:literal, $load:expr)),+) => {
        /// Entry point for the runtime: returns the factory that makes the profiler.
        ///
        /// # Safety
        /// The pointers must be null or valid, as COM requires.
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn DllGetClassObject(
            class: *const $crate::Guid,
            iid: *const $crate::Guid,
            object: *mut *mut ::core::ffi::c_void,
        ) -> $crate::HResult {
            // SAFETY: the pointers are those of the caller, who keeps the COM contract.
            unsafe {
                $crate::__export::get_class_object(
                    &[$((const { $crate::Guid::parse($guid) }, $load)),+],
                    class,
                    iid,
                    object,
                )
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Callbacks, Profiler, ProfilerInfo, Result, Setup};

    struct Idle;
    impl Profiler for Idle {
        fn initialize(_info: &ProfilerInfo) -> Result<(Self, Setup)> {
            Ok((Self, Setup::default()))
        }
    }

    impl Callbacks for Idle {}

    const OURS: Guid = Guid::parse("{0A1B2C3D-4E5F-6071-8293-A4B5C6D7E8F9}");
    const SECOND: Guid = Guid::parse("{0A1B2C3D-4E5F-6071-8293-A4B5C6D7E8FA}");

    fn factory_iid() -> Guid {
        Guid::from_u128(IClassFactory::IID.to_u128())
    }

    fn class_object(class: &Guid, iid: &Guid) -> (HResult, *mut c_void) {
        let mut object = std::ptr::null_mut();
        let classes: [Class; 2] = [(OURS, Loader::new::<Idle>), (SECOND, || Loader::new::<Idle>().notification_only())];
        // SAFETY: three valid references.
        let answer = unsafe { get_class_object(&classes, class, iid, &mut object) };
        (answer, object)
    }

    #[test]
    fn the_runtime_finds_every_callback_level_up_to_11() {
        use clr_profiler_sys::callback::*;
        let (answer, factory) = class_object(&OURS, &factory_iid());
        assert_eq!(answer, HResult::OK);
        // SAFETY: a fresh owned reference.
        let factory = unsafe { IClassFactory::from_raw(factory) };
        for iid in [
            ICorProfilerCallback2::IID,
            ICorProfilerCallback3::IID,
            ICorProfilerCallback4::IID,
            ICorProfilerCallback5::IID,
            ICorProfilerCallback6::IID,
            ICorProfilerCallback7::IID,
            ICorProfilerCallback8::IID,
            ICorProfilerCallback9::IID,
            ICorProfilerCallback10::IID,
            ICorProfilerCallback11::IID,
        ] {
            let mut object = std::ptr::null_mut();
            // SAFETY: valid pointers.
            let answer = unsafe { factory.CreateInstance(std::ptr::null_mut(), &iid, &mut object) };
            assert_eq!(answer, HRESULT(0));
            // SAFETY: a fresh owned reference.
            let callback = unsafe { ICorProfilerCallback::from_raw(object) };
            // SAFETY: the object is alive.
            assert_eq!(unsafe { callback.Shutdown() }, HRESULT(0));
        }
    }

    #[test]
    fn the_second_class_leaves_the_main_slot_to_others() {
        use clr_profiler_sys::callback::ICorProfilerCallback11;
        for (class, expected) in [(OURS, false), (SECOND, true)] {
            let (answer, factory) = class_object(&class, &factory_iid());
            assert_eq!(answer, HResult::OK);
            // SAFETY: a fresh owned reference.
            let factory = unsafe { IClassFactory::from_raw(factory) };
            let (mut object, mut is_second) = (std::ptr::null_mut(), BOOL(7));
            // SAFETY: valid pointers, and a fresh owned reference.
            unsafe {
                let made = factory.CreateInstance(std::ptr::null_mut(), &ICorProfilerCallback11::IID, &mut object);
                assert_eq!(made, HRESULT(0));
                let callback = ICorProfilerCallback11::from_raw(object);
                assert_eq!(callback.LoadAsNotificationOnly(&mut is_second), HRESULT(0));
            }
            assert_eq!(is_second, BOOL::from(expected));
        }
    }

    #[test]
    fn another_class_and_unknown_interfaces_are_refused() {
        let other = Guid::parse("0A1B2C3D-4E5F-6071-8293-A4B5C6D7E8F8");
        assert_eq!(class_object(&other, &factory_iid()).0, HResult::CLASS_NOT_AVAILABLE);
        let (answer, object) = class_object(&OURS, &other);
        assert_eq!((answer, object.is_null()), (HResult::NO_INTERFACE, true));
    }
}
