//! Profilers under the fake runtime: loading, names, hooks, and sequences that a real runtime shows
//! once in a thousand runs.

mod answers;
mod call_stacks;
mod hooks;
mod own_thread;
mod per_thread;
mod soundness;

use std::sync::{Arc, Mutex, OnceLock};

use clr_profiler::callback_args::Inlining;
use clr_profiler::{
    CallHooks, Callbacks, CallerSp, ClientId, Events, FunctionId, HResult, Hooks, Mapped, NameCache, Profiler,
    ProfilerInfo, Result, Setup,
};
use clr_profiler_fake::Event::*;
use clr_profiler_fake::{FakeRuntime, on};
use hooks::{HookCalls, hooked};

const OK: HResult = HResult::OK;

/// A program with an order that may throw.
fn shop() -> FakeRuntime {
    FakeRuntime::new()
        .module("Shop")
        .class("Shop.Program")
        .method("Main")
        .class("Shop.Checkout")
        .method_with_signature("Pay", &[0x20, 0x01, 0x08, 0x0e])
        .method("Clean")
        .class("Shop.NoMoney")
        .class("Shop.Checkout+<Later>d__3")
        .field("<>t__builder")
        .method_with_signature("MoveNext", &[0x20, 0x00, 0x01])
}

/// Asks for what the test wants, and keeps what the runtime hands out.
struct Wants {
    info: ProfilerInfo,
}

impl Wants {
    fn setup(setup: Setup) -> impl FnOnce(&ProfilerInfo) -> Result<(Self, Setup)> {
        |info| Ok((Self { info: info.clone() }, setup))
    }

    fn events(events: Events) -> impl FnOnce(&ProfilerInfo) -> Result<(Self, Setup)> {
        Self::setup(Setup::new(events))
    }

    fn info(&self) -> &ProfilerInfo {
        &self.info
    }
}

impl Callbacks for Wants {
    fn jit_inlining(&self, _caller: FunctionId, _callee: FunctionId) -> Inlining {
        Inlining::Forbid
    }
}

#[test]
fn functions_and_classes_have_names_and_nothing_stays_unanswered() {
    let mut runtime = shop();
    let functions = ["Shop.Checkout::Pay", "Shop.Program::Main", "Shop.Checkout+<Later>d__3::MoveNext"];
    let functions = functions.map(|name| runtime.function(name));
    let class = runtime.class_id("Shop.Checkout+<Later>d__3");
    let object = runtime.object("Shop.NoMoney", 48);
    let (module, thread) = (runtime.module_id("Shop"), runtime.thread(1));
    let mut program = runtime.load_with(Wants::events(Events::JIT_COMPILATION)).unwrap();
    let names = NameCache::new();
    let info = program.profiler().info();
    let [pay, main, later] = functions.map(|function| names.function(info, function));
    assert_eq!((pay.signature.as_str(), pay.name.as_str()), ("Shop.Checkout.Pay(string)", "Shop.Checkout::Pay"));
    assert_eq!((main.signature.as_str(), &*main.module), ("Shop.Program.Main()", "Shop"));
    assert!(later.signature.starts_with("Shop.Checkout.Later(") && later.signature.ends_with("(async)"), "{later:?}");
    assert_eq!(&*names.class(info, class), "Shop.Checkout.<Later>d__3");
    assert_eq!(info.module_info(module).unwrap().path, "/fake/Shop.dll");
    assert_eq!(info.runtime_version().unwrap().major, 10);
    let current = program.run_on(1, |profiler| profiler.info().current_thread());
    assert_eq!(current, Ok(thread));
    let of_object = program.run_on(1, move |profiler| {
        // SAFETY: a fake object lives for ever.
        let object = unsafe { clr_profiler::ObjectId::from_address(object.address()) };
        profiler.info().class_of_object(object)
    });
    assert_eq!(of_object.map(|class| names.class(info, class).to_string()).as_deref(), Ok("Shop.NoMoney"));
    assert_eq!(program.unanswered(), []);
    assert_eq!(info.code_info(functions[0]).unwrap_err().hresult(), HResult::NOT_IMPLEMENTED);
    assert_eq!(program.unanswered(), [("GetCodeInfo2", 1)]);
}

