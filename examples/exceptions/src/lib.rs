//! The story of each exception: its type, the stack it was thrown on, filters, finally blocks and the catcher.
//!
//! The file's name comes from `EXCEPTIONS_PROFILER_OUTPUT`. The stack is a shadow stack, kept by call hooks.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use clr_profiler::shadow_stack::ShadowStack;
use clr_profiler::{
    CallHooks, CallerSp, ClientId, Error, Events, FunctionId, Hooks, NamedFunctions, NestedLog, ObjectId, PerThread,
    Profiler, ProfilerInfo, Result, Setup,
};

clr_profiler::export_profiler!(Exceptions, "{0C8B5F0A-5B8B-4C57-9E0B-5C6E4C0B8A21}");

/// The profiler the runtime makes when it loads this library.
#[derive(Default)]
struct Exceptions(OnceLock<State>);

struct State {
    info: ProfilerInfo,
    functions: Arc<NamedFunctions>,
    stacks: Arc<Stacks>,
    log: NestedLog,
}

/// The calls each thread is in.
struct Stacks(PerThread<Mutex<ShadowStack>>);

impl Stacks {
    fn with<R>(&self, act: impl FnOnce(&mut ShadowStack) -> R) -> R {
        self.0.with(|stack| act(&mut stack.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl CallHooks for Stacks {
    fn enter(&self, id: ClientId, sp: CallerSp) {
        self.with(|stack| stack.enter(sp.0, id.get()));
    }

    fn leave(&self, _id: ClientId, sp: CallerSp) {
        self.with(|stack| stack.leave(sp.0));
    }

    fn tailcall(&self, _id: ClientId, sp: CallerSp) {
        self.with(|stack| stack.tailcall(sp.0));
    }
}

impl State {
    fn new(info: &ProfilerInfo) -> std::io::Result<Self> {
        let path = std::env::var_os("EXCEPTIONS_PROFILER_OUTPUT").unwrap_or_else(|| "exceptions.txt".into());
        // From .NET 9 on the runtime throws by managed code of its own, which does not belong into the stack.
        let functions = NamedFunctions::new(info, |function| !function.is_exception_handling());
        let stacks = PerThread::new(|| Mutex::new(ShadowStack::new()), |_| ())?;
        Ok(Self {
            info: info.clone(),
            functions: Arc::new(functions),
            stacks: Arc::new(Stacks(stacks)),
            log: NestedLog::create(path)?,
        })
    }

    fn step(&self, what: &str, function: FunctionId) {
        let name = self.functions.names().function(&self.info, function);
        self.log.line_below(1, format_args!("{what} {}", name.name));
    }

    /// The activation the callback's block belongs to; at most nothing is dropped where the runtime does not say.
    fn owner(&self) -> usize {
        self.info.exception_clause().map_or(0, |clause| clause.frame_pointer)
    }
}

impl Profiler for Exceptions {
    fn initialize(&self, info: &ProfilerInfo) -> Result<Setup> {
        let state = State::new(info).map_err(|error| Error::refused("initialize", error.to_string()))?;
        let hooks = Hooks::safe(state.stacks.clone(), state.functions.clone());
        drop(self.0.set(state));
        Ok(Setup::new(Events::EXCEPTIONS).with_hooks(hooks).without_inlining())
    }

    fn exception_thrown(&self, exception: ObjectId<'_>) {
        let Some(state) = self.0.get() else { return };
        let class = state.info.class_of_object(exception);
        let class = class.map_or("?".into(), |class| state.functions.names().class(&state.info, class));
        state.log.line(format_args!("{class}"));
        for frame in state.stacks.with(|stack| stack.snapshot()).iter().rev() {
            let name = ClientId::new(frame.word).and_then(|id| state.functions.get(id));
            state.log.line_below(2, format_args!("at {}", name.map_or("?", |name| &name.name)));
        }
    }

    fn exception_search_filter_enter(&self, function: FunctionId) {
        let Some(state) = self.0.get() else { return };
        state.step("filter of", function);
        let owner = state.owner();
        state.stacks.with(|stack| stack.filter_enter(owner));
    }

    fn exception_search_filter_leave(&self) {
        let Some(state) = self.0.get() else { return };
        state.stacks.with(ShadowStack::filter_leave);
    }

    fn exception_search_catcher_found(&self, function: FunctionId) {
        let Some(state) = self.0.get() else { return };
        state.step("will be caught by", function);
    }

    fn exception_unwind_finally_enter(&self, function: FunctionId) {
        let Some(state) = self.0.get() else { return };
        state.step("finally of", function);
        let owner = state.owner();
        state.stacks.with(|stack| stack.finally_enter(owner));
    }

    fn exception_catcher_enter(&self, function: FunctionId, _exception: ObjectId<'_>) {
        let Some(state) = self.0.get() else { return };
        state.step("caught by", function);
        let owner = state.owner();
        state.stacks.with(|stack| stack.catcher_enter(owner));
    }
}
