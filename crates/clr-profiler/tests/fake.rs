//! Profilers under the fake runtime: loading, names, hooks, and sequences that a real runtime shows once in a thousand runs.

use std::sync::{Arc, Mutex, OnceLock};

use clr_profiler::fake::Event::*;
use clr_profiler::fake::{FakeRuntime, on};
use clr_profiler::notice::GcReason;
use clr_profiler::{
    Block, Call, CallHooks, CallObserver, CallStacks, CallerSp, ClientId, Events, FunctionId, HResult, Hooks, Inlining,
    Mapped, NameCache, NamedFunctions, NestedLog, PerThread, Profiler, ProfilerInfo, Result, Setup, ThreadId,
};

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

/// Asks for what it is made with, and keeps what the runtime hands out.
struct Wants {
    setup: Mutex<Option<Setup>>,
    info: OnceLock<ProfilerInfo>,
    refused: Arc<Mutex<String>>,
    attach: bool,
}

impl Wants {
    fn new(setup: Setup) -> Self {
        Self { setup: Mutex::new(Some(setup)), info: OnceLock::new(), refused: Arc::default(), attach: false }
    }

    fn events(events: Events) -> Self {
        Self::new(Setup::new(events))
    }

    fn info(&self) -> &ProfilerInfo {
        self.info.get().expect("it was initialized")
    }
}

impl Profiler for Wants {
    fn initialize(&self, info: &ProfilerInfo) -> Result<Setup> {
        let _ = self.info.set(info.clone());
        Ok(self.setup.lock().unwrap().take().unwrap_or_default())
    }

    fn initialize_for_attach(&self, info: &ProfilerInfo, _data: &[u8]) -> Result<Setup> {
        assert!(self.attach, "nobody attached this one");
        self.initialize(info)
    }

    fn setup_refused(&self, error: &clr_profiler::Error) {
        *self.refused.lock().unwrap() = error.to_string();
    }

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
    let mut program = runtime.load(Wants::events(Events::JIT_COMPILATION)).unwrap();
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
        let object = unsafe { clr_profiler::ObjectId::from_address(object.0) };
        profiler.info().class_of_object(object)
    });
    assert_eq!(of_object.map(|class| names.class(info, class).to_string()).as_deref(), Ok("Shop.NoMoney"));
    assert_eq!(program.unanswered(), []);
    assert_eq!(info.code_info(functions[0]).unwrap_err().hresult(), HResult::NOT_IMPLEMENTED);
    assert_eq!(program.unanswered(), [("GetCodeInfo2", 1)]);
}

#[test]
fn a_profiler_sees_the_interface_level_of_its_runtime() {
    for level in [14, 15] {
        let program = FakeRuntime::new().level(level).load(Wants::events(Events::NONE)).unwrap();
        let info = program.profiler().info();
        assert_eq!(info.level(), level);
        let asked = info.heap_objects(|_| std::ops::ControlFlow::Continue(())).unwrap_err();
        let sentence = "came with ICorProfilerInfo15; this runtime has ICorProfilerInfo14";
        assert_eq!(asked.reason(), (level == 14).then_some(sentence));
        assert_eq!(asked.hresult(), HResult::NOT_IMPLEMENTED);
    }
}

#[test]
fn only_what_was_asked_for_is_told_and_answers_come_back() {
    let runtime = shop();
    let (main, pay) = (runtime.function("Shop.Program::Main"), runtime.function("Shop.Checkout::Pay"));
    let module = runtime.module_id("Shop");
    let mut program = runtime.load(Wants::events(Events::JIT_COMPILATION)).unwrap();
    let outcomes = program.play(&[on(1, ModuleLoadFinished(module, OK)), on(1, JITInlining(main, pay))]);
    assert_eq!((outcomes[0].told, outcomes[1].told, outcomes[1].answer), (false, true, Some(false)));
}

