//! The profiler without .NET: a fake runtime loads it and plays a program.

use clr_profiler::EventPipeProviderId;
use clr_profiler_fake::Event::{Enter, EventPipeEventDelivered, Leave, Shutdown};
use clr_profiler_fake::{FakeRuntime, on};

use super::{CONTENTION, Locks, RUNTIME, START, STOP};

/// The end of a wait, as the runtime writes it.
fn waited(milliseconds: f64) -> Vec<u8> {
    [&[0, 9, 0][..], &(milliseconds * 1e6).to_le_bytes()].concat()
}

#[test]
fn waits_of_two_threads_belong_to_the_method_of_the_program_that_waited() {
    let folder = clrscope_testkit::scratch();
    // Where the report goes by default; this is the only test in its process.
    std::env::set_current_dir(folder.path()).expect("a folder");
    let runtime = FakeRuntime::new()
        .module("Shop")
        .class("Shop.Checkout")
        .method("Pay")
        .class("System.Threading.Monitor")
        .method("Enter");
    let (pay, enter) = (runtime.function("Shop.Checkout::Pay"), runtime.function("System.Threading.Monitor::Enter"));
    let mut program = runtime.load::<Locks>().expect("the runtime takes the profiler");
    // The runtime is up once the program runs.
    program.play(&[on(1, Enter(pay))]);
    clrscope_testkit::wait_until("the session", || !program.sessions().is_empty());
    assert_eq!(program.sessions()[0].providers, [(RUNTIME.to_owned(), CONTENTION, 4)]);

    let event = |number, data| EventPipeEventDelivered(EventPipeProviderId::NULL, number, data);
    program.play(&[
        on(1, Enter(enter)),
        on(1, event(START, Vec::new())),
        on(2, Enter(pay)),
        on(2, event(START, Vec::new())),
        on(2, event(STOP, waited(20.0))),
        on(1, event(STOP, waited(30.5))),
        on(1, Leave(enter)),
        // An end without a begin.
        on(1, event(STOP, waited(1.0))),
        on(0, Shutdown()),
    ]);
    let report = std::fs::read_to_string(folder.path().join("locks.txt")).expect("the profiler writes at the end");
    assert_eq!(report, "2\t50.5\tShop.Checkout::Pay\n1\t1.0\t?\n");
    assert_eq!(program.unanswered(), []);
}
