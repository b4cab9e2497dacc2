//! Methods whose code stays changed to the end of the process, also where the recording that
//! changed it is over.
//!
//! A method that has begun a wait in changed code may only go on in changed code. So any code that
//! has such a method recompiled gives it this body, and nothing gives it its own back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::callback_args::FunctionControl;
use clr_profiler::{Callbacks, FunctionId, ModuleId, ProfilerInfo, ReJitId, Token, WrittenBody};

/// A method of a module.
pub(crate) type Method = (ModuleId, Token);

/// The methods of the process. Their modules are never unloaded: those that can be are refused.
static METHODS: Mutex<Option<HashMap<Method, KeptMethod>>> = Mutex::new(None);
/// Another part of the agent answers the runtime about all methods that are recompiled.
static IS_ANSWERED: AtomicBool = AtomicBool::new(false);

/// Reason why a method that keeps its code gets no other.
pub(crate) const WHY: &str =
    "its awaits or requests were measured in this process, and its code stays as that needs it";

struct KeptMethod {
    body: Arc<WrittenBody>,
    /// The function that was compiled last with it.
    function: Option<FunctionId>,
}

fn methods() -> MutexGuard<'static, Option<HashMap<Method, KeptMethod>>> {
    METHODS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the body of a method, which has none yet, from now on.
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

/// The body that a method keeps, if it does.
pub(crate) fn body_of(method: Method) -> Option<Arc<WrittenBody>> {
    methods().as_ref()?.get(&method).map(|kept| Arc::clone(&kept.body))
}

/// Whether a method keeps a body.
pub(crate) fn is_kept(method: Method) -> bool {
    methods().as_ref().is_some_and(|methods| methods.contains_key(&method))
}

/// The function of a method that was compiled last with the body that it keeps.
pub(crate) fn function_of(method: Method) -> Option<FunctionId> {
    methods().as_ref()?.get(&method)?.function
}

/// Another part of the agent answers the runtime from now on, or does so no more.
pub(crate) fn set_answered(is_answered: bool) {
    IS_ANSWERED.store(is_answered, Ordering::Release);
}

/// The part of the agent that gives methods the bodies that they keep, as long as the process runs.
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
