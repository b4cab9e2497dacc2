//! Every argument and result against what the program itself says of them, on every runtime at
//! hand.

use crate::support::said::{Call, argument, plain, said, same};
use crate::support::{record, record_in};
use clrscope_analysis::{FlowKind, FlowLog, Passing, Query, Value as Taken};
use clrscope_recording::model::Recording;
use clrscope_testkit::{each_runtime, run};
use serde_json::Value;

/// Recorded calls, in the form of what the program says.
fn recorded(recording: &Recording, names: &[String]) -> Vec<Call> {
    let log = FlowLog::open(recording, &Query::default(), None).expect("flow was recorded");
    let mut found = Vec::new();
    let walked = log.walk(|row| -> Result<(), std::convert::Infallible> {
        let name = row.function.name().rsplit("::").next().unwrap_or_default().to_owned();
        if names.contains(&name) {
            let captured = row.captured().expect("values of the program's own functions");
            let all = captured.this.iter().chain(&captured.arguments);
            let args = all.filter(|a| a.value.is_some() && a.value != Some(Taken::Redacted)).map(argument);
            let returns = captured.returns.as_ref().map_or(Value::Null, |(_, value)| plain(value));
            let is_begin = row.kind == FlowKind::Enter;
            found.push(Call { is_begin, name, args: Value::Object(args.collect()), returns });
        }
        Ok(())
    });
    let Ok(_) = walked;
    found
}

fn check(request: &str, environment: &[(&str, &str)]) {
    each_runtime(|runtime| {
        let bare = run(runtime.command(&clrscope_testkit::fixture("Arguments"))).expect_success();
        let request = format!("{request};include=[Arguments]*;redact=passw*");
        let run = record_in(runtime, "Arguments", &request, environment);
        let place = format!("{} with {request} {environment:?}", runtime.version);
        assert_eq!(run.finished.stdout_text(), bare.stdout_text(), "{place}: stdout");
        assert_eq!(run.recording.problems, [], "{place}");
        assert_eq!(run.recording.processes[0].losses, [], "{place}");
        let said = said(&run.finished.stdout_text());
        assert!(said.len() > 100, "{place}: the program says too little");
        let names: Vec<String> = said.iter().map(|call| call.name.clone()).collect();
        let recorded = recorded(&run.recording, &names);
        assert_eq!(recorded.len(), said.len(), "{place}: calls");
        for (truth, found) in said.iter().zip(&recorded) {
            let right = (truth.is_begin, &truth.name) == (found.is_begin, &found.name)
                && same(&truth.args, &found.args)
                && same(&truth.returns, &found.returns);
            assert!(right, "{place}:\n said {truth:?}\nfound {found:?}");
        }
        assert_eq!(hot(&run.recording), 60_000, "{place}: the method that was recompiled while it was hot");
        collecting(&run.recording, &place);
    });
}

/// Calls of `Hot` whose values are those of the loop that makes them, in every tier of its code.
fn hot(recording: &Recording) -> i64 {
    let log = FlowLog::open(recording, &Query::default(), None).expect("flow was recorded");
    let mut number = 0;
    let walked = log.walk(|row| -> Result<(), std::convert::Infallible> {
        if row.function.name().ends_with("::Hot") {
            let captured = row.captured().expect("values");
            let args: Vec<_> = captured.arguments.iter().filter_map(|a| a.value.clone()).collect();
            if row.kind == FlowKind::Enter {
                let truth = [Taken::Int(number), Taken::Int(-2 * number), Taken::Double(number as f64 * 0.5)];
                assert_eq!(args, truth, "call {number}");
            } else {
                let sum = number - 2 * number + (number as f64 * 0.5) as i64;
                assert_eq!(captured.returns, Some(("long", Taken::Int(sum))), "call {number}");
                number += 1;
            }
        }
        Ok(())
    });
    let Ok(_) = walked;
    number
}

/// Calls during which everything in the heap moved: what they were given the address of is shown as
/// it is, or not at all.
fn collecting(recording: &Recording, place: &str) {
    let log = FlowLog::open(recording, &Query::default(), None).expect("flow was recorded");
    let mut ends = 0;
    let walked = log.walk(|row| -> Result<(), std::convert::Infallible> {
        if row.kind == FlowKind::Leave && row.function.name().ends_with("::Collecting") {
            let captured = row.captured().expect("values");
            let Some((_, Taken::Int(sum))) = captured.returns else { panic!("{place}: {captured:?}") };
            let text = format!("t{sum}");
            let truth = [Taken::Int(sum), Taken::String { length: text.len() as u32, text, is_cut: false }];
            // The first of three calls is given variables on the stack, the last a string on it.
            let on_stack = [ends % 3 == 0, ends % 3 != 1];
            for ((argument, truth), on_stack) in captured.arguments.iter().zip(truth).zip(on_stack) {
                let found = argument.value.as_ref().expect("a value");
                assert!(*found == truth || *found == Taken::Unknown && !on_stack, "{place}, call {ends}: {argument:?}");
            }
            ends += 1;
        }
        Ok(())
    });
    let Ok(_) = walked;
    assert_eq!(ends, 9, "{place}");
}

#[test]
fn values_are_what_the_program_says() {
    check("flow:args", &[]);
}

#[test]
fn values_are_what_the_program_says_when_all_code_is_optimised_at_once() {
    check("flow:args", &[("DOTNET_TieredCompilation", "0")]);
}

