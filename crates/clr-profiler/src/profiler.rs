//! The trait a profiler implements in addition to [`Callbacks`]: start-up, attach, and what happens
//! when the set-up is refused.

use crate::boundary::guard;
use crate::{Callbacks, Error, HResult, ProfilerInfo, Result, Setup};

/// A profiler: [`Callbacks`] with a beginning.
///
/// [`initialize`](Self::initialize) makes the profiler and says what it wants; the runtime then
/// calls the methods of [`Callbacks`]. So whatever callbacks need (the runtime's information, an
/// open file, shared state) is a plain field, made there.
/// [`export_profiler!`](crate::export_profiler) makes a library of it. A profiler made of several
/// parts: see [`callbacks`](crate::callbacks#several-parts-behind-one-profiler).
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
/// A profiler is loaded when the program starts, or attached to one that runs: the program that
/// attaches sends the runtime's diagnostics socket the command "attach profiler" with class,
/// library and bytes for the profiler. This is what a profiler then meets:
///
/// 1. [`initialize_for_attach`](Self::initialize_for_attach) is called instead of
///    [`initialize`](Self::initialize), on a thread of the runtime's own, while the program runs
///    on. The [`Setup`] may have [`Events::ALLOWED_AFTER_ATTACH`] only: no hooks, nothing about how
///    code is compiled, no allocations but large ones. [`Events::GC`] can be asked for here and
///    never later; the runtime waits for a collection in the background to end, and collects
///    without concurrency until the detach.
/// 2. Callbacks may come at once, from other threads, before the next point.
/// 3. [`profiler_attach_complete`](Callbacks::profiler_attach_complete) says that everything may be
///    asked. Nothing reports what happened before; a profiler catches up by asking:
///    [`modules`](ProfilerInfo::modules), [`threads`](ProfilerInfo::threads) and
///    [`compiled_functions`](ProfilerInfo::compiled_functions); classes have no list. What is
///    loaded, started or compiled meanwhile may be both listed and reported, so what is kept by
///    identifier should not mind a second time. Names of threads are reported when they change and
///    can't be asked for.
/// 4. Then it is like any other profiler, [`OwnThread`](crate::OwnThread) included.
///    [`request_detach`](ProfilerInfo::request_detach) ends it, where no event of
///    [`Events::IMMUTABLE`] is set;
///    [`profiler_detach_succeeded`](Callbacks::profiler_detach_succeeded) is the last call.
///    EventPipe sessions must be stopped before. [`shutdown`](Callbacks::shutdown) comes instead
///    where the program ends first.
/// 5. The library stays mapped, and the same profiler may be attached again: as a new value, while
///    statics keep what they were. One profiler at a time: another attach is refused with
///    `CORPROF_E_PROFILER_ALREADY_ACTIVE`.
///
/// The example `heap` does all of this: it takes a picture of the heap and detaches.
///
/// [`Events::ALLOWED_AFTER_ATTACH`]: crate::Events::ALLOWED_AFTER_ATTACH
/// [`Events::GC`]: crate::Events::GC
/// [`Events::IMMUTABLE`]: crate::Events::IMMUTABLE
#[expect(unused_variables, reason = "the defaults ignore their arguments; the names are documentation")]
pub trait Profiler: Callbacks + Sized + 'static {
    /// First call: makes the profiler, with the events, hooks and flags it wants. There is no
    /// managed thread yet and no module is loaded. The profiler is never freed.
    ///
    /// # Errors
    /// With an error the runtime goes on without this profiler.
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)>;

    /// The [`Setup`] was refused by the framework or the runtime. The runtime goes on without this
    /// profiler.
    fn setup_refused(&self, error: &Error) {}

    /// First call where the profiler was attached to a running program, with the bytes the
    /// attaching side sent. The default refuses.
    ///
    /// # Errors
    /// With an error the runtime goes on without this profiler.
    fn initialize_for_attach(info: &ProfilerInfo, client_data: &[u8]) -> Result<(Self, Setup)> {
        Err(not_attachable())
    }

    /// Whether this profiler is content to run alongside another one, with notifications only
    /// ([`Events::ALLOWED_FOR_NOTIFICATION`](crate::Events::ALLOWED_FOR_NOTIFICATION)). Asked
    /// before there is a profiler.
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

/// Frees a profiler that is no longer called; its caller must know this. Its drop is behind the
/// panic boundary.
pub(crate) type Free = Box<dyn FnOnce() + Send>;

/// A profiler before its `initialize`: what the runtime is answered until then, and how the
/// profiler is made.
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
    /// Creates a loader of a type that says itself how it begins.
    #[must_use]
    pub fn new<P: Profiler>() -> Self {
        Self::of_then(|_: &P| ())
    }

    /// Creates a loader as [`new`](Self::new) does; `then` gets the profiler once there is one.
    #[must_use]
    pub fn of_then<P: Profiler>(then: impl FnOnce(&'static P) + 'static) -> Self {
        let initialize = |info: &ProfilerInfo, client_data: Option<&[u8]>| match client_data {
            None => P::initialize(info),
            Some(data) => P::initialize_for_attach(info, data),
        };
        let loader = Self::with_then(initialize, P::setup_refused, then);
        Self { is_content_with_notifications: P::load_as_notification_only(), ..loader }
    }

    /// Has the runtime load the profiler as a notification-only one, whatever the profiler
    /// [says](Profiler::load_as_notification_only).
    #[must_use]
    pub fn notification_only(self) -> Self {
        Self { is_content_with_notifications: true, ..self }
    }

    /// Loader of callbacks that `initialize` makes; they can't be attached.
    pub fn with<C: Callbacks + 'static>(
        initialize: impl FnOnce(&ProfilerInfo) -> Result<(C, Setup)> + 'static,
    ) -> Self {
        let initialize = |info: &ProfilerInfo, client_data: Option<&[u8]>| match client_data {
            None => initialize(info),
            Some(_) => Err(not_attachable()),
        };
        Self::with_then(initialize, |_, _| (), |_| ())
    }

    /// As [`with`](Self::with), for attaching too; `then` gets the callbacks once they are made.
    pub fn with_then<C: Callbacks + 'static>(
        initialize: impl FnOnce(&ProfilerInfo, Option<&[u8]>) -> Result<(C, Setup)> + 'static,
        refused: fn(&C, &Error),
        then: impl FnOnce(&'static C) + 'static,
    ) -> Self {
        let make: Make = Box::new(move |info, client_data| {
            let (made, setup) = initialize(info, client_data)?;
            // Every caller holds a reference: the value is freed after the last call, and never
            // where hooks may run on.
            let made: &'static C = Box::leak(Box::new(made));
            let at = std::ptr::from_ref(made).expose_provenance();
            then(made);
            let free = Box::new(move || {
                // SAFETY: the box that was leaked above; it is freed once, by a caller that knows
                // that it is no longer called.
                guard((), || drop(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<C>(at)) }));
            });
            Ok(Made { callbacks: made, free, setup, refused: Box::new(move |error| refused(made, error)) })
        });
        Self { is_content_with_notifications: false, make }
    }
}
