//! `CallStacks` in the orders of events that a runtime may show.

use std::sync::{Arc, Mutex};

use clr_profiler::{
    Block, Call, CallObserver, CallStacks, Callbacks, Events, FunctionId, HResult, NamedFunctions, Profiler,
    ProfilerInfo, Result, Setup,
};
use clr_profiler_fake::Event::*;
use clr_profiler_fake::{Event, FakeObject, Running, on};

use super::shop;

const OK: HResult = HResult::OK;

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
struct Stacks {
    stacks: Arc<CallStacks<Story>>,
    story: Arc<Mutex<Vec<String>>>,
}

impl Profiler for Stacks {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let (functions, story) = (Arc::new(NamedFunctions::new(info, |_| true)), Arc::default());
        let stacks = CallStacks::new(info, Story(Arc::clone(&story), functions.clone()))?;
        Ok((Self { stacks: stacks.clone(), story }, Setup::default().with_call_stacks(stacks, functions)))
    }
}

impl Callbacks for Stacks {}

impl Stacks {
    fn drain_story(&self) -> Vec<String> {
        std::mem::take(&mut self.story.lock().unwrap())
    }

    fn depth(&self) -> usize {
        self.stacks.depth()
    }
}

/// A shop whose profiler is nothing but stacks, what it sells, and an exception.
struct Shop {
    program: Running<Stacks>,
    main: FunctionId,
    pay: FunctionId,
    clean: FunctionId,
    exception: FakeObject,
}

impl Shop {
    /// `Main` has called `Pay`.
    fn open() -> Self {
        let mut runtime = shop();
        let [main, pay, clean] =
            ["Shop.Program::Main", "Shop.Checkout::Pay", "Shop.Checkout::Clean"].map(|name| runtime.function(name));
        let exception = runtime.object("Shop.NoMoney", 64);
        let mut program = runtime.load::<Stacks>().unwrap();
        program.play(&[on(1, Enter(main)), on(1, Enter(pay))]);
        Self { program, main, pay, clean, exception }
    }

    /// Calls that happened since this was last asked, after these events on the only thread.
    fn calls(&mut self, events: &[Event]) -> Vec<String> {
        let steps: Vec<_> = events.iter().map(|event| on(1, event.clone())).collect();
        self.program.play(&steps);
        self.program.profiler().drain_story()
    }
}

#[test]
fn call_stacks_follow_an_exception_through_filter_finally_and_catch() {
    let mut shop = Shop::open();
    let Shop { main, pay, clean, exception, .. } = shop;
    let calls = shop.calls(&[
        Enter(clean),
        ExceptionThrown(exception),
        ExceptionSearchFilterEnter(main),
        Enter(clean),
        Leave(clean),
        ExceptionSearchFilterLeave(),
    ]);
    let expected = ["enter Main 0", "enter Pay 1", "enter Clean 2", "Filter Main 3", "enter Clean 4", "leave Clean 4"];
    assert_eq!(calls, expected);
    let calls = shop.calls(&[
        ExceptionUnwindFinallyEnter(pay),
        Enter(clean),
        Leave(clean),
        ExceptionUnwindFinallyLeave(),
        ExceptionCatcherEnter(main, exception),
        Enter(clean),
        Leave(clean),
        ExceptionCatcherLeave(),
        Leave(main),
    ]);
    let expected = [
        "unwind Clean 2",
        "Finally Pay 1",
        "enter Clean 2",
        "leave Clean 2",
        "unwind Pay 1",
        "Catch Main 0",
        "enter Clean 1",
        "leave Clean 1",
        "leave Main 0",
    ];
    assert_eq!(calls, expected);
}

#[test]
fn a_filter_that_throws_ends_what_it_had_called() {
    let mut shop = Shop::open();
    let Shop { main, clean, exception, .. } = shop;
    let calls = shop.calls(&[
        ExceptionThrown(exception),
        ExceptionSearchFilterEnter(main),
        Enter(clean),
        ExceptionSearchFilterLeave(),
    ]);
    assert_eq!(calls[2..], ["Filter Main 2", "enter Clean 3", "unwind Clean 3"]);
    assert_eq!(shop.program.run_on(1, Stacks::depth), 2);
}

#[test]
fn call_stacks_survive_what_a_runtime_rarely_does() {
    let runtime = shop();
    let [main, pay] = ["Shop.Program::Main", "Shop.Checkout::Pay"].map(|name| runtime.function(name));
    let (one, two) = (runtime.thread(1), runtime.thread(2));
    let mut program = runtime.load::<Stacks>().unwrap();
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
        // A leave without an enter, an unannounced tail call's callee, and a thread that ends
        // without being destroyed.
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
        program.profiler().drain_story(),
        ["enter Main 0", "enter Main 0", "thread 1 ends", "enter Pay 1", "enter Pay 0", "leave Pay 1"]
    );
    assert_eq!(program.run_on(1, Stacks::depth), 1);
    let stack = program.run_on(3, |profiler| profiler.stacks.snapshot());
    assert_eq!(stack.iter().map(|call| call.depth).collect::<Vec<_>>(), [0]);
    let mut threads = Vec::new();
    program.profiler().stacks.for_each_thread(|number, (), calls| threads.push((number, calls.len())));
    threads.sort_unstable();
    assert_eq!(threads, [(2, 1), (3, 1)]);
}

#[test]
fn identifiers_that_are_used_again_have_their_new_names() {
    let runtime = shop();
    let (pay, clean) = (runtime.function("Shop.Checkout::Pay"), runtime.function("Shop.Checkout::Clean"));
    let module = runtime.module_id("Shop");
    let mut program = runtime.load::<Stacks>().unwrap();
    assert!(program.events().contains(Events::MODULE_LOADS | Events::DYNAMIC_FUNCTION_UNLOADS));
    program.play(&[on(1, Enter(pay)), on(1, Leave(pay)), on(1, ModuleUnloadStarted(module))]);
    program.play(&[on(1, ModuleUnloadFinished(module, OK))]);
    program.reuse(pay, "Refund");
    program.play(&[on(1, Enter(pay)), on(1, Leave(pay)), on(1, DynamicMethodUnloaded(clean))]);
    program.reuse(clean, "Sweep");
    program.play(&[on(1, Enter(clean)), on(1, Leave(clean))]);
    let calls = program.profiler().drain_story();
    let entered: Vec<_> = calls.iter().filter(|line| line.starts_with("enter")).collect();
    assert_eq!(entered, ["enter Pay 0", "enter Refund 0", "enter Sweep 0"]);
}