#[test]
fn events_are_switched_while_the_program_runs_and_immutable_ones_refused() {
    let module = shop().module_id("Shop");
    let mut program = shop().load(Wants::events(Events::MODULE_LOADS)).unwrap();
    let info = program.profiler().info();
    let loaded = [on(1, ModuleLoadFinished(module, OK))];
    assert!(program.play(&loaded)[0].told);
    info.set_events(Events::EXCEPTIONS).unwrap();
    assert!(!program.play(&loaded)[0].told);
    let error = info.set_events(Events::EXCEPTIONS | Events::CODE_TRANSITIONS).unwrap_err();
    assert_eq!(error.hresult(), HResult::FAIL);
    assert_eq!(error.reason(), Some("CODE_TRANSITIONS can only be set while the profiler initializes"));
    let reason = |events| info.set_events(events).unwrap_err().reason().unwrap_or_default().to_owned();
    assert!(reason(Events::GC).starts_with("GC can be set while the profiler initializes only"));
    assert_eq!(reason(Events::ENABLE_REJIT), "ENABLE_REJIT can only be set while the profiler initializes");
    assert!(reason(Events::OBJECT_ALLOCATED).contains("without ENABLE_OBJECT_ALLOCATED"));
    assert_eq!(program.events(), Events::EXCEPTIONS);
}

#[test]
fn a_notification_only_profiler_is_told_what_it_may_not_have() {
    struct Beside(OnceLock<ProfilerInfo>);
    impl Profiler for Beside {
        fn initialize(&self, info: &ProfilerInfo) -> Result<Setup> {
            let _ = self.0.set(info.clone());
            Ok(Setup::new(Events::EXCEPTIONS))
        }
        fn load_as_notification_only(&self) -> bool {
            true
        }
    }
    let program = FakeRuntime::new().load(Beside(OnceLock::new())).unwrap();
    let error = program.profiler().0.get().unwrap().set_events(Events::GC | Events::EXCEPTIONS).unwrap_err();
    assert_eq!(error.reason(), Some("a notification-only profiler can't have GC"));
}

#[test]
fn questions_in_hooks_and_while_objects_move_are_refused_in_debug_builds() {
    /// Asks in its hook.
    #[derive(Default)]
    struct Asks(OnceLock<ProfilerInfo>, Mutex<Option<clr_profiler::Error>>);
    impl CallHooks for Asks {
        fn enter(&self, id: ClientId, _sp: CallerSp) {
            let asked = self.0.get().unwrap().function_info(FunctionId(id.get()));
            *self.1.lock().unwrap() = asked.err();
        }
        fn leave(&self, _id: ClientId, _sp: CallerSp) {}
        fn tailcall(&self, _id: ClientId, _sp: CallerSp) {}
    }
    let hooks = Arc::new(Asks::default());
    let mapper = |function: FunctionId| ClientId::new(function.0).map_or(Mapped::Skip, Mapped::Hook);
    let setup = Setup::default().with_hooks(Hooks::safe(hooks.clone(), Arc::new(mapper)));
    let runtime = shop();
    let main = runtime.function("Shop.Program::Main");
    let mut program = runtime.load(Wants::new(setup)).unwrap();
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
    let wants = Wants { attach: true, ..Wants::new(hooked(Seen::default())) };
    let refused = shop().attach(wants, b"hello").err().expect("is refused");
    assert_eq!(refused.hresult(), HResult::UNSUPPORTED_FOR_ATTACH);
    let wants = Wants { attach: true, ..Wants::events(Events::EXCEPTIONS) };
    let program = shop().attach(wants, b"hello").unwrap();
    let error = program.profiler().info().set_events(Events::EXCEPTIONS | Events::CACHE_SEARCHES).unwrap_err();
    assert_eq!(error.hresult(), HResult::UNSUPPORTED_FOR_ATTACH);
    assert_eq!(error.reason(), Some("a profiler that attaches to a running program can't have CACHE_SEARCHES"));
}

/// Enter, leave and tail call with the caller's stack pointer.
#[derive(Default, Clone)]
struct Seen(Arc<Mutex<Vec<(char, usize, usize)>>>);

impl Seen {
    fn note(&self, what: char, id: ClientId, sp: CallerSp) {
        self.0.lock().unwrap().push((what, id.get(), sp.0));
    }
}

