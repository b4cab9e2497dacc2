//! Start-up: what is refused and in which words, what is recorded of a start, and attach.

use clr_profiler::{Events, HResult};
use clr_profiler_fake::{Event::*, FakeRuntime, on};
use clrscope_contract::instruments::spec::Limit;
use clrscope_contract::instruments::{Spec, heap};
use clrscope_recording::events::{Kind, OwnedRecord};

use super::Session;
use crate::services::context::Beginning;
use crate::{Agent, instruments};

fn refusal(request: &str) -> String {
    let session = Session::new();
    let error = session.load(FakeRuntime::new(), request, Events::NONE).err().expect("is refused");
    assert_eq!(error.hresult(), HResult::CANCEL_ACTIVATION);
    let recording = session.recording();
    recording.processes.iter().find_map(|process| process.refusal().map(str::to_owned)).unwrap_or_default()
}

#[test]
fn an_unknown_instrument_is_refused_with_the_names_of_all() {
    let why = refusal("colour");
    assert!(
        why.contains("there is no instrument 'colour'; known instruments: calls, flow, events, exceptions"),
        "{why}"
    );
    for spec in instruments::ALL {
        assert!(why.contains(spec.name), "{}", spec.name);
    }
}

#[test]
fn every_instrument_of_the_contract_is_in_the_agent() {
    let names = |all: &[&Spec]| all.iter().map(|spec| spec.name).collect::<Vec<_>>();
    assert_eq!(names(instruments::ALL), names(clrscope_contract::instruments::ALL));
}

#[test]
fn options_that_are_not_understood_and_conflicts_are_refused() {
    assert!(refusal("calls:speed=9").contains("instrument 'calls' has no option 'speed'"));
    assert!(refusal("flow;exceptions:args;include=*").contains("flow"));
}

#[test]
fn a_program_that_was_not_asked_for_leaves_no_trace() {
    let session = Session::new();
    assert!(session.load(FakeRuntime::new(), "calls;only=SomebodyElse", Events::NONE).is_err());
    assert!(!session.out().exists());
}

#[test]
fn an_attached_agent_records_and_says_that_it_was_attached() {
    let session = Session::new();
    let request = session.request("events:runtime,threads");
    let runtime = FakeRuntime::new();
    let thread = runtime.thread(1);
    let mut program = runtime.attach::<Agent>(request.as_bytes()).expect("is attached");
    program.play(&[on(1, ProfilerAttachComplete()), on(1, ThreadCreated(thread)), on(0, Shutdown())]);
    let process = session.process();
    let records: Vec<_> = process
        .events
        .iter()
        .flat_map(|arena| &arena.chunks)
        .flat_map(|chunk| OwnedRecord::all(&chunk.bytes.load()))
        .collect();
    let kinds: Vec<Kind> =
        records.iter().map(|record| record.record().kind).filter(|kind| kind.name().is_some()).collect();
    let expected = [Kind::INITIALIZE_FOR_ATTACH, Kind::PROFILER_ATTACH_COMPLETE, Kind::THREAD_CREATED, Kind::SHUTDOWN];
    assert!(expected.iter().all(|kind| kinds.contains(kind)) && kinds.len() == expected.len(), "{kinds:?}");
}

#[test]
fn an_attached_agent_is_refused_hooks_in_a_sentence() {
    let session = Session::new();
    let refused = FakeRuntime::new().attach::<Agent>(session.request("calls").as_bytes()).err().expect("is refused");
    assert_eq!(refused.hresult(), HResult::UNSUPPORTED_FOR_ATTACH);
    let process = session.process();
    let refusal = process.refusal().unwrap_or_default();
    assert!(refusal.contains("calls needs enter and leave hooks"), "{refusal}");
}

/// The fake runtime checks events as the runtimes do, and gives no hooks.
#[test]
fn what_works_without_the_main_slot_asks_for_nothing_that_the_runtime_refuses_there() {
    for spec in instruments::ALL {
        let session = Session::new();
        let moment = if spec.name == heap::SPEC.name { ":at=command" } else { "" };
        let request = session.request(&format!("{}{moment}", spec.name));
        let loaded = FakeRuntime::new()
            .load_as_notification_only_with(move |info| Agent::start(info, &request, Beginning::Launch));
        let is_allowed = matches!(spec.notification_only, Limit::Without(_));
        assert_eq!(loaded.is_ok(), is_allowed, "{}: {:?}", spec.name, loaded.err());
        if is_allowed {
            let process = session.process();
            let said = process.remarks.iter().any(|remark| remark.text.starts_with("notification-only: "));
            assert!(said, "{}: {:?}", spec.name, process.remarks);
        }
    }
}