#[test]
fn values_are_what_the_program_says_beside_the_tree() {
    check("calls;flow:args,all", &[]);
}

/// Calls of these methods are what the program says, and under `exceptions:args` the program says
/// it, too.
fn check_only(names: &[&str]) {
    each_runtime(|runtime| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let run = record(runtime, "Arguments", "flow:args;include=[Arguments]*");
        let mut said = said(&run.finished.stdout_text());
        said.retain(|call| names.contains(&call.name));
        let recorded = recorded(&run.recording, &names);
        assert!(!said.is_empty() && said.len() == recorded.len(), "{}: {} calls", runtime.version, recorded.len());
        for (truth, found) in said.iter().zip(&recorded) {
            let is_same = same(&truth.args, &found.args) && same(&truth.returns, &found.returns);
            assert!(is_same, "{}:\n said {truth:?}\nfound {found:?}", runtime.version);
        }
        let kept = record(runtime, "Arguments", "exceptions:args;include=[Arguments]*");
        assert_eq!(kept.finished.stdout_text(), run.finished.stdout_text(), "{}", runtime.version);
    });
}

#[test]
fn a_generic_method_of_a_shared_class_is_given_a_hidden_argument() {
    check_only(&["WeighAny", "AddAny", "AddStatic", "WriteState", "WeighValue"]);
}

#[test]
fn a_default_method_of_a_generic_interface_is_given_a_hidden_argument() {
    check_only(&["WeighByDefault", "AddByDefault"]);
}

#[test]
fn an_inline_array_shows_all_its_elements() {
    check_only(&["TakeInline"]);
}

#[test]
fn types_alone_hold_no_values() {
    each_runtime(|runtime| {
        let run = record(runtime, "Arguments", "flow:args=types;include=[Arguments]*");
        let log = FlowLog::open(&run.recording, &Query::default(), None).expect("flow was recorded");
        let mut seen = 0;
        let walked = log.walk(|row| -> Result<(), std::convert::Infallible> {
            let Some(captured) = row.captured() else { return Ok(()) };
            for argument in captured.this.iter().chain(&captured.arguments) {
                assert!(!argument.type_name.is_empty(), "{argument:?}");
                match &argument.value {
                    Some(value) => assert!(is_bare(value), "{argument:?}"),
                    None => assert_eq!(argument.passing, Passing::Out),
                }
                seen += 1;
            }
            Ok(())
        });
        let Ok(_) = walked;
        assert!(seen > 100_000, "{seen}");
    });
}

/// Whether a value has its type at most.
fn is_bare(value: &Taken<'_>) -> bool {
    matches!(value, Taken::Null | Taken::Hidden | Taken::OfType { .. })
}

/// Whether a text of the program stands in the events of a recording.
fn holds(recording: &Recording, text: &str) -> bool {
    let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let chunks = recording.processes[0].events.iter().flat_map(|arena| &arena.chunks);
    chunks.into_iter().any(|chunk| chunk.bytes.load().windows(text.len()).any(|window| window == text))
}

#[test]
fn redacted_values_are_nowhere_in_the_recording() {
    each_runtime(|runtime| {
        let open = record(runtime, "Arguments", "flow:args;include=[Arguments]*Program::Secrets");
        assert!(holds(&open.recording, "hunter2"), "the test finds what is not hidden");
        let hidden = record(runtime, "Arguments", "flow:args;include=[Arguments]*Program::Secrets;redact=*word");
        assert!(!holds(&hidden.recording, "hunter2"), "the password was recorded");
    });
}

/// Least depth to which an object is opened.
fn depth_of(value: &Taken<'_>) -> u32 {
    match value {
        Taken::Object { fields, .. } if !fields.is_empty() => {
            1 + fields.iter().map(|field| depth_of(&field.value)).max().unwrap_or(0)
        }
        Taken::Array { items, .. } => items.iter().map(depth_of).max().unwrap_or(0),
        _ => 0,
    }
}

#[test]
fn objects_are_opened_as_deep_as_asked() {
    each_runtime(|runtime| {
        for depth in [0, 1, 2] {
            let request = format!("flow:args,depth={depth};include=[Arguments]*Program::Objects");
            let run = record(runtime, "Arguments", &request);
            let log = FlowLog::open(&run.recording, &Query::default(), None).expect("flow was recorded");
            let mut deepest = 0;
            let Ok(_) = log.walk(|row| -> Result<(), std::convert::Infallible> {
                let captured = row.captured().expect("values");
                let values = captured.arguments.iter().filter_map(|argument| argument.value.as_ref());
                deepest = values.map(depth_of).max().unwrap_or(0).max(deepest);
                Ok(())
            });
            // A dog has a friend, who has none.
            assert_eq!(deepest, depth, "{request} on {}", runtime.version);
        }
    });
}

/// A field was hidden, and stood in the result of `ToString` of the same object, and of an object
/// that holds it.
#[test]
fn texts_that_objects_make_of_themselves_have_no_hidden_values() {
    each_runtime(|runtime| {
        let recorded =
            |rest: &str| record(runtime, "Redacted", &format!("flow:args,depth=3;include=[Redacted]*{rest}")).recording;
        assert!(holds(&recorded(""), "hunter2"), "the test finds what is not hidden");
        let hidden = recorded(";redact=*word*");
        assert!(!holds(&hidden, "hunter2"), "the password was recorded on {}", runtime.version);
        assert!(holds(&hidden, "plain 5"), "texts without secrets stay");
    });
}