#[test]
fn a_profiler_sees_the_interface_level_of_its_runtime() {
    for level in [13, 14] {
        let program = FakeRuntime::new().level(level).load_with(Wants::events(Events::NONE)).unwrap();
        let info = program.profiler().info();
        assert_eq!(info.level(), level);
        let asked = info.non_gc_objects().unwrap_err();
        let sentence = "came with ICorProfilerInfo14; this runtime has ICorProfilerInfo13";
        assert_eq!(asked.reason(), (level == 13).then_some(sentence));
        assert_eq!(asked.hresult(), HResult::NOT_IMPLEMENTED);
    }
}

#[test]
fn only_what_was_asked_for_is_told_and_answers_come_back() {
    let runtime = shop();
    let (main, pay) = (runtime.function("Shop.Program::Main"), runtime.function("Shop.Checkout::Pay"));
    let module = runtime.module_id("Shop");
    let mut program = runtime.load_with(Wants::events(Events::JIT_COMPILATION)).unwrap();
    let outcomes = program.play(&[on(1, ModuleLoadFinished(module, OK)), on(1, JITInlining(main, pay))]);
    assert_eq!((outcomes[0].notified, outcomes[1].notified, outcomes[1].answer), (false, true, Some(false)));
}

#[test]
fn events_are_switched_while_the_program_runs_and_immutable_ones_refused() {
    let module = shop().module_id("Shop");
    let mut program = shop().load_with(Wants::events(Events::MODULE_LOADS)).unwrap();
    let info = program.profiler().info();
    let loaded = [on(1, ModuleLoadFinished(module, OK))];
    assert!(program.play(&loaded)[0].notified);
    info.set_events(Events::EXCEPTIONS).unwrap();
    assert!(!program.play(&loaded)[0].notified);
    let error = info.set_events(Events::EXCEPTIONS | Events::CODE_TRANSITIONS).unwrap_err();
    assert_eq!(error.hresult(), HResult::FAIL);
    assert_eq!(error.reason(), Some("CODE_TRANSITIONS can only be set while the profiler initializes"));
    let reason = |events| info.set_events(events).unwrap_err().reason().unwrap_or_default().to_owned();
    assert!(reason(Events::GC).starts_with("GC can be set while the profiler initializes only"));
    assert!(reason(Events::OBJECT_ALLOCATED).contains("without ENABLE_OBJECT_ALLOCATED"));
    assert_eq!(program.events(), Events::EXCEPTIONS);
    // As on the runtimes, see `tests/own_thread.rs`.
    info.set_events(Events::EXCEPTIONS | Events::ENABLE_REJIT).unwrap();
}

#[test]
fn a_notification_only_profiler_is_told_what_it_may_not_have() {
    struct Beside(ProfilerInfo);
    impl Profiler for Beside {
        fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
            Ok((Self(info.clone()), Setup::new(Events::EXCEPTIONS)))
        }
        fn load_as_notification_only() -> bool {
            true
        }
    }

    impl Callbacks for Beside {}
    let program = FakeRuntime::new().load::<Beside>().unwrap();
    let error = program.profiler().0.set_events(Events::GC | Events::EXCEPTIONS).unwrap_err();
    assert_eq!(error.reason(), Some("a notification-only profiler can't have GC"));
}

