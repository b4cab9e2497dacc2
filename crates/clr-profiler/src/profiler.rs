//! The trait a profiler implements in addition to [`Callbacks`]: start-up, attach, and refusal of
//! the setup.

use crate::boundary::guard;
use crate::{Callbacks, Error, HResult, ProfilerInfo, Result, Setup};

/// A profiler: [`Callbacks`] with functions that create it.
///
/// [`initialize`](Self::initialize) creates the profiler and returns its setup; the runtime then
/// calls the methods of [`Callbacks`]. So everything that callbacks need (the runtime's information
/// interface, an open file, shared state) is a plain field, set by `initialize`.
/// [`export_profiler!`](crate::export_profiler) turns the crate into a profiler library. A profiler
/// made of several parts: see [`callbacks`](crate::callbacks#several-parts-behind-one-profiler).
///
/// ```
/// use std::sync::Mutex;
/// use clr_profiler::{Callbacks, Events, ModuleId, Profiler, ProfilerInfo, Result, Setup};
///
/// struct Modules {
///     info: ProfilerInfo,
///     paths: Mutex<Vec<String>>,
/// }
///
/// impl Profiler for Modules {
///     fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
///         Ok((Self { info: info.clone(), paths: Mutex::default() }, Setup::new(Events::MODULE_LOADS)))
///     }
/// }
///
/// impl Callbacks for Modules {
///     fn module_load_finished(&self, module: ModuleId, _status: Result<()>) {
///         if let Ok(module) = self.info.module_info(module) {
///             self.paths.lock().unwrap().push(module.path);
///         }
///     }
/// }
/// ```
///
/// # Attaching
///
/// A profiler is loaded when the program starts, or attached to a running program. To attach,
/// another program sends the command "attach profiler" to the runtime's diagnostics socket, with
/// the class identifier, the library and bytes for the profiler. Then this happens:
///
/// 1. [`initialize_for_attach`](Self::initialize_for_attach) is called instead of
///    [`initialize`](Self::initialize), on a thread of the runtime, while the program continues to
///    run. The [`Setup`] may have only [`Events::ALLOWED_AFTER_ATTACH`]: no hooks, no flags about
///    compilation, and only allocations of large objects. [`Events::GC`] can be requested here and
///    never later. The runtime then waits for the end of a background collection, and runs no
///    concurrent collections until the detach.
/// 2. Callbacks may come at once on other threads, even before step 3.
/// 3. [`profiler_attach_complete`](Callbacks::profiler_attach_complete) reports that all queries
///    are allowed. The runtime does not report earlier events; a profiler catches up by queries:
///    [`modules`](ProfilerInfo::modules), [`threads`](ProfilerInfo::threads) and
///    [`compiled_functions`](ProfilerInfo::compiled_functions); there is no list of classes. Things
///    that are loaded, started or compiled in the meantime may be both listed and reported, so
///    tables by identifier must tolerate duplicates. Thread names are reported when they change and
///    can't be queried.
/// 4. From then on it works like any other profiler, including [`OwnThread`](crate::OwnThread).
///    [`request_detach`](ProfilerInfo::request_detach) detaches it, if no event of
///    [`Events::IMMUTABLE`] is set;
///    [`profiler_detach_succeeded`](Callbacks::profiler_detach_succeeded) is the last call.
///    EventPipe sessions must be stopped before. If the program ends first,
///    [`shutdown`](Callbacks::shutdown) is the last call instead.
/// 5. The library stays mapped, and the same profiler may be attached again. This creates a new
///    profiler value, while statics keep their values. Only one profiler can be attached at a time:
///    another attach is refused with `CORPROF_E_PROFILER_ALREADY_ACTIVE`.
///
/// The example `heap` does all of this: it takes a heap snapshot and detaches.
///
/// [`Events::ALLOWED_AFTER_ATTACH`]: crate::Events::ALLOWED_AFTER_ATTACH
/// [`Events::GC`]: crate::Events::GC
/// [`Events::IMMUTABLE`]: crate::Events::IMMUTABLE
#[expect(unused_variables, reason = "the defaults ignore their arguments; the names are documentation")]
pub trait Profiler: Callbacks + Sized + 'static {
    /// First call: creates the profiler and returns its events, hooks and flags. No managed thread
    /// exists yet and no module is loaded. The profiler is never freed.
    ///
    /// # Errors
    /// After an error the runtime continues without this profiler.
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)>;

    /// The framework or the runtime has refused the [`Setup`]. The runtime continues without this
    /// profiler.
    fn setup_refused(&self, error: &Error) {}

    /// First call if the profiler is attached to a running program. `client_data` are the bytes
    /// that the attaching program sent. The default implementation refuses to attach.
    ///
    /// # Errors
    /// After an error the runtime continues without this profiler.
    fn initialize_for_attach(info: &ProfilerInfo, client_data: &[u8]) -> Result<(Self, Setup)> {
        Err(not_attachable())
    }

    /// Whether this profiler agrees to run alongside another profiler, with notifications only
    /// ([`Events::ALLOWED_FOR_NOTIFICATION`](crate::Events::ALLOWED_FOR_NOTIFICATION)). Called
    /// before the profiler is created.
    #[must_use]
    fn load_as_notification_only() -> bool {
        false
    }
}

