//! Where values are read: as the runtime itself says, and never where nothing is. Programs live on and say what they
//! say, whatever they hand over.

mod support;

use std::process::Command;

use clrscope_analysis::{Argument, FlowKind, FlowLog, FlowRow, Passing, Query, Value};
use clrscope_recording::model::{LossReason, Recording};
use clrscope_testkit::{Runtime, Sdk, each_runtime, fixture, run, scratch};
use support::{Run, record_command, record_with};

/// Both instruments that read values, of all methods of the program and of the framework.
const READERS: [&str; 2] = ["flow:args,last=64MiB;include=*", "exceptions:args;include=*"];

/// What the last remark of a comparison says: functions and results compared, places unknown, places wrong.
fn compared(recording: &Recording, place: &str) -> [u64; 4] {
    let remarks = recording.processes.iter().flat_map(|process| &process.remarks);
    let all: Vec<String> =
        remarks.map(ToString::to_string).filter(|text| text.starts_with("flow:args=check")).collect();
    let last = all.last().unwrap_or_else(|| panic!("{place}: nothing was compared"));
    let numbers: Vec<u64> = last.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    let found: [u64; 4] = numbers.try_into().unwrap_or_else(|_| panic!("{place}: {last}"));
    assert_eq!(found[3], 0, "{place}: {all:#?}");
    found
}

#[test]
fn plans_say_what_the_runtimes_own_argument_ranges_say() {
    each_runtime(|runtime| {
        for (name, least) in [("Signatures", 2_000), ("Arguments", 1_500)] {
            let seen = record_with(runtime, name, "flow:args=check;include=*", &[]);
            let place = format!("{name} on {}", runtime.version);
            let [functions, results, unknown, _] = compared(&seen.recording, &place);
            assert!(functions > least && results > least, "{place}: {functions} functions, {results} results");
            assert!(name != "Signatures" || unknown == 0, "{place}: {unknown} places are not known");
        }
    });
}

/// A compilation of a tiny program, where there is a compiler; the runtime is the compiler's own.
fn compilation(runtime: &Runtime, out: &std::path::Path) -> Option<Command> {
    let sdk = Sdk::find().filter(|sdk| sdk.root == runtime.root && runtime.version.major >= sdk.version.major)?;
    let source = out.join("tiny.cs");
    std::fs::write(&source, "System.Console.WriteLine(string.Join(',', args));").expect("a file");
    let mut command = sdk.compiler();
    command.args(["-noconfig", "-nologo", "-nostdlib", "-deterministic"]);
    for name in ["System.Runtime", "System.Console"] {
        let folder = sdk.root.join(format!("packs/Microsoft.NETCore.App.Ref/{}/ref/net8.0", sdk.references));
        command.arg(format!("-r:{}", folder.join(format!("{name}.dll")).display()));
    }
    command.arg(format!("-out:{}", out.join("tiny.dll").display())).arg(source);
    Some(command)
}

#[test]
fn plans_of_a_compiler_say_what_the_runtimes_own_argument_ranges_say() {
    each_runtime(|runtime| {
        let out = scratch();
        let Some(command) = compilation(runtime, out.path()) else { return };
        let seen = record_command(runtime, "csc", "flow:args=check;include=*", command);
        assert!(seen.finished.status.success(), "{}", seen.finished.stdout_text());
        let [functions, ..] = compared(&seen.recording, "csc");
        assert!(functions > 5_000, "{functions} functions");
    });
}

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
                let [(_, Value::Int(x)), (_, Value::String { text, .. })] = fields.as_slice() else {
                    panic!("{fields:?}")
                };
                points.push((*x, text.clone()));
            }
        });
        let truth = [0, 1, 2].map(|x| (x, format!("p{x}")));
        assert_eq!(points, truth, "{}", runtime.version);
    });
}
