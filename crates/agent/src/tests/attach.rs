//! The agent is attached to a program that runs, and leaves it again.

use std::fs;
use std::time::Duration;

use clr_profiler::HResult;
use clr_profiler_fake::{Event::*, FakeRuntime, Running, on};
use clrscope_recording::events::{Kind, OwnedRecord};
use clrscope_recording::model::Process;
use clrscope_recording::writer::{RunWriter, Standing, standing};
use clrscope_testkit as testkit;

use super::Session;
use crate::Agent;

/// The recording that a launcher waits for.
fn launcher(session: &Session) -> RunWriter {
    RunWriter::create_held(&session.out(), &[], "", 0).expect("a recording")
}

fn attach(session: &Session, runtime: FakeRuntime, instruments: &str) -> clr_profiler::Result<Running<Agent>> {
    runtime.attach::<Agent>(session.request(&format!("{instruments};join")).as_bytes())
}

fn end(program: &mut Running<Agent>) {
    testkit::wait_until("the wish to be detached", || program.is_detaching());
    program.play(&[on(0, ProfilerDetachSucceeded())]);
}

/// The mappings of this process that have the recording's files, and the threads of agents.
fn left_over(session: &Session) -> (usize, usize) {
    let maps = fs::read_to_string("/proc/self/maps").expect("maps");
    // The log of the run is the launcher's, which is this process as well.
    let out = format!("{}/p", session.out().display());
    let threads = fs::read_dir("/proc/self/task").expect("threads").flatten();
    let name = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
    (
        maps.lines().filter(|line| line.contains(&out)).count(),
        threads.map(name).filter(|name| name == "clrscope\n").count(),
    )
}

fn thrown(process: &Process) -> usize {
    let chunks = process.events.iter().flat_map(|arena| &arena.chunks);
    let records = chunks.flat_map(|chunk| OwnedRecord::all(&chunk.bytes.load()));
    records.filter(|record| record.record().kind == Kind::EXCEPTION_THROWN).count()
}

/// A program with other classes and other functions in each round: nothing may be known about it
/// but what this recording was told.
fn round(session: &Session, number: usize) {
    let before = left_over(session).1;
    let _ = fs::remove_dir_all(session.out());
    let writer = launcher(session);
    let class = format!("Shop.Full{number}");
    let mut runtime = FakeRuntime::new().module("Shop").class("Shop.Cart").method("Add").class(&class);
    let (add, thrown_object) = (runtime.function("Shop.Cart::Add"), runtime.object(&class, 64));
    let mut program = attach(session, runtime, "exceptions").expect("is attached");
    testkit::wait_until("the agent's thread", || left_over(session).1 == before + 1);
    let once = [on(1, ExceptionThrown(thrown_object)), on(1, ExceptionSearchCatcherFound(add))];
    program.play(&[on(0, ProfilerAttachComplete())]);
    for _ in 0..=number {
        program.play(&once);
    }
    assert_eq!(writer.request_stop(), 1);
    end(&mut program);
    assert_eq!(standing(&session.out()), Some(Standing::Detached));
    assert_eq!(left_over(session), (0, before), "round {number}");
    let process = session.process();
    assert_eq!(thrown(&process), number + 1);
    assert!(process.modules.iter().any(|module| module.name == "Shop"), "{:?}", process.modules);
    let of_attach = process.remarks.iter().filter(|remark| remark.text.starts_with("attached: "));
    assert_eq!(of_attach.count(), 1, "{:?}", process.remarks);
}

#[test]
fn the_agent_is_attached_and_leaves_again_and_again() {
    let session = Session::new();
    for number in 0..4 {
        round(&session, number);
    }
}

#[test]
fn the_end_of_the_launcher_is_the_end_of_the_recording() {
    let session = Session::new();
    let before = left_over(&session).1;
    let writer = launcher(&session);
    let mut program = attach(&session, FakeRuntime::new().module("Shop"), "exceptions").expect("is attached");
    // As after kill -9: nothing is requested.
    drop(writer);
    end(&mut program);
    assert_eq!(left_over(&session), (0, before));
}

#[test]
fn a_duration_ends_the_recording_and_the_agent_leaves() {
    let session = Session::new();
    let before = left_over(&session).1;
    let _writer = launcher(&session);
    let mut program = attach(&session, FakeRuntime::new(), "events:threads;duration=30ms").expect("is attached");
    // It begins when what comes first is done.
    testkit::pause(Duration::from_millis(60));
    assert_eq!(standing(&session.out()), Some(Standing::Recording));
    program.play(&[on(0, ProfilerAttachComplete())]);
    end(&mut program);
    assert_eq!(left_over(&session), (0, before));
}

#[test]
fn what_attach_does_not_allow_is_refused_and_nothing_stays() {
    let session = Session::new();
    let before = left_over(&session).1;
    for (instruments, words) in
        [("calls", "hooks"), ("exceptions:args;include=Shop", "hooks"), ("events:transitions", "transitions")]
    {
        let _ = fs::remove_dir_all(session.out());
        let _writer = launcher(&session);
        let refused = attach(&session, FakeRuntime::new(), instruments).map(drop).expect_err(instruments);
        assert_eq!(refused.hresult(), HResult::UNSUPPORTED_FOR_ATTACH);
        assert_eq!(left_over(&session), (0, before), "{instruments}");
        let recording = session.recording();
        let why = recording.processes.iter().find_map(Process::refusal).expect("the reason is in the recording");
        assert!(why.contains(words) && why.contains("clrscope run -i "), "{why}");
    }
}