fn not_attachable() -> Error {
    Error::refused("InitializeForAttach", "this profiler can't be attached to a running program")
        .with_hresult(HResult::UNSUPPORTED_FOR_ATTACH)
}

type Make = Box<dyn FnOnce(&ProfilerInfo, Option<&[u8]>) -> Result<Made>>;

/// Frees a profiler. The caller must know that the profiler is no longer called. The profiler's
/// `Drop` runs behind the panic boundary.
pub(crate) type Free = Box<dyn FnOnce() + Send>;

/// A profiler before its `initialize`: the answers for the runtime until then, and the function
/// that creates the profiler.
pub struct Loader {
    pub(crate) is_content_with_notifications: bool,
    pub(crate) make: Make,
}

/// A profiler after its `initialize`.
pub(crate) struct Made {
    pub(crate) callbacks: &'static dyn Callbacks,
    /// Frees the profiler.
    pub(crate) free: Free,
    pub(crate) setup: Setup,
    pub(crate) refused: Box<dyn Fn(&Error)>,
}

impl Loader {
    /// Creates a loader for a type that implements [`Profiler`].
    #[must_use]
    pub fn new<P: Profiler>() -> Self {
        Self::of_then(|_: &P| ())
    }

    /// Creates a loader like [`new`](Self::new). `then` gets the profiler once it is created.
    #[must_use]
    pub fn of_then<P: Profiler>(then: impl FnOnce(&'static P) + 'static) -> Self {
        let initialize = |info: &ProfilerInfo, client_data: Option<&[u8]>| match client_data {
            None => P::initialize(info),
            Some(data) => P::initialize_for_attach(info, data),
        };
        let loader = Self::with_then(initialize, P::setup_refused, then);
        Self { is_content_with_notifications: P::load_as_notification_only(), ..loader }
    }

    /// Makes the runtime load the profiler as a notification-only profiler, whatever
    /// [`load_as_notification_only`](Profiler::load_as_notification_only) returns.
    #[must_use]
    pub fn notification_only(self) -> Self {
        Self { is_content_with_notifications: true, ..self }
    }

    /// Creates a loader for callbacks that `initialize` creates; they can't be attached.
    pub fn with<C: Callbacks + 'static>(
        initialize: impl FnOnce(&ProfilerInfo) -> Result<(C, Setup)> + 'static,
    ) -> Self {
        let initialize = |info: &ProfilerInfo, client_data: Option<&[u8]>| match client_data {
            None => initialize(info),
            Some(_) => Err(not_attachable()),
        };
        Self::with_then(initialize, |_, _| (), |_| ())
    }

    /// As [`with`](Self::with), but the callbacks can be attached, too. `then` gets the callbacks
    /// once they are created.
    pub fn with_then<C: Callbacks + 'static>(
        initialize: impl FnOnce(&ProfilerInfo, Option<&[u8]>) -> Result<(C, Setup)> + 'static,
        refused: fn(&C, &Error),
        then: impl FnOnce(&'static C) + 'static,
    ) -> Self {
        let make: Make = Box::new(move |info, client_data| {
            let (made, setup) = initialize(info, client_data)?;
            // Every caller holds a reference: the value is freed after the last call, and never if
            // hooks may still run.
            let made: &'static C = Box::leak(Box::new(made));
            let at = std::ptr::from_ref(made).expose_provenance();
            then(made);
            let free = Box::new(move || {
                // SAFETY: the box that was leaked above; it is freed once, by a caller that knows
                // that the profiler is no longer called.
                guard((), || drop(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<C>(at)) }));
            });
            Ok(Made { callbacks: made, free, setup, refused: Box::new(move |error| refused(made, error)) })
        });
        Self { is_content_with_notifications: false, make }
    }
}
