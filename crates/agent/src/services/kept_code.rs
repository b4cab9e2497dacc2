//! Methods whose code stays changed until the process ends, even after the end of the recording
//! that changed it.
//!
//! A method that has begun a wait in changed code can only continue in changed code. So every
//! instrument that recompiles such a method gives it this body, and none restores its original
//! body.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::callback_args::FunctionControl;
use clr_profiler::{Callbacks, FunctionId, ModuleId, ProfilerInfo, ReJitId, Token, WrittenBody};

/// A method, given by its module and its token.
pub(crate) type Method = (ModuleId, Token);

/// The methods of the process. Their modules are never unloaded: methods of unloadable modules are
/// refused.
static METHODS: Mutex<Option<HashMap<Method, KeptMethod>>> = Mutex::new(None);
/// Another part of the agent supplies the bodies of all methods that the runtime recompiles.
static IS_ANSWERED: AtomicBool = AtomicBool::new(false);

/// Reason why a method with a kept body gets no other body.
pub(crate) const WHY: &str =
    "its awaits or requests were measured in this process, and its code stays as that needs it";

struct KeptMethod {
    body: Arc<WrittenBody>,
    /// The function that was last compiled with the body.
    function: Option<FunctionId>,
}

fn methods() -> MutexGuard<'static, Option<HashMap<Method, KeptMethod>>> {
    METHODS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the body of a method from now on. The method must have no kept body yet.
pub(crate) fn keep_body(method: Method, body: WrittenBody) {
    let kept = KeptMethod { body: Arc::new(body), function: None };
    methods().get_or_insert_default().insert(method, kept);
}

/// Forgets the body of a method that the runtime has refused.
pub(crate) fn forget_body(method: Method) {
    if let Some(methods) = methods().as_mut() {
        methods.remove(&method);
    }
}

/// The kept body of a method, if it has one.
pub(crate) fn body_of(method: Method) -> Option<Arc<WrittenBody>> {
    methods().as_ref()?.get(&method).map(|kept| Arc::clone(&kept.body))
}

/// Whether a method has a kept body.
pub(crate) fn is_kept(method: Method) -> bool {
    methods().as_ref().is_some_and(|methods| methods.contains_key(&method))
}

/// The function of a method that was last compiled with the kept body.
pub(crate) fn function_of(method: Method) -> Option<FunctionId> {
    methods().as_ref()?.get(&method)?.function
}

/// Sets whether another part of the agent supplies the kept bodies to the runtime.
pub(crate) fn set_answered(is_answered: bool) {
    IS_ANSWERED.store(is_answered, Ordering::Release);
}

/// Supplies the kept bodies to the runtime for as long as the process runs.
pub(crate) struct KeptCode {
    info: ProfilerInfo,
}

impl KeptCode {
    pub(crate) fn new(info: &ProfilerInfo) -> Self {
        Self { info: info.clone() }
    }
}

impl Callbacks for KeptCode {
    fn get_rejit_parameters(
        &self,
        module: ModuleId,
        method: Token,
        control: &FunctionControl<'_>,
    ) -> clr_profiler::Result<()> {
        if IS_ANSWERED.load(Ordering::Acquire) {
            return Ok(());
        }
        let Some(body) = body_of((module, method)) else { return Ok(()) };
        // SAFETY: the method's own body with what the instrument that keeps it has put into it,
        // which vouches for that.
        unsafe { control.set_il_function_body(&body.bytes)? };
        control.set_il_map(&body.moves)
    }

    fn rejit_compilation_started(&self, function: FunctionId, _rejit: ReJitId, _is_safe_to_block: bool) {
        let Ok(about) = self.info.function_info(function) else { return };
        if let Some(kept) = methods().as_mut().and_then(|methods| methods.get_mut(&(about.module, about.token))) {
            kept.function = Some(function);
        }
    }
}