impl CallHooks for Seen {
    fn enter(&self, id: ClientId, sp: CallerSp) {
        self.note('+', id, sp);
    }
    fn leave(&self, id: ClientId, sp: CallerSp) {
        self.note('-', id, sp);
    }
    fn tailcall(&self, id: ClientId, sp: CallerSp) {
        self.note('>', id, sp);
    }
}

/// Hooks every function, by its own identifier.
fn hooked(seen: Seen) -> Setup {
    let mapper = |function: FunctionId| ClientId::new(function.0).map_or(Mapped::Skip, Mapped::Hook);
    Setup::default().with_hooks(Hooks::safe(Arc::new(seen), Arc::new(mapper)))
}

#[test]
fn hooks_are_called_as_compiled_code_calls_them_each_profilers_own() {
    let runtime = shop();
    let (main, pay) = (runtime.function("Shop.Program::Main"), runtime.function("Shop.Checkout::Pay"));
    let (ours, others) = (Seen::default(), Seen::default());
    let _other = shop().load(Wants::new(hooked(others.clone()))).unwrap();
    let mut program = runtime.load(Wants::new(hooked(ours.clone()))).unwrap();
    program.play(&[
        on(1, Enter(main)),
        on(1, Enter(pay)),
        on(1, Tailcall(pay)),
        on(1, Enter(main)),
        on(1, Leave(main)),
    ]);
    let seen = ours.0.lock().unwrap().clone();
    let what: Vec<_> = seen.iter().map(|(what, id, _)| (*what, *id)).collect();
    assert_eq!(what, [('+', main.0), ('+', pay.0), ('>', pay.0), ('+', main.0), ('-', main.0)]);
    assert!(seen[1].2 < seen[0].2 && seen[1].2 == seen[2].2 && seen[2].2 == seen[3].2, "{seen:?}");
    assert_eq!(others.0.lock().unwrap().len(), 0);
}

#[test]
fn hooks_with_information_know_their_function_and_say_what_the_fake_can_not() {
    #[derive(Default)]
    struct Knows(Mutex<Vec<(FunctionId, usize, HResult)>>);
    impl clr_profiler::InfoHooks for Knows {
        fn enter(&self, id: ClientId, call: &clr_profiler::HookedCall<'_>) {
            let arguments = call.arguments().unwrap_err().hresult();
            self.0.lock().unwrap().push((call.function(), id.get(), arguments));
        }
        fn leave(&self, id: ClientId, call: &clr_profiler::HookedCall<'_>) {
            let arguments = call.arguments().unwrap_err().hresult();
            self.0.lock().unwrap().push((call.function(), id.get(), arguments));
        }
    }
    let runtime = shop();
    let main = runtime.function("Shop.Program::Main");
    let hooks = Arc::new(Knows::default());
    let mapper = |_: FunctionId| ClientId::new(7).map_or(Mapped::Skip, Mapped::Hook);
    let setup = Setup::default().with_hooks(Hooks::with_info(hooks.clone(), Arc::new(mapper)));
    let mut program = runtime.load(Wants::new(setup)).unwrap();
    program.play(&[on(1, Enter(main)), on(1, Leave(main)), on(1, Tailcall(main))]);
    let expected = [(main, 7, HResult::NOT_IMPLEMENTED), (main, 7, HResult::UNSUPPORTED_CALL_SEQUENCE)];
    assert_eq!(*hooks.0.lock().unwrap(), expected);
    assert_eq!(program.unanswered(), [("GetFunctionEnter3Info", 1)]);
}

