//! Recording stops and starts again while the process lives: what happens in between is not
//! recorded, the rest is right.

use clr_profiler::{Events, FunctionId};
use clr_profiler_fake::{Event::*, FakeRuntime, Running, Step, on};
use clrscope_agent_base::hooks;
use clrscope_recording::events::{Kind, OwnedRecord};
use clrscope_recording::model::Process;

use super::{Session, calls};
use crate::Agent;

fn shop() -> (FakeRuntime, FunctionId, FunctionId) {
    let runtime = FakeRuntime::new().module("Shop").class("Shop.Cart").method("Add").method("Sum").class("Shop.Full");
    let (add, sum) = (runtime.function("Shop.Cart::Add"), runtime.function("Shop.Cart::Sum"));
    (runtime, add, sum)
}

fn stop(program: &Running<Agent>) {
    assert!(program.profiler().stop(), "it stops");
}

fn start_again(program: &Running<Agent>) {
    assert!(program.profiler().start_again(), "it starts again");
}

fn times(steps: &[Step], times: usize) -> Vec<Step> {
    steps.iter().cycle().take(steps.len() * times).cloned().collect()
}

fn count(process: &Process, kind: Kind) -> usize {
    let chunks = process.events.iter().flat_map(|arena| &arena.chunks);
    chunks.flat_map(|chunk| OwnedRecord::all(&chunk.bytes.load())).filter(|record| record.record().kind == kind).count()
}

fn calls_before_and_after(request: &str) {
    let session = Session::new();
    let (runtime, add, sum) = shop();
    let mut program = session.load(runtime, request, Events::NONE).expect("is loaded");
    let nested = [on(1, Enter(add)), on(1, Enter(sum)), on(1, Leave(sum)), on(1, Leave(add))];
    program.play(&times(&nested, 3));
    // A call that is under way when recording stops, and one when it starts again.
    program.play(&[on(1, Enter(add))]);
    stop(&program);
    program.play(&[on(1, Leave(add))]);
    program.play(&times(&nested, 50));
    program.play(&[on(1, Enter(add)), on(2, Enter(sum))]);
    start_again(&program);
    program.play(&[on(1, Enter(sum)), on(1, Leave(sum)), on(1, Leave(add)), on(2, Leave(sum))]);
    program.play(&times(&nested, 4));
    program.play(&times(&[on(3, Enter(sum)), on(3, Leave(sum))], 2));
    stop(&program);
    program.play(&times(&nested, 50));
    start_again(&program);
    program.play(&nested);
    program.play(&[on(0, Shutdown())]);
    let process = session.process();
    assert_eq!(
        (calls(&process, "Shop.Cart::Add"), calls(&process, "Shop.Cart::Sum")),
        (3 + 1 + 4 + 1, 3 + 1 + 4 + 2 + 1)
    );
    let stopped = process.remarks.iter().filter(|remark| remark.text.contains("recording was stopped for"));
    assert_eq!(stopped.count(), 2, "{:?}", process.remarks);
}

#[test]
fn calls_are_counted_before_and_after_and_not_in_between() {
    calls_before_and_after("calls");
}

#[test]
fn calls_with_ticks_are_counted_before_and_after_and_not_in_between() {
    calls_before_and_after("calls:clock=tsc");
}

#[test]
fn the_time_of_a_stop_is_charged_to_nobody() {
    let session = Session::new();
    let (runtime, add, _) = shop();
    let mut program = session.load(runtime, "calls", Events::NONE).expect("is loaded");
    program.play(&[on(1, Enter(add))]);
    let began = std::time::Instant::now();
    stop(&program);
    let pause = std::time::Duration::from_millis(400);
    clrscope_testkit::pause(pause);
    start_again(&program);
    program.play(&[on(1, Leave(add)), on(0, Shutdown())]);
    let all = began.elapsed();
    let process = session.process();
    let wall = |thread: &clrscope_recording::model::Thread| {
        thread.tree.load().values().iter().map(|(_, time)| time.metric).sum::<u64>()
    };
    let most = process.threads.iter().map(wall).max().unwrap_or(0);
    assert!(most < (all.as_nanos() - pause.as_nanos() * 3 / 4) as u64, "{most} ns of {all:?}");
}

#[test]
fn flow_goes_on_after_a_stop() {
    let session = Session::new();
    let (runtime, add, sum) = shop();
    let mut program = session.load(runtime, "flow", Events::NONE).expect("is loaded");
    let nested = [on(1, Enter(add)), on(1, Enter(sum)), on(1, Leave(sum)), on(1, Leave(add))];
    program.play(&times(&nested, 3));
    stop(&program);
    program.play(&times(&nested, 50));
    start_again(&program);
    program.play(&times(&nested, 2));
    program.play(&[on(0, Shutdown())]);
    let process = session.process();
    let bytes: usize =
        process.events.iter().flat_map(|arena| &arena.chunks).map(|chunk| chunk.bytes.load().len()).sum();
    assert_eq!(bytes / clrscope_recording::layout::flow::BYTES, (3 + 2) * nested.len());
}

#[test]
fn events_and_exceptions_go_on_after_a_stop() {
    let session = Session::new();
    let (mut runtime, add, _) = shop();
    let (thread, thrown) = (runtime.thread(1), runtime.object("Shop.Full", 64));
    let mut program = session.load(runtime, "events:threads,jit;exceptions", Events::NONE).expect("is loaded");
    let once = [
        on(1, ThreadCreated(thread)),
        on(1, JITCompilationStarted(add)),
        on(1, ExceptionThrown(thrown)),
        on(1, ExceptionSearchCatcherFound(add)),
    ];
    program.play(&times(&once, 3));
    stop(&program);
    program.play(&times(&once, 50));
    start_again(&program);
    program.play(&times(&once, 2));
    program.play(&[on(0, Shutdown())]);
    let process = session.process();
    let kinds = [
        Kind::THREAD_CREATED,
        Kind::JIT_COMPILATION_STARTED,
        Kind::EXCEPTION_THROWN,
        Kind::EXCEPTION_SEARCH_CATCHER_FOUND,
    ];
    assert_eq!(kinds.map(|kind| count(&process, kind)), [5; 4]);
}

/// The tests' process ended by this, once: the thread of one recording ended while the next one
/// began, whose instruments took the record for one that they had prepared, with a shadow stack at
/// address 0.
#[test]
fn the_end_of_a_thread_that_an_earlier_recording_knew_harms_nobody() {
    let (go, may_end) = std::sync::mpsc::channel::<()>();
    let (over, is_over) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let session = Session::new();
        let runtime = FakeRuntime::new();
        let created = on(0, ThreadCreated(runtime.thread(1)));
        let mut program = session.load(runtime, "events:threads", Events::NONE).expect("is loaded");
        program.play(&[created, on(0, Shutdown())]);
        assert_eq!(count(&session.process(), Kind::THREAD_CREATED), 1);
        drop((program, session));
        over.send(hooks::current_record().addr()).expect("a test that waits");
        may_end.recv().expect("a test that goes on");
    });
    assert_eq!(is_over.recv(), Ok(0), "the thread's own word is empty");
    let session = Session::new();
    let (runtime, add, _) = shop();
    let mut program = session.load(runtime, "calls", Events::NONE).expect("is loaded");
    program.play(&[on(1, Enter(add)), on(1, Leave(add))]);
    go.send(()).expect("a thread that waits");
    thread.join().expect("the thread ends");
    program.play(&[on(1, Enter(add)), on(1, Leave(add)), on(0, Shutdown())]);
    assert_eq!(calls(&session.process(), "Shop.Cart::Add"), 2);
}
