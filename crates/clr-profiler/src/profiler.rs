//! The trait a profiler implements beside [`Callbacks`]: start-up, attach, and what happens when the set-up is refused.

use crate::{Callbacks, Error, HResult, ProfilerInfo, Result, Setup};

/// A profiler: [`Callbacks`] with a beginning.
///
/// [`initialize`](Self::initialize) says what the profiler wants; the runtime then calls the methods of [`Callbacks`].
/// [`export_profiler!`](crate::export_profiler) makes a library of it. A profiler made of several parts: see
/// [`callbacks`](crate::callbacks#several-parts-behind-one-profiler).
///
/// ```
/// use clr_profiler::{Callbacks, Events, ModuleId, Profiler, ProfilerInfo, Result, Setup};
///
/// #[derive(Default)]
/// struct Modules(std::sync::atomic::AtomicUsize);
///
/// impl Callbacks for Modules {
///     fn module_load_finished(&self, _module: ModuleId, status: Result<()>) {
///         if status.is_ok() {
///             self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         }
///     }
/// }
///
/// impl Profiler for Modules {
///     fn initialize(&self, _info: &ProfilerInfo) -> Result<Setup> {
///         Ok(Setup::new(Events::MODULE_LOADS))
///     }
/// }
/// ```
#[expect(unused_variables, reason = "the defaults ignore their arguments; the names are documentation")]
pub trait Profiler: Callbacks + 'static {
    /// First call. There is no managed thread yet and no module is loaded. The answer says which events the profiler wants.
    ///
    /// # Errors
    /// With an error the runtime goes on without this profiler.
    fn initialize(&self, info: &ProfilerInfo) -> Result<Setup>;

    /// The [`Setup`] was refused by the framework or the runtime. The runtime goes on without this profiler.
    fn setup_refused(&self, error: &Error) {}

    /// First call where the profiler was attached to a running program, with the bytes the attaching side sent. The default
    /// refuses.
    ///
    /// # Errors
    /// With an error the runtime goes on without this profiler.
    fn initialize_for_attach(&self, info: &ProfilerInfo, client_data: &[u8]) -> Result<Setup> {
        Err(Error::refused("InitializeForAttach", "this profiler can't be attached to a running program")
            .with_hresult(HResult::UNSUPPORTED_FOR_ATTACH))
    }

    /// Whether this profiler is content to stand beside another one, with notifications only
    /// ([`Events::ALLOWED_FOR_NOTIFICATION`](crate::Events::ALLOWED_FOR_NOTIFICATION)). Asked before `initialize`.
    fn load_as_notification_only(&self) -> bool {
        false
    }
}