#[cfg(target_arch = "x86_64")]
#[test]
#[should_panic(expected = "the Enter hook changed rdx, xmm3")]
fn a_hook_that_loses_an_argument_is_found_out() {
    #[unsafe(naked)]
    extern "C" fn careless() {
        std::arch::naked_asm!("xor edx, edx", "xorps xmm3, xmm3", "ret")
    }
    let entry = careless as *const std::ffi::c_void;
    // SAFETY: code that stays mapped; that it breaks the convention is what the test is about.
    let hooks = unsafe { clr_profiler::RawHooks::new(entry, std::ptr::null(), std::ptr::null()) };
    let mapper = |function: FunctionId| ClientId::new(function.0).map_or(Mapped::Skip, Mapped::Hook);
    let runtime = shop();
    let main = runtime.function("Shop.Program::Main");
    let setup = Setup::default().with_hooks(Hooks::raw(hooks, Arc::new(mapper)));
    runtime.load(Wants::new(setup)).unwrap().play(&[on(1, Enter(main))]);
}

/// Writes what happens to calls, by thread.
struct Story(Arc<Mutex<Vec<String>>>, Arc<NamedFunctions>);

impl Story {
    fn note(&self, what: &str, call: Call) {
        let name = self.1.get(call.function).map_or("?", |name| name.name.rsplit(':').next().unwrap_or("?"));
        self.0.lock().unwrap().push(format!("{what} {name} {}", call.depth));
    }
}

impl CallObserver for Story {
    type Data = ();
    fn on_enter(&self, (): &mut (), call: Call) {
        self.note("enter", call);
    }
    fn on_leave(&self, (): &mut (), call: Call) {
        self.note("leave", call);
    }
    fn on_tailcall(&self, (): &mut (), call: Call) {
        self.note("tailcall", call);
    }
    fn on_unwind(&self, (): &mut (), call: Call) {
        self.note("unwind", call);
    }
    fn on_block(&self, (): &mut (), block: Block, owner: Call) {
        self.note(&format!("{block:?}"), owner);
    }
    fn on_thread_end(&self, number: usize, (): &()) {
        self.0.lock().unwrap().push(format!("thread {number} ends"));
    }
}

/// A profiler that is nothing but call stacks.
#[derive(Default)]
struct Stacks {
    stacks: OnceLock<Arc<CallStacks<Story>>>,
    story: Arc<Mutex<Vec<String>>>,
}

impl Profiler for Stacks {
    fn initialize(&self, info: &ProfilerInfo) -> Result<Setup> {
        let functions = Arc::new(NamedFunctions::new(info, |_| true));
        let stacks = CallStacks::new(info, Story(self.story.clone(), functions.clone()))?;
        drop(self.stacks.set(stacks.clone()));
        Ok(Setup::default().with_call_stacks(stacks, functions))
    }
}

impl Stacks {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.story.lock().unwrap())
    }

    fn depth(&self) -> usize {
        self.stacks.get().map_or(0, |stacks| stacks.depth())
    }
}

#[test]
fn call_stacks_follow_an_exception_through_filter_finally_and_catch() {
    let mut runtime = shop();
    let [main, pay, clean] =
        ["Shop.Program::Main", "Shop.Checkout::Pay", "Shop.Checkout::Clean"].map(|name| runtime.function(name));
    let exception = runtime.object("Shop.NoMoney", 64);
    let mut program = runtime.load(Stacks::default()).unwrap();
    program.play(&[
        on(1, Enter(main)),
        on(1, Enter(pay)),
        on(1, Enter(clean)),
        on(1, ExceptionThrown(exception)),
        on(1, ExceptionSearchFilterEnter(main)),
        on(1, Enter(clean)),
        on(1, Leave(clean)),
        on(1, ExceptionSearchFilterLeave()),
    ]);
    assert_eq!(
        program.profiler().take(),
        ["enter Main 0", "enter Pay 1", "enter Clean 2", "Filter Main 3", "enter Clean 4", "leave Clean 4"]
    );
    program.play(&[
        on(1, ExceptionUnwindFinallyEnter(pay)),
        on(1, Enter(clean)),
        on(1, Leave(clean)),
        on(1, ExceptionUnwindFinallyLeave()),
        on(1, ExceptionCatcherEnter(main, exception)),
        on(1, Enter(clean)),
        on(1, Leave(clean)),
        on(1, ExceptionCatcherLeave()),
        on(1, Leave(main)),
    ]);
    assert_eq!(
        program.profiler().take(),
        [
            "unwind Clean 2",
            "Finally Pay 1",
            "enter Clean 2",
            "leave Clean 2",
            "unwind Pay 1",
            "Catch Main 0",
            "enter Clean 1",
            "leave Clean 1",
            "leave Main 0"
        ]
    );
}

