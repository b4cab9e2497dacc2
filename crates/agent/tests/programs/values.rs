//! Values as they are shown: their own class from the first sight on, the form that people know,
//! and nothing of secrets.

use std::collections::BTreeMap;

use crate::support::{Run, record};
use clrscope_analysis::{FlowKind, FlowLog, Query, Value};
use clrscope_recording::model::Recording;
use clrscope_testkit::each_runtime;

/// Visits the calls of the fixture's own methods: whether a call begins, its name, its first
/// argument, its result.
fn calls(recording: &Recording, mut visit: impl FnMut(bool, &str, Option<&Value<'_>>, Option<&Value<'_>>)) {
    let log = FlowLog::open(recording, &Query::default(), None).expect("flow was recorded");
    let Ok(_) = log.walk(|row| -> Result<(), std::convert::Infallible> {
        let Some(captured) = row.captured() else { return Ok(()) };
        let name = row.function.name().rsplit("::").next().unwrap_or_default();
        let first = captured.arguments.first().and_then(|argument| argument.value.as_ref());
        visit(row.kind == FlowKind::Enter, name, first, captured.returns.as_ref().map(|(_, value)| value));
        Ok(())
    });
}

/// Lines of the fixture that begin with a word, without it.
fn said(run: &Run, word: &str) -> Vec<String> {
    let text = run.finished.stdout_text();
    text.lines().filter_map(|line| Some(line.strip_prefix(word)?.trim().to_owned())).collect()
}

fn type_of<'v>(value: &Value<'v>) -> &'v str {
    match value {
        Value::Object { type_name, .. }
        | Value::Struct { type_name, .. }
        | Value::Enum { type_name, .. }
        | Value::Boxed { type_name, .. }
        | Value::OfType { type_name }
        | Value::Type { type_name, .. }
        | Value::Array { type_name, .. } => type_name,
        other => panic!("{other:?}"),
    }
}

/// `KeyValuePair` of `System.Collections.Generic.KeyValuePair<int, string>`.
fn short(type_name: &str) -> &str {
    let plain = type_name.split('<').next().unwrap_or(type_name);
    plain.rsplit(['.', '+']).next().unwrap_or(plain)
}

#[test]
fn the_class_of_an_object_is_known_at_its_first_sight() {
    for request in ["flow:args", "flow:args,depth=0", "flow:args=types"] {
        each_runtime(|runtime| {
            let run = record(runtime, "Values", &format!("{request};include=*Values.Program::Sight*"));
            let mut seen = Vec::new();
            calls(&run.recording, |begins, name, first, _| {
                if begins && name.starts_with("Sight") {
                    seen.push(short(type_of(first.expect("a value"))).to_owned());
                }
            });
            assert_eq!(seen, said(&run, "SIGHT"), "{} with {request}", runtime.version);
        });
    }
}

#[test]
fn values_are_known_by_what_people_call_them() {
    each_runtime(|runtime| {
        let run = record(runtime, "Values", "flow:args;include=*Values.Program::*");
        let mut truth: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in said(&run, "KNOWN") {
            let (name, text) = line.split_once(' ').expect("a name");
            truth.entry(name.to_owned()).or_default().push(text.to_owned());
        }
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        calls(&run.recording, |begins, name, first, _| {
            if begins && truth.contains_key(name) {
                let value = first.expect("a value");
                let text = match value {
                    Value::Boxed { type_name, .. } => (*type_name).to_owned(),
                    value => value.text().unwrap_or_else(|| format!("{value:?}")),
                };
                found.entry(name.to_owned()).or_default().push(text);
            }
        });
        assert!(truth.len() >= 15, "{truth:?}");
        assert_eq!(found, truth, "{}", runtime.version);
    });
}

