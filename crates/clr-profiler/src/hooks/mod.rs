//! Enter, leave and tail-call hooks, and the mapper that chooses the functions with hooks.

mod arch;
#[cfg(feature = "testing")]
pub(crate) mod testing;
mod with_info;

use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, OnceLock};

use windows_core::BOOL;

pub use with_info::{HookedCall, InfoHooks};

use crate::boundary::guard;
use crate::call_context::during_hook;
use crate::{CallerSp, ClientId, Error, Events, FunctionId, ModuleId, ProfilerInfo, Result};

/// Hooks in safe Rust, called through the framework's stubs. A panic in one is caught and counted.
///
/// Enter and leave need not balance: an exception ends a call without a leave, and a method that
/// was on the stack when it was replaced by optimised code may leave without an enter.
/// [`ShadowStack`](crate::shadow_stack::ShadowStack) handles this with the caller's stack pointer.
pub trait CallHooks: Send + Sync + 'static {
    /// A function was entered; its arguments are set, its first statement has not run.
    fn enter(&self, id: ClientId, sp: CallerSp);
    /// A function is about to return.
    fn leave(&self, id: ClientId, sp: CallerSp);
    /// A function is about to make a tail call: the called function replaces it. Both have the same
    /// caller's stack pointer.
    fn tailcall(&self, id: ClientId, sp: CallerSp);
}

/// Decision of a mapper about a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "all that the runtime lets a mapper say")]
pub enum Mapped {
    /// Call the hooks with this identifier.
    Hook(ClientId),
    /// No hooks: the function runs as without a profiler.
    Skip,
}

/// Decides which functions get hooks.
pub trait FunctionMapper: Send + Sync + 'static {
    /// Called once for each compilation of a function, so about twice in a long run, from several
    /// threads, with loader locks held. It may look up names, but must not wait. The answer for a
    /// function must always be the same, because code of one tier may leave a call that code of
    /// another tier entered.
    fn map(&self, function: FunctionId) -> Mapped;

    /// Unload events that the mapper needs to drop names in time; the framework adds them to the
    /// setup. By default none, which suits a mapper that keeps no names.
    fn needs(&self) -> Events {
        Events::NONE
    }

    /// A module is about to be unloaded, or has been unloaded: the runtime will reuse the
    /// identifiers of its functions. The framework calls this method.
    fn module_unloaded(&self, module: ModuleId) {
        let _ = module;
    }

    /// A function without metadata was unloaded: the runtime will reuse its identifier. The
    /// framework calls this method.
    fn function_unloaded(&self, function: FunctionId) {
        let _ = function;
    }
}

impl<F: Fn(FunctionId) -> Mapped + Send + Sync + 'static> FunctionMapper for F {
    fn map(&self, function: FunctionId) -> Mapped {
        self(function)
    }
}

/// Entry points in assembly that compiled code calls. A null pointer means no hook for that event.
///
/// On Linux x64 compiled code calls them like this, with the stack aligned as for any call:
///
/// | | identifier | caller's stack pointer | free to use | must be kept |
/// |---|---|---|---|---|
/// | enter | `r14` | `r15` | `rax`, `r10`, `r11`, `xmm8` and up, flags | everything else, `r14` and `r15` too |
/// | leave, tail call | `rdi` | `rsi` | `rdi`, `rsi`, `r8` to `r11`, `xmm2` and up, flags | everything else, above all `rax`, `rdx`, `rcx`, `xmm0`, `xmm1` |
///
/// At enter the argument registers still hold the function's arguments.
#[derive(Clone, Copy)]
pub struct RawHooks {
    pub(crate) enter: *const c_void,
    pub(crate) leave: *const c_void,
    pub(crate) tailcall: *const c_void,
}

// SAFETY: the pointers are code addresses, valid from every thread.
unsafe impl Send for RawHooks {}
// SAFETY: as above.
unsafe impl Sync for RawHooks {}

impl RawHooks {
    /// Makes hooks of three entry points.
    ///
    /// # Safety
    /// Each pointer must be null or point to code that follows the convention above and stays
    /// mapped until the process ends. The framework keeps the library into which it is linked
    /// mapped.
    #[must_use]
    pub const unsafe fn new(enter: *const c_void, leave: *const c_void, tailcall: *const c_void) -> Self {
        Self { enter, leave, tailcall }
    }