#[test]
fn a_filter_that_throws_ends_what_it_had_called() {
    let mut runtime = shop();
    let [main, pay, clean] =
        ["Shop.Program::Main", "Shop.Checkout::Pay", "Shop.Checkout::Clean"].map(|name| runtime.function(name));
    let exception = runtime.object("Shop.NoMoney", 64);
    let mut program = runtime.load(Stacks::default()).unwrap();
    program.play(&[
        on(1, Enter(main)),
        on(1, Enter(pay)),
        on(1, ExceptionThrown(exception)),
        on(1, ExceptionSearchFilterEnter(main)),
        on(1, Enter(clean)),
        on(1, ExceptionSearchFilterLeave()),
    ]);
    let told = program.profiler().take();
    assert_eq!(told[2..], ["Filter Main 2", "enter Clean 3", "unwind Clean 3"]);
    assert_eq!(program.run_on(1, Stacks::depth), 2);
}

#[test]
fn call_stacks_survive_what_a_runtime_rarely_does() {
    let runtime = shop();
    let [main, pay] = ["Shop.Program::Main", "Shop.Checkout::Pay"].map(|name| runtime.function(name));
    let (one, two) = (runtime.thread(1), runtime.thread(2));
    let mut program = runtime.load(Stacks::default()).unwrap();
    program.play(&[
        // Another thread runs code before this one has said that it is compiled.
        on(1, JITCompilationStarted(main)),
        on(2, Enter(main)),
        on(1, JITCompilationFinished(main, OK)),
        // A thread that calls before it is created, and is assigned twice.
        on(1, Enter(main)),
        on(1, ThreadCreated(one)),
        on(1, ThreadAssignedToOSThread(one, 41)),
        on(1, ThreadAssignedToOSThread(one, 42)),
        // A leave without an enter, an unannounced tail call's callee, and a thread that ends without being destroyed.
        on(2, Leave(pay)),
        on(2, ThreadCreated(two)),
        on(2, ThreadEnds),
        on(0, Shutdown()),
        // The runtime goes on after Shutdown.
        on(1, Enter(pay)),
        on(3, Enter(pay)),
        on(1, Leave(pay)),
    ]);
    assert_eq!(
        program.profiler().take(),
        ["enter Main 0", "enter Main 0", "thread 1 ends", "enter Pay 1", "enter Pay 0", "leave Pay 1"]
    );
    assert_eq!(program.run_on(1, Stacks::depth), 1);
    let stack = program.run_on(3, |profiler| profiler.stacks.get().map(|stacks| stacks.snapshot()));
    assert_eq!(stack.map(|calls| calls.iter().map(|call| call.depth).collect::<Vec<_>>()), Some(vec![0]));
    let mut threads = Vec::new();
    let stacks = program.profiler().stacks.get().unwrap();
    stacks.for_each_thread(|number, (), calls| threads.push((number, calls.len())));
    threads.sort_unstable();
    assert_eq!(threads, [(2, 1), (3, 1)]);
}

#[test]
fn identifiers_that_are_used_again_have_their_new_names() {
    let runtime = shop();
    let (pay, clean) = (runtime.function("Shop.Checkout::Pay"), runtime.function("Shop.Checkout::Clean"));
    let module = runtime.module_id("Shop");
    let mut program = runtime.load(Stacks::default()).unwrap();
    assert!(program.events().contains(Events::MODULE_LOADS | Events::DYNAMIC_FUNCTION_UNLOADS));
    program.play(&[on(1, Enter(pay)), on(1, Leave(pay)), on(1, ModuleUnloadStarted(module))]);
    program.play(&[on(1, ModuleUnloadFinished(module, OK))]);
    program.reuse(pay, "Refund");
    program.play(&[on(1, Enter(pay)), on(1, Leave(pay)), on(1, DynamicMethodUnloaded(clean))]);
    program.reuse(clean, "Sweep");
    program.play(&[on(1, Enter(clean)), on(1, Leave(clean))]);
    let told = program.profiler().take();
    let entered: Vec<_> = told.iter().filter(|line| line.starts_with("enter")).collect();
    assert_eq!(entered, ["enter Pay 0", "enter Refund 0", "enter Sweep 0"]);
}