#[test]
fn questions_in_hooks_and_while_objects_move_are_refused_in_debug_builds() {
    /// Asks in its hook.
    #[derive(Default)]
    struct Asks(OnceLock<ProfilerInfo>, Mutex<Option<clr_profiler::Error>>);
    impl CallHooks for Asks {
        fn enter(&self, id: ClientId, _sp: CallerSp) {
            // SAFETY: the mapper gave the function's own identifier as the number for its hooks.
            let function = unsafe { FunctionId::from_raw(id.get()) };
            let asked = self.0.get().unwrap().function_info(function);
            *self.1.lock().unwrap() = asked.err();
        }
        fn leave(&self, _id: ClientId, _sp: CallerSp) {}
        fn tailcall(&self, _id: ClientId, _sp: CallerSp) {}
    }
    let hooks = Arc::new(Asks::default());
    let mapper = |function: FunctionId| ClientId::new(function.as_raw()).map_or(Mapped::Skip, Mapped::Hook);
    let setup = Setup::default().with_hooks(Hooks::safe(hooks.clone(), Arc::new(mapper)));
    let runtime = shop();
    let main = runtime.function("Shop.Program::Main");
    let mut program = runtime.load_with(Wants::setup(setup)).unwrap();
    let _ = hooks.0.set(program.profiler().info().clone());
    program.play(&[on(1, Enter(main))]);
    let refused = hooks.1.lock().unwrap().clone();
    assert_eq!(refused.is_some(), cfg!(debug_assertions));
    if let Some(error) = refused {
        assert!(error.to_string().starts_with("GetFunctionInfo2: can't be asked in an enter, leave or tail-call hook"));
        assert_eq!(error.name(), Some("CORPROF_E_UNSUPPORTED_CALL_SEQUENCE"));
    }
    assert!(program.profiler().info().function_info(main).is_ok());
}

#[test]
fn an_attached_profiler_gets_no_hooks() {
    let attach = |setup: Setup| {
        shop().attach_with(b"hello", |info, data| {
            assert_eq!(data, b"hello");
            Wants::setup(setup)(info)
        })
    };
    let refused = attach(hooked(HookCalls::default())).err().expect("is refused");
    assert_eq!(refused.hresult(), HResult::UNSUPPORTED_FOR_ATTACH);
    let program = attach(Setup::new(Events::EXCEPTIONS)).unwrap();
    let error = program.profiler().info().set_events(Events::EXCEPTIONS | Events::CACHE_SEARCHES).unwrap_err();
    assert_eq!(error.hresult(), HResult::UNSUPPORTED_FOR_ATTACH);
    assert_eq!(error.reason(), Some("a profiler that attaches to a running program can't have CACHE_SEARCHES"));
}

#[test]
fn a_profiler_is_attached_only_where_it_says_how() {
    struct Stays;
    impl Profiler for Stays {
        fn initialize(_info: &ProfilerInfo) -> Result<(Self, Setup)> {
            Ok((Self, Setup::default()))
        }
    }

    impl Callbacks for Stays {}
    let by_type = shop().attach::<Stays>(b"").err().map(|error| error.hresult());
    assert_eq!(by_type, Some(HResult::UNSUPPORTED_FOR_ATTACH));
    assert!(shop().load::<Stays>().is_ok());
}

#[test]
fn a_profiler_that_panics_or_refuses_does_not_start() {
    /// The sentence that `setup_refused` was given.
    static SAID: Mutex<String> = Mutex::new(String::new());

    struct Refused;
    impl Profiler for Refused {
        fn initialize(_info: &ProfilerInfo) -> Result<(Self, Setup)> {
            Ok((Self, Setup::new(Events::OBJECT_ALLOCATED)))
        }
        fn setup_refused(&self, error: &clr_profiler::Error) {
            *SAID.lock().unwrap() = error.to_string();
        }
    }

    impl Callbacks for Refused {}

    struct Panics;
    impl Profiler for Panics {
        fn initialize(_info: &ProfilerInfo) -> Result<(Self, Setup)> {
            panic!("not in the mood")
        }
    }

    impl Callbacks for Panics {}
    let refused = FakeRuntime::new().load::<Panics>().err().map(|error| error.hresult());
    assert_eq!(refused, Some(HResult::CANCEL_ACTIVATION));
    let refused = FakeRuntime::new().load::<Refused>().err().map(|error| error.to_string());
    assert_eq!(refused.as_deref(), Some("Initialize: CORPROF_E_PROFILER_CANCEL_ACTIVATION (0x80131375)"));
    let sentence = "Setup: OBJECT_ALLOCATED reports nothing without ENABLE_OBJECT_ALLOCATED";
    assert_eq!(*SAID.lock().unwrap(), sentence);
}
