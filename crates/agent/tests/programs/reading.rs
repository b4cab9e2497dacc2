//! Values are never read where nothing is: programs live on and say what they say, whatever they
//! hand over.

use crate::support::{self, Run, record_confined, record_with};
use clrscope_analysis::{Argument, Field, FlowKind, FlowLog, FlowRow, Passing, Query, Value};
use clrscope_recording::model::{LossReason, Recording};
use clrscope_testkit::{Runtime, confine, each_runtime, fixture, run};

/// Both instruments that read values, of all methods of the program and of the framework.
const READERS: [&str; 2] = ["flow:args,last=64MiB;include=*", "exceptions:args;include=*"];

/// Runs a fixture bare and under each reader: it says the same, and no plan turns out to be wrong.
fn survives(name: &str, arguments: &[&str]) {
    each_runtime(|runtime| {
        let mut bare = runtime.command(&fixture(name));
        bare.args(arguments);
        let bare = run(bare).expect_success();
        for reader in READERS {
            let seen = record_with(runtime, name, reader, arguments);
            let place = format!("{name} {arguments:?} on {} with {reader}", runtime.version);
            support::assert_unchanged(&seen.finished, &bare, &place);
            nothing_unread(&seen.recording, &place);
        }
    });
}

fn nothing_unread(recording: &Recording, place: &str) {
    let losses = recording.processes.iter().flat_map(|process| &process.losses);
    let unread: Vec<_> = losses.filter(|loss| loss.reason == LossReason::ValuesUnread).collect();
    assert!(unread.is_empty(), "{place}: {unread:?} {:?}", recording.processes[0].remarks);
}

#[test]
fn an_event_listener_survives_the_reading_of_all_values() {
    survives("Chatter", &["listen"]);
}

#[test]
fn an_http_client_survives_the_reading_of_all_values() {
    survives("Chatter", &["http", "40"]);
}

#[test]
fn spans_and_references_to_memory_that_is_gone_are_not_followed() {
    survives("Gone", &[]);
}

/// The rows of a function, in order.
fn rows(seen: &Run, name: &str, mut act: impl FnMut(&FlowRow<'_>)) {
    let log = FlowLog::open(&seen.recording, &Query::default(), None).expect("flow was recorded");
    let walked = log.walk(|row| -> Result<(), std::convert::Infallible> {
        if row.function.name() == name {
            act(row);
        }
        Ok(())
    });
    let Ok(_) = walked;
}

fn of_gone(runtime: &Runtime) -> Run {
    record_with(runtime, "Gone", "flow:args,depth=2;include=[Gone]*", &[])
}

#[test]
fn what_a_span_to_memory_that_is_gone_holds_is_unknown() {
    each_runtime(|runtime| {
        let (seen, mut unknown) = (of_gone(runtime), 0);
        rows(&seen, "Gone.Program::Length", |row| {
            let Some(captured) = row.captured().filter(|_| row.kind == FlowKind::Enter) else { return };
            let [Argument { value: Some(Value::Array { length, items, .. }), .. }] = captured.arguments.as_slice()
            else {
                panic!("{captured:?}")
            };
            assert!(*length > 0 && items.len() == (*length).min(16) as usize, "{captured:?}");
            unknown += usize::from(items.iter().all(|item| *item == Value::Unknown));
        });
        assert!(unknown >= 6, "{}: {unknown} spans", runtime.version);
    });
}

#[test]
fn a_reference_one_past_the_end_leads_to_no_object() {
    each_runtime(|runtime| {
        let (seen, mut ends) = (of_gone(runtime), 0);
        rows(&seen, "Gone.Program::UntouchedThing", |row| {
            for argument in row.captured().expect("values").arguments {
                assert!(matches!(argument.value, Some(Value::Unknown | Value::Null)), "{argument:?}");
                ends += 1;
            }
        });
        assert_eq!(ends, 1_000, "{}", runtime.version);
    });
}

#[test]
fn a_value_that_is_being_constructed_is_shown_when_it_is_there() {
    each_runtime(|runtime| {
        let (seen, mut points) = (of_gone(runtime), Vec::new());
        rows(&seen, "Gone.Point::.ctor", |row| {
            let captured = row.captured().expect("values");
            if row.kind == FlowKind::Enter {
                let this = captured.this.as_ref().expect("`this`");
                assert_eq!((this.passing, &this.value), (Passing::Out, &None));
            } else {
                let [Argument { name: "this", value: Some(Value::Struct { fields, .. }), .. }] =
                    captured.arguments.as_slice()
                else {
                    panic!("{captured:?}")
                };
                let [Field { value: Value::Int(x), .. }, Field { value: Value::String { text, .. }, .. }] =
                    fields.as_slice()
                else {
                    panic!("{fields:?}")
                };
                points.push((*x, text.clone()));
            }
        });
        let truth = [0, 1, 2].map(|x| (x, format!("p{x}")));
        assert_eq!(points, truth, "{}", runtime.version);
    });
}

#[test]
fn where_the_system_copies_no_memory_nothing_is_read_that_may_not_be_there() {
    each_runtime(|runtime| {
        for name in ["Gone", "Values"] {
            let bare = run(runtime.command(&fixture(name))).expect_success();
            for reader in READERS {
                let Some(seen) = record_confined(runtime, name, reader, confine::without_copies) else { return };
                let place = format!("{name} on {} with {reader}", runtime.version);
                support::assert_unchanged(&seen.finished, &bare, &place);
                let process = &seen.recording.processes[0];
                assert!(process.remarks.iter().any(|remark| remark.text.contains("process_vm_readv")), "{place}");
                assert!(!process.remarks.iter().any(|remark| remark.text.contains("not where they")), "{place}");
                let unread = process.losses.iter().find(|loss| loss.reason == LossReason::ValuesUnread);
                assert!(unread.is_some_and(|unread| unread.count > 1_000), "{place}: {:?}", process.losses);
            }
        }
    });
}