    /// Hooks that return at once: the minimum cost of hooks.
    #[must_use]
    pub fn empty() -> Self {
        let nothing = arch::nothing as *const c_void;
        Self { enter: nothing, leave: nothing, tailcall: nothing }
    }
}

/// Code that runs at each enter, leave and tail call of the functions a mapper chose.
///
/// Compiled code calls the hooks directly, with its own register convention, on every thread, until
/// the process ends, also after `Shutdown`. A hook runs in cooperative mode, so a collection waits
/// for it: it must not block, must not take a lock that a suspended thread may hold, must not call
/// the runtime, and should not allocate.
///
/// Three parts work together: the mapper assigns a number to each function, a table keeps the
/// record for each number, and the hook finds the record in the table.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use clr_profiler::{
///     CallHooks, Callbacks, CallerSp, ClientId, ClientTable, FunctionId, Hooks, Mapped, NameCache, Profiler, ProfilerInfo,
///     Result, Setup,
/// };
///
/// /// Calls of the program's own methods.
/// #[derive(Default)]
/// struct Counts(ClientTable<(String, AtomicU64)>);
///
/// impl CallHooks for Counts {
///     fn enter(&self, id: ClientId, _sp: CallerSp) {
///         if let Some((_, calls)) = self.0.get(id) {
///             calls.fetch_add(1, Ordering::Relaxed);
///         }
///     }
///     fn leave(&self, _id: ClientId, _sp: CallerSp) {}
///     fn tailcall(&self, _id: ClientId, _sp: CallerSp) {}
/// }
///
/// struct MyCalls;
///
/// impl Profiler for MyCalls {
///     fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
///         let (counts, names, info) = (Arc::new(Counts::default()), NameCache::new(), info.clone());
///         let table = counts.clone();
///         // A method that is compiled twice gets two rows here; see `NamedFunctions` for one that remembers.
///         let mapper = move |function: FunctionId| {
///             let name = names.function(&info, function);
///             let is_ours = name.name.starts_with("MyApp.");
///             let id = is_ours.then(|| table.0.push((name.signature.clone(), AtomicU64::new(0)))).flatten();
///             id.map_or(Mapped::Skip, Mapped::Hook)
///         };
///         Ok((Self, Setup::default().with_hooks(Hooks::safe(counts, Arc::new(mapper)))))
///     }
/// }
///
/// impl Callbacks for MyCalls {}
/// ```
///
/// # Cost
///
/// Cost of each kind of hooks with empty methods, compared with raw hooks that return at once.
/// Measured on a recursion of tiny functions with 59 million calls: medians of 7 interleaved pairs
/// of user CPU time, .NET 10.0.12, 2 cores of an AMD EPYC (`cargo xtask bench --only framework`
/// repeats the measurement):
///
/// | hooks | ratio to empty raw hooks | a call with its enter and leave |
/// |---|---|---|
/// | [`Hooks::safe`] | 2.1 | + 4.4 ns |
/// | [`CallStacks`](crate::CallStacks) | 5.3 | + 20 ns |
/// | [`Hooks::with_info`] | 4.2 | + 13 ns |
/// | the same, asking for the arguments at each enter | 28 | + 109 ns |
///
/// Real functions do more than make calls: the ratio is the worst case, and the nanoseconds are the
/// better estimate.
#[must_use = "hooks are set by Setup::with_hooks"]
pub struct Hooks {
    kind: HookKind,
    pub(crate) mapper: Arc<dyn FunctionMapper>,
}

enum HookKind {
    Raw(RawHooks),
    Safe(Arc<dyn CallHooks>),
    WithInfo(Arc<dyn InfoHooks>),
}

impl Hooks {
    /// Hooks in safe Rust: the framework's stubs save the registers and catch panics.
    ///
    /// The table [above](Self#cost) lists their cost. In an earlier measurement on .NET 8 and 10
    /// the work of the hook itself added, per call: 2 ns for a counter in a
    /// [`ClientTable`](crate::ClientTable), 3 ns for a
    /// [`ShadowStack`](crate::shadow_stack::ShadowStack) in a [`PerThread`](crate::PerThread), and
    /// 12 ns with a mutex around the shadow stack.
    pub fn safe(hooks: Arc<dyn CallHooks>, mapper: Arc<dyn FunctionMapper>) -> Self {
        Self { kind: HookKind::Safe(hooks), mapper }
    }