/// Keeps a count per thread, and a log of threads.
struct PerThreadCounts {
    counts: PerThread<Mutex<u32>>,
    log: NestedLog,
}

impl Profiler for PerThreadCounts {
    fn initialize(&self, _info: &ProfilerInfo) -> Result<Setup> {
        Ok(Setup::new(Events::THREADS | Events::BASIC_GC))
    }
    fn thread_assigned_to_os_thread(&self, _thread: ThreadId, os_thread: u32) {
        self.counts.with(|count| *count.lock().unwrap() += 1);
        self.log.line(format_args!("assigned to {os_thread}"));
    }
    fn garbage_collection_started(&self, generations: clr_profiler::notice::Generations<'_>, _reason: GcReason) {
        self.log.begin("gc", format_args!("gc {:?}", generations.oldest()));
    }
    fn garbage_collection_finished(&self) {
        self.log.end("gc", "gc over");
    }
}

#[test]
fn data_per_thread_belongs_to_the_thread_that_runs_and_goes_with_it() {
    let folder = clrscope_testkit::scratch();
    let path = folder.path().join("log");
    let ended = Arc::new(Mutex::new(Vec::new()));
    let sum = ended.clone();
    let counts = PerThread::new(Mutex::<u32>::default, move |count| sum.lock().unwrap().push(*count.lock().unwrap()));
    let profiler = PerThreadCounts { counts: counts.unwrap(), log: NestedLog::create(&path).unwrap() };
    let runtime = FakeRuntime::new();
    let (one, two) = (runtime.thread(1), runtime.thread(2));
    let mut program = runtime.load(profiler).unwrap();
    program.play(&[
        on(1, ThreadAssignedToOSThread(one, 71)),
        on(1, GarbageCollectionStarted(vec![0, 1], GcReason::Induced)),
        on(2, ThreadAssignedToOSThread(two, 72)),
        on(1, ThreadAssignedToOSThread(one, 73)),
        on(1, GarbageCollectionFinished()),
        on(1, ThreadEnds),
    ]);
    assert_eq!(*ended.lock().unwrap(), [2]);
    drop(program);
    assert_eq!(*ended.lock().unwrap(), [2, 1]);
    let log = "1\tassigned to 71\n1\tgc Some(1)\n2\tassigned to 72\n1\t  assigned to 73\n1\tgc over\n";
    assert_eq!(std::fs::read_to_string(path).unwrap(), log);
}

#[test]
fn a_profiler_that_panics_or_refuses_does_not_start() {
    struct Refuses(bool);
    impl Profiler for Refuses {
        fn initialize(&self, _info: &ProfilerInfo) -> Result<Setup> {
            assert!(self.0, "not in the mood");
            Ok(Setup::new(Events::OBJECT_ALLOCATED))
        }
    }
    for polite in [true, false] {
        let refused = FakeRuntime::new().load(Refuses(polite)).err().map(|error| error.hresult());
        assert_eq!(refused, Some(HResult::CANCEL_ACTIVATION));
    }
    let wants = Wants::events(Events::OBJECT_ALLOCATED);
    let reason = wants.refused.clone();
    let refused = FakeRuntime::new().load(wants).err().map(|error| error.to_string());
    assert_eq!(refused.as_deref(), Some("Initialize: CORPROF_E_PROFILER_CANCEL_ACTIVATION (0x80131375)"));
    let sentence = "Setup: OBJECT_ALLOCATED tells nothing without ENABLE_OBJECT_ALLOCATED";
    assert_eq!(*reason.lock().unwrap(), sentence);
}
