//! Commands from outside, and a delay: when recording is on, and the parts that follow.

use std::path::PathBuf;
use std::time::Duration;

use clr_profiler::{Events, FunctionId};
use clr_profiler_fake::{Event::*, FakeRuntime, Step, on};
use clrscope_recording::model::{CallTree, Part, Process};
use clrscope_recording::writer::{Answer, Command, command};

use super::{Session, calls};

/// Answer of the agent in the session's process to a command.
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

/// Calls of `function` that fell to each part, with its name.
fn by_part(process: &Process, function: &str) -> Vec<(String, u64)> {
    let of_tree = |tree: &CallTree| {
        let is_it = |node: &u32| process.functions[tree.functions()[*node as usize] as usize].name == function;
        (1..tree.len() as u32).filter(is_it).map(|node| tree.calls(node)).sum::<u64>()
    };
    let of_part = |part: &Part| {
        let trees = (0..process.threads.len() as u32).filter_map(|thread| part.trees.of_thread(thread));
        (part.name.clone(), trees.map(|tree| of_tree(&tree.load())).sum())
    };
    process.parts.iter().map(of_part).collect()
}

fn each_part_has_its_own(request: &str) {
    let session = Session::new();
    let runtime = FakeRuntime::new().module("Shop").class("Shop.Cart").method("Add").method("Sum");
    let (add, sum) = (runtime.function("Shop.Cart::Add"), runtime.function("Shop.Cart::Sum"));
    let mut program = session.load(runtime, request, Events::NONE).expect("is loaded");
    program.play(&times(add, 5));
    assert_eq!(give(&session, mark("warm")), Answer::Done);
    // A call that lasts into the next part was made in this one.
    program.play(&times(add, 7));
    program.play(&[on(1, Enter(add))]);
    assert_eq!(give(&session, mark("load")), Answer::Done);
    program.play(&times(sum, 3));
    program.play(&[on(1, Leave(add))]);
    assert_eq!(give(&session, Command::Stop), Answer::Done);
    program.play(&times(sum, 100));
    assert_eq!(give(&session, start("load")), Answer::Done);
    program.play(&times(sum, 11));
    assert_eq!(give(&session, mark("idle")), Answer::Done);
    assert_eq!(give(&session, start("")), Answer::Recording);
    assert_eq!(give(&session, mark("end")), Answer::Done);
    program.play(&times(sum, 1));
    program.play(&times(add, 2));
    let pairs = |counts: [u64; 6]| {
        ["1", "warm", "load", "load", "idle", "end"].map(str::to_owned).into_iter().zip(counts).collect::<Vec<_>>()
    };
    let directory = session.process();
    let mut packed = tempfile::NamedTempFile::new().expect("a file");
    clrscope_recording::pack::write(&session.recording(), packed.as_file_mut()).expect("a packed file");
    let packed = clrscope_recording::open(packed.path()).expect("a recording").processes.swap_remove(0);
    for process in [directory, packed] {
        assert_eq!(by_part(&process, "Shop.Cart::Add"), pairs([5, 8, 0, 0, 0, 2]));
        assert_eq!(by_part(&process, "Shop.Cart::Sum"), pairs([0, 0, 3, 11, 0, 1]));
        let all: u64 =
            process.parts.iter().filter_map(|part| part.trees.of_thread(0)).map(|tree| time(&tree.load())).sum();
        let whole = time(&process.threads[0].tree.load());
        assert!(all.abs_diff(whole) <= 10, "the times of the parts, {all} ns, are those of the whole, {whole} ns");
    }
}

fn time(tree: &CallTree) -> u64 {
    tree.values().iter().map(|(_, values)| values.metric).sum()
}

#[test]
fn each_part_has_the_calls_that_were_made_in_it() {
    each_part_has_its_own("calls");
}

#[test]
fn each_part_has_the_ticks_that_were_spent_in_it() {
    each_part_has_its_own("calls:clock=tsc");
}
