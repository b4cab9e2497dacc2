//! Commands from outside, and a delay: when recording is on, and the parts that follow.

use std::path::PathBuf;
use std::time::Duration;

use clr_profiler::fake::{Event::*, FakeRuntime, Step, on};
use clr_profiler::{Events, FunctionId};
use clrscope_recording::model::Part;
use clrscope_recording::writer::{Answer, Command, command};

use super::{Session, calls};

/// What the agent in the session's process answers.
fn give(session: &Session, wanted: Command) -> Answer {
    let entries = std::fs::read_dir(session.out()).expect("a recording").flatten();
    let folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    let [folder] = folders.as_slice() else { panic!("one process: {folders:?}") };
    command(folder, &wanted, Duration::from_secs(60), || true).expect("an answer")
}

fn times(function: FunctionId, times: usize) -> Vec<Step> {
    [on(1, Enter(function)), on(1, Leave(function))].iter().cycle().take(2 * times).cloned().collect()
}

fn names(parts: &[Part]) -> Vec<&str> {
    parts.iter().map(|part| part.name.as_str()).collect()
}

fn start(name: &str) -> Command {
    Command::Start(name.to_owned())
}

fn mark(name: &str) -> Command {
    Command::Mark(name.to_owned())
}

#[test]
fn commands_switch_the_recording_as_often_as_one_likes() {
    let session = Session::new();
    let runtime = FakeRuntime::new().module("Shop").class("Shop.Cart").method("Add");
    let add = runtime.function("Shop.Cart::Add");
    let mut program = session.load(runtime, "calls", Events::NONE).expect("is loaded");
    let mut play = |count: usize| program.play(&times(add, count));
    play(1);
    assert_eq!(give(&session, start("")), Answer::Recording);
    assert_eq!(give(&session, mark("warm")), Answer::Done);
    play(2);
    for _ in 0..3 {
        assert_eq!(give(&session, Command::Stop), Answer::Done);
        play(100);
        assert_eq!(give(&session, Command::Stop), Answer::Stopped);
        assert_eq!(give(&session, mark("load")), Answer::Stopped);
        assert_eq!(give(&session, start("")), Answer::Done);
        play(10);
    }
    let process = session.process();
    assert_eq!(calls(&process, "Shop.Cart::Add"), 1 + 2 + 3 * 10);
    assert_eq!(names(&process.parts), ["1", "warm", "3", "4", "5"]);
    assert!(process.parts.iter().is_sorted_by(|a, b| a.since_ns <= a.until_ns && a.until_ns <= b.since_ns));
    let says_it_too = process.remarks.iter().any(|remark| remark.text.contains("stopped"));
    assert!(!says_it_too, "the parts say it: {:?}", process.remarks);
}

#[test]
fn recording_begins_when_the_delay_is_over() {
    let session = Session::new();
    let runtime = FakeRuntime::new().module("Shop").class("Shop.Cart").method("Add");
    let add = runtime.function("Shop.Cart::Add");
    let mut program = session.load(runtime, "calls;delay=100ms", Events::NONE).expect("is loaded");
    clrscope_testkit::wait_until("recording begins", || !session.process().parts.is_empty());
    program.play(&times(add, 3));
    let process = session.process();
    assert_eq!(calls(&process, "Shop.Cart::Add"), 3);
    assert_eq!(names(&process.parts), ["1"]);
    assert!(process.parts[0].since_ns >= 100_000_000, "{:?}", process.parts);
}

#[test]
fn a_start_ends_a_delay() {
    let session = Session::new();
    let runtime = FakeRuntime::new().module("Shop").class("Shop.Cart").method("Add");
    let add = runtime.function("Shop.Cart::Add");
    let mut program = session.load(runtime, "calls;delay=1h", Events::NONE).expect("is loaded");
    program.play(&times(add, 100));
    assert_eq!(give(&session, Command::Stop), Answer::Stopped);
    assert_eq!(calls(&session.process(), "Shop.Cart::Add"), 0);
    assert!(names(&session.process().parts).is_empty());
    assert_eq!(give(&session, start("now")), Answer::Done);
    program.play(&times(add, 3));
    let process = session.process();
    assert_eq!((names(&process.parts), calls(&process, "Shop.Cart::Add")), (vec!["now"], 3));
}