    /// Hooks in safe Rust that may read arguments, results and exact type arguments. The framework
    /// adds the events that they need to the setup.
    ///
    /// The runtime calls these hooks through its own code, which saves all registers and builds a
    /// frame. They cost twice as much as [`safe`](Self::safe) hooks, and far more if they read the
    /// arguments. Use them for few functions or few calls. At a [`raw`](Self::raw) hook the
    /// registers hold the arguments, too.
    pub fn with_info(hooks: Arc<dyn InfoHooks>, mapper: Arc<dyn FunctionMapper>) -> Self {
        Self { kind: HookKind::WithInfo(hooks), mapper }
    }

    /// Entry points of the profiler itself, which compiled code calls directly.
    pub fn raw(hooks: RawHooks, mapper: Arc<dyn FunctionMapper>) -> Self {
        Self { kind: HookKind::Raw(hooks), mapper }
    }

    /// Whether these are the slow hooks, [`with_info`](Self::with_info).
    pub(crate) fn are_slow(&self) -> bool {
        matches!(self.kind, HookKind::WithInfo(_))
    }
}

static SAFE_HOOKS: OnceLock<Arc<dyn CallHooks>> = OnceLock::new();

/// Registers mapper and hooks, which live as long as the process.
pub(crate) fn install(info: &ProfilerInfo, hooks: Hooks) -> Result<()> {
    let mut mapper = hooks.mapper;
    let entries = match hooks.kind {
        HookKind::Raw(raw) => Some(raw),
        HookKind::WithInfo(slow) => {
            mapper = with_info::install(info, slow, mapper)?;
            None
        }
        #[cfg(feature = "testing")]
        HookKind::Safe(safe) if testing::is_loading() => {
            testing::keep(safe);
            Some(safe_entries(true)?)
        }
        HookKind::Safe(safe) => {
            let first = SAFE_HOOKS.set(safe).is_ok();
            Some(safe_entries(first)?)
        }
    };
    let mapper: &'static Arc<dyn FunctionMapper> = Box::leak(Box::new(mapper));
    info.set_function_mapper(map_function, ptr::from_ref(mapper).cast_mut().cast())?;
    entries.map_or(Ok(()), |entries| info.set_hooks([entries.enter, entries.leave, entries.tailcall]))
}

fn safe_entries(first: bool) -> Result<RawHooks> {
    if !first {
        return Err(Error::refused("Hooks", "safe hooks can be installed once per process"));
    }
    Ok(RawHooks {
        enter: arch::enter as *const c_void,
        leave: arch::leave as *const c_void,
        tailcall: arch::tailcall as *const c_void,
    })
}

/// Function mapper that the runtime calls for each compilation.
unsafe extern "system" fn map_function(function: usize, client_data: *mut c_void, hook: *mut BOOL) -> usize {
    // SAFETY: `install` passed this reference, which is never freed.
    let mapper = unsafe { &*client_data.cast_const().cast::<Arc<dyn FunctionMapper>>() };
    let mapped = guard(Mapped::Skip, || mapper.map(FunctionId::received(function)));
    if !hook.is_null() {
        // SAFETY: the runtime's out-parameter.
        unsafe { *hook = matches!(mapped, Mapped::Hook(_)).into() };
    }
    match mapped {
        Mapped::Hook(id) => id.get(),
        Mapped::Skip => function,
    }
}

/// Entry points of the stubs: the safe hooks behind a panic boundary.
fn dispatch(id: usize, sp: usize, call: impl FnOnce(&dyn CallHooks, ClientId, CallerSp)) {
    #[cfg(feature = "testing")]
    if let (Some(hooks), Some(id)) = (testing::here(), ClientId::new(id)) {
        during_hook(|| guard((), || call(&*hooks, id, CallerSp(sp))));
        return;
    }
    // The runtime replaces a client identifier of 0 by the identifier of the function, which is not
    // 0 either.
    if let (Some(hooks), Some(id)) = (SAFE_HOOKS.get(), ClientId::new(id)) {
        during_hook(|| guard((), || call(&**hooks, id, CallerSp(sp))));
    }
}
