//! Functions, classes and modules by name and number, and what is answered about inlining.

use clr_profiler::Events;
use clr_profiler::{FunctionId, HResult};
use clr_profiler_fake::{Event::*, FakeRuntime, on};

use super::Session;

fn shop() -> (FakeRuntime, FunctionId, FunctionId) {
    let runtime = FakeRuntime::new().module("Shop").class("Shop.Cart").method("Add").method("Sum");
    let (add, sum) = (runtime.function("Shop.Cart::Add"), runtime.function("Shop.Cart::Sum"));
    (runtime, add, sum)
}

#[test]
fn a_function_is_noted_once_and_an_identifier_that_is_used_again_gets_a_new_number() {
    let session = Session::new();
    let (runtime, add, sum) = shop();
    let module = runtime.module_id("Shop");
    let mut program = session.load(runtime, "calls", Events::NONE).expect("is loaded");
    program.play(&[
        on(1, JITCompilationStarted(add)),
        on(1, JITCompilationStarted(sum)),
        on(2, JITCompilationStarted(add)),
    ]);
    program.play(&[on(1, ModuleUnloadStarted(module)), on(1, ModuleUnloadFinished(module, HResult::OK))]);
    program.reuse(add, "Remove");
    program.play(&[on(1, JITCompilationStarted(add)), on(0, Shutdown())]);
    let process = session.process();
    let names: Vec<&str> = process.functions.iter().map(|function| &*function.name).collect();
    let ours: Vec<&str> = names.into_iter().filter(|name| name.starts_with("Shop")).collect();
    assert_eq!(ours, ["Shop.Cart::Add", "Shop.Cart::Sum", "Shop.Cart::Remove"]);
}

#[test]
fn a_call_of_a_named_function_stays_a_call() {
    let session = Session::new();
    let (runtime, add, sum) = shop();
    let mut program = session.load(runtime, "calls;include=*::Sum", Events::NONE).expect("is loaded");
    let outcomes = program.play(&[on(1, JITInlining(add, sum)), on(1, JITInlining(sum, add))]);
    assert_eq!((outcomes[0].answer, outcomes[1].answer), (Some(false), Some(true)));
}

#[test]
fn without_named_functions_everything_may_be_inlined() {
    let session = Session::new();
    let (runtime, add, sum) = shop();
    let mut program = session.load(runtime, "calls", Events::NONE).expect("is loaded");
    assert_eq!(program.play(&[on(1, JITInlining(add, sum))])[0].answer, Some(true));
}

/// Calls that were inlined are not counted, and nothing in the recording said so.
#[test]
fn functions_that_were_inlined_are_marked_whether_they_were_seen_before_or_not() {
    let session = Session::new();
    let runtime = FakeRuntime::new().module("Shop").class("Shop.Cart").method("Add").method("Sum").method("Main");
    let [add, sum, main] = ["Add", "Sum", "Main"].map(|name| runtime.function(&format!("Shop.Cart::{name}")));
    let mut program = session.load(runtime, "calls", Events::NONE).expect("is loaded");
    program.play(&[
        on(1, JITInlining(main, add)),
        on(1, JITCompilationStarted(add)),
        on(1, JITCompilationStarted(sum)),
        on(1, JITCompilationStarted(main)),
        on(2, JITInlining(main, sum)),
        on(2, JITInlining(add, sum)),
        on(0, Shutdown()),
    ]);
    let process = session.process();
    let inlined = |name: &str| {
        let found = process.functions.iter().find(|function| function.name == format!("Shop.Cart::{name}"));
        found.expect("a function").flags.inlined
    };
    assert_eq!(["Add", "Sum", "Main"].map(inlined), [true, true, false]);
}

#[test]
fn only_chosen_functions_have_hooks() {
    let session = Session::new();
    let (runtime, add, sum) = shop();
    let mut program = session.load(runtime, "calls;exclude=*::Sum", Events::NONE).expect("is loaded");
    let outcomes = program.play(&[on(1, Enter(add)), on(1, Enter(sum)), on(1, Leave(sum)), on(1, Leave(add))]);
    assert_eq!(outcomes.iter().map(|outcome| outcome.notified).collect::<Vec<_>>(), [true, false, false, true]);
}

#[test]
fn what_was_seen_before_it_had_a_name_is_named_later() {
    let session = Session::new();
    let (runtime, ..) = shop();
    let (module, class) = (runtime.module_id("Shop"), runtime.class_id("Shop.Cart"));
    let mut program = session.load(runtime, "events:loads", Events::NONE).expect("is loaded");
    program.play(&[
        on(1, ClassLoadStarted(class)),
        on(1, ModuleLoadFinished(module, HResult::OK)),
        on(1, ClassLoadFinished(class, HResult::OK)),
        on(0, Shutdown()),
    ]);
    let process = session.process();
    let mut names: Vec<_> = process
        .events
        .iter()
        .flat_map(|arena| &arena.chunks)
        .flat_map(|chunk| clrscope_recording::events::OwnedRecord::all(&chunk.bytes.load()))
        .filter(|record| record.record().kind == clrscope_recording::events::Kind::NAME)
        .filter_map(|record| record.record().text(clrscope_recording::events::Tag::NAME).map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.iter().any(|name| name == "Shop.Cart"), "{names:?}");
}
