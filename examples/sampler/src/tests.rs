//! The profiler without .NET: a fake runtime loads it and plays a program.

use clr_profiler_fake::Event::{Enter, Shutdown, ThreadNameChanged};
use clr_profiler_fake::{FakeRuntime, on};

use super::Sampler;

#[test]
fn stacks_of_all_threads_are_counted() {
    let runtime = FakeRuntime::new().module("Shop").class("Shop.Program").method("Main").method("Wait");
    let (main, wait) = (runtime.function("Shop.Program::Main"), runtime.function("Shop.Program::Wait"));
    let (one, two) = (runtime.thread(1), runtime.thread(2));
    // As while a collection runs.
    let mut program = runtime.refuse_suspensions(2).load::<Sampler>().expect("the runtime takes the profiler");
    program.play(&[
        on(1, ThreadNameChanged(one, "main".into())),
        on(1, Enter(main)),
        on(1, Enter(wait)),
        on(2, ThreadNameChanged(two, "worker".into())),
        on(2, Enter(wait)),
    ]);
    let state = &program.profiler().0;
    let complete = |text: &str| {
        ["main;Shop.Program::Main;Shop.Program::Wait ", "worker;Shop.Program::Wait "].iter().all(|s| text.contains(s))
    };
    while !complete(&state.report()) {
        std::thread::yield_now();
    }
    program.play(&[on(0, Shutdown())]);
    let (end, later) = (state.report(), state.report());
    assert_eq!(end, later, "no samples are taken after the end");
    assert!(end.ends_with(" samples, 0 missed\n"), "{end}");
    assert_eq!(program.unanswered(), []);
}
