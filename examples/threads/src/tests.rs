//! The profiler without .NET: a fake runtime loads it and plays a program.

use clr_profiler::callback_args::SuspendReason;
use clr_profiler_fake::Event::*;
use clr_profiler_fake::{FakeRuntime, on};

use super::Threads;

#[test]
fn threads_with_identifiers_of_others_and_suspensions_without_an_end_are_told_apart() {
    let runtime = FakeRuntime::new();
    let (one, two) = (runtime.thread(1), runtime.thread(2));
    let mut program = runtime.load::<Threads>().expect("the runtime takes the profiler");
    program.play(&[
        on(1, ThreadCreated(one)),
        on(2, ThreadCreated(two)),
        on(1, ThreadNameChanged(one, "first".into())),
        on(2, RuntimeSuspendStarted(SuspendReason::Gc)),
        on(1, RuntimeThreadSuspended(one)),
        on(2, RuntimeSuspendFinished()),
        on(2, RuntimeResumeStarted()),
        on(1, RuntimeThreadResumed(one)),
        on(1, ThreadDestroyed(one)),
        // The runtime uses the identifier again, and says the name first.
        on(1, ThreadNameChanged(one, "second".into())),
        on(2, RuntimeSuspendStarted(SuspendReason::Shutdown)),
        on(0, Shutdown()),
    ]);
    let report = program.profiler().report();
    let rows: Vec<Vec<&str>> = report.lines().map(|line| line.split('\t').collect()).collect();
    let names: Vec<(&str, &str)> = rows.iter().map(|row| (row[0], row[1])).collect();
    let expected =
        [("thread", "first"), ("thread", ""), ("thread", "second"), ("suspension", "GC"), ("suspension", "shutdown")];
    assert_eq!(names, expected, "{report}");
    let lives: Vec<bool> = rows[..3].iter().map(|row| row[3] == "-").collect();
    assert_eq!(lives, [false, true, true], "{report}");
    assert_eq!((rows[3][4] == "-", rows[4][3]), (false, "-"), "{report}");
    assert_eq!(program.unanswered(), []);
}