#[test]
fn collections_are_shown_by_their_elements() {
    const TAKERS: [&str; 6] = ["Listed", "Queued", "Stacked", "InSet", "Mapped", "Derived"];
    each_runtime(|runtime| {
        let run = record(runtime, "Values", "flow:args;include=*Values.Program::*");
        let (mut found, mut matrix) = (Vec::new(), None);
        calls(&run.recording, |begins, name, first, _| match first {
            Some(value) if begins && TAKERS.contains(&name) => {
                let elements = value.elements().unwrap_or_else(|| panic!("{value:?}"));
                let numbers = elements.items.iter().map(|(_, item)| match item {
                    Value::Int(number) => number.to_string(),
                    other => panic!("{other:?}"),
                });
                let numbers: Vec<String> = numbers.collect();
                found.push(format!("{} {}", elements.count, numbers.join(",")).trim().to_owned());
            }
            Some(Value::Array { dimensions, items, .. }) if begins && name == "Matrix" => {
                matrix = Some((dimensions.clone(), items.len()));
            }
            _ => {}
        });
        assert_eq!(found, said(&run, "HOLDS"), "{}", runtime.version);
        assert_eq!(matrix, Some((vec![2, 3], 6)), "{}", runtime.version);
    });
}

/// Whether a text or a number of the program was recorded, anywhere.
fn holds(recording: &Recording, secret: &[u8]) -> bool {
    let chunks = recording.processes[0].events.iter().flat_map(|arena| &arena.chunks);
    chunks.into_iter().any(|chunk| chunk.bytes.load().windows(secret.len()).any(|window| window == secret))
}

#[test]
fn no_name_of_a_secret_lets_it_through() {
    let text: Vec<u8> = "hunter2".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let number = 0x5EC_12E7_u32.to_le_bytes();
    each_runtime(|runtime| {
        for reader in ["flow:args,depth=3", "exceptions:args"] {
            let open = record(runtime, "Values", &format!("{reader};include=[Values]*"));
            let hidden = record(runtime, "Values", &format!("{reader};include=[Values]*;redact=*password*"));
            assert_eq!(hidden.finished.stdout_text(), open.finished.stdout_text(), "{}", runtime.version);
            if reader.starts_with("flow") {
                let both = [&text[..], &number].map(|secret| holds(&open.recording, secret));
                assert_eq!(both, [true; 2], "the test finds what is not hidden");
            }
            for secret in [&text[..], &number] {
                assert!(!holds(&hidden.recording, secret), "{} with {reader}: {secret:x?}", runtime.version);
            }
        }
    });
}

#[test]
fn a_secret_field_does_not_move_the_arguments_behind_it() {
    each_runtime(|runtime| {
        let run = record(runtime, "Values", "flow:args;include=*Values.Program::Pinned;redact=*password*");
        let log = FlowLog::open(&run.recording, &Query::default(), None).expect("flow was recorded");
        let mut seen = 0;
        let Ok(_) = log.walk(|row| -> Result<(), std::convert::Infallible> {
            let captured = row.captured().expect("values");
            if row.kind == FlowKind::Enter {
                let [before, Some(Value::Struct { fields, .. }), after] =
                    [0, 1, 2].map(|at| captured.arguments[at].value.as_ref())
                else {
                    panic!("{captured:?}")
                };
                assert_eq!((before, after), (Some(&Value::Int(1)), Some(&Value::Int(3))), "{}", runtime.version);
                let fields: Vec<_> = fields.iter().map(|field| (field.name, &field.value)).collect();
                assert_eq!(fields, [("Before", &Value::Int(2)), ("PasswordNumber", &Value::Redacted)]);
                seen += 1;
            }
            Ok(())
        });
        assert_eq!(seen, 1);
    });
}

/// Targets are methods, virtual ones and static ones, which are compiled when they are first
/// called: after the delegate was seen.
#[test]
fn a_delegate_is_known_by_the_method_that_it_calls() {
    each_runtime(|runtime| {
        let run = record(runtime, "Delegates", "flow:args;include=*Delegates.Program::*");
        let mut seen = BTreeMap::new();
        calls(&run.recording, |begins, name, first, _| {
            if begins && name == "Invoke" {
                let method = first.and_then(Value::method).unwrap_or("?").to_owned();
                *seen.entry(method).or_insert(0) += 1;
            }
        });
        let truth = ["Greeter::Greet", "PoliteGreeter::Greet", "Program::Triple"];
        let truth = truth.map(|name| (format!("Delegates.{name}"), 3_000)).into_iter().collect();
        assert_eq!(seen, truth, "{}", runtime.version);
    });
}
