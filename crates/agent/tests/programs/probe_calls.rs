//! Each call of probed methods with its values, against what programs say of their calls
//! themselves.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::counted::{probed_lines, said_hits, source};
use crate::support::said::{Call, argument, plain, said, same};
use crate::support::{assert_unchanged, record, record_command, record_in, record_with};
use clrscope_analysis::{ProbeCall, ProbeLog, Query, Value as Taken, probes};
use clrscope_recording::model::{Loss, LossReason, Recording};
use clrscope_testkit::{Expectations, each_runtime, fixture, run};
use serde_json::{Value, json};

/// Visits the calls of a recording in the order in which they began.
fn visit(recording: &Recording, mut visit: impl FnMut(&ProbeCall<'_>)) {
    let log = ProbeLog::open(recording, &Query::default()).expect("each call was recorded");
    let Ok(_) = log.walk(|call| -> Result<(), std::convert::Infallible> {
        visit(call);
        Ok(())
    });
}

/// Begins and ends of the calls of a method, each in its order, in the form of what the program
/// says.
#[derive(Default, Debug)]
struct Ends {
    begins: Vec<Value>,
    returns: Vec<(u64, Value, Value)>,
}

/// Calls by the methods' own names.
fn recorded(recording: &Recording) -> BTreeMap<String, Ends> {
    let mut all: BTreeMap<String, Ends> = BTreeMap::new();
    visit(recording, |call| {
        let name = call.method.name.rsplit("::").next().unwrap_or_default().to_owned();
        let of = all.entry(name).or_default();
        let all_given = call.arguments.as_ref().map(|begin| {
            let given = begin.this.iter().chain(&begin.arguments);
            let given = given.filter(|a| a.value.is_some() && a.value != Some(Taken::Redacted)).map(argument);
            Value::Object(given.collect())
        });
        of.begins.push(all_given.unwrap_or(json!("Unknown")));
        let Some(ended) = call.duration_ns.map(|duration| call.time_ns + duration) else { return };
        let (returns, left) = match &call.results {
            Some(end) => {
                let returns = end.returns.as_ref().map_or(Value::Null, |(_, value)| plain(value));
                (returns, Value::Object(end.arguments.iter().map(argument).collect()))
            }
            None => (json!("Unknown"), json!("Unknown")),
        };
        of.returns.push((ended, returns, left));
    });
    all.values_mut().for_each(|of| of.returns.sort_by_key(|(ended, ..)| *ended));
    all
}

/// Whether what was found is what the program says, or says where it does not know. Notes the
/// method where it does not.
fn agrees(truth: &Value, found: &Value, unknown: &mut bool) -> bool {
    if *found == json!("Unknown") {
        *unknown = true;
        return true;
    }
    match (truth, found) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| agrees(a, b, unknown)))
        }
        _ => same(truth, found),
    }
}

/// Methods that are only partly known: results of code of `async` methods that have no field for
/// their task, and the code of generic ones.
const NOT_ALL_KNOWN: [&str; 12] = [
    "EchoAsync",
    "EmptyAsync",
    "EmptyLaterAsync",
    "FetchAsync",
    "PairAsync",
    "PooledAsync",
    "PooledEmptyAsync",
    "PooledLaterAsync",
    "ValueAsync",
    "ValueCollectsAsync",
    "ValueFailsAsync",
    "ValueLaterAsync",
];

fn check(request: &str, environment: &[(&str, &str)]) {
    each_runtime(|runtime| {
        let bare = run(runtime.command(&fixture("Arguments"))).expect_success();
        let request = format!("{request};probe=[Arguments]*;redact=passw*");
        let run = record_in(runtime, "Arguments", &request, environment);
        let place = format!("{} with {request} {environment:?}", runtime.version);
        assert_eq!(run.finished.stdout_text(), bare.stdout_text(), "{place}: stdout");
        assert_eq!(run.recording.problems, [], "{place}");
        let recorded = recorded(&run.recording);
        let mut unknown = BTreeSet::new();
        let mut compared = 0;
        let mut said_by: BTreeMap<String, (Vec<Call>, Vec<Call>)> = BTreeMap::new();
        for call in said(&run.finished.stdout_text()) {
            let of = said_by.entry(call.name.clone()).or_default();
            if call.is_begin { of.0.push(call) } else { of.1.push(call) }
        }
        for (name, (begins, returns)) in &said_by {
            let found = recorded.get(name).unwrap_or_else(|| panic!("{place}: no call of {name}"));
            let mut is_unknown = false;
            assert_eq!(found.begins.len(), begins.len(), "{place}: {name} {found:#?}");
            for (truth, found) in begins.iter().zip(&found.begins) {
                assert!(agrees(&truth.args, found, &mut is_unknown), "{place}:\n said {truth:?}\nfound {found:?}");
                compared += 1;
            }
            assert_eq!(found.returns.len(), returns.len(), "{place}: {name} {found:#?}");
            for (truth, (_, result, left)) in returns.iter().zip(&found.returns) {
                let is_right =
                    agrees(&truth.returns, result, &mut is_unknown) && agrees(&truth.args, left, &mut is_unknown);
                assert!(is_right, "{place}:\n said {truth:?}\nfound {result:?} {left:?}");
                compared += 1;
            }
            if is_unknown {
                unknown.insert(name.as_str());
            }
        }
        assert_eq!(unknown, NOT_ALL_KNOWN.into(), "{place}");
        assert!(compared > 800, "{place}: {compared}");
    });
}

#[test]
fn values_are_what_the_program_says() {
    check("probes:args", &[]);
}

#[test]
fn values_are_what_the_program_says_when_all_code_is_optimised_at_once() {
    check("probes:args", &[("DOTNET_TieredCompilation", "0")]);
}

/// Everything in the heap moves at each allocation.
#[test]
fn values_are_what_the_program_says_while_objects_move_all_the_time() {
    check("probes:args", &[("DOTNET_GCStress", "0"), ("DOTNET_GCgen0size", "10000")]);
}

/// Both in the body of one method: the arguments and results of its calls are those of the source,
/// and so are the hits of its lines, whether an exception ends the call or its code is recompiled
/// in the middle of a loop.
#[test]
fn a_method_has_the_values_of_its_calls_and_the_hits_of_its_lines() {
    let mut said = said_hits(&source("Counted"));
    let first_of = |text: &str| 1 + source("Counted").lines().position(|line| line.contains(text)).expect("it") as u32;
    let methods = [" Risky(int number)", " Loop(int end)"].map(|method| first_of(method)..first_of(method) + 16);
    said.retain(|line, _| methods.iter().any(|method| method.contains(line)));
    assert_eq!(said.len(), 9, "{said:?}");
    let lines: String = said.keys().map(|line| format!(";probe-at=Counted.cs:{line}")).collect();
    each_runtime(|runtime| {
        let place = format!("on {}", runtime.version);
        let request = format!("probes:args;probe=Counted.Program::Risky;probe=Counted.Program::Loop{lines}");
        let bare = run(runtime.command(&fixture("Counted"))).expect_success();
        let run = record(runtime, "Counted", &request);
        assert_unchanged(&run.finished, &bare, &place);
        let mut hits = BTreeMap::new();
        let lines = probed_lines(&run.recording.processes[0]);
        lines.iter().for_each(|line| *hits.entry(line.line).or_default() += line.hits);
        assert_eq!(hits, said, "{place}");
        let recorded = recorded(&run.recording);
        let given = |name: &str, key: &str| -> Vec<Value> {
            recorded[name].begins.iter().map(|begin| begin[key].clone()).collect()
        };
        assert_eq!(given("Risky", "number"), [0, 1, 2, 3, 4, 5].map(Value::from), "{place}");
        assert_eq!(given("Loop", "end"), [200_000, 3].map(Value::from), "{place}");
        let returned =
            |name: &str| -> Vec<Value> { recorded[name].returns.iter().map(|(_, result, _)| result.clone()).collect() };
        assert_eq!(returned("Loop"), [199_999, 3].map(Value::from), "{place}");
        let failed = json!("Unknown");
        let wanted = [json!(0), failed.clone(), failed, json!(30), json!(4), json!(5)];
        assert_eq!(returned("Risky"), wanted, "{place}");
    });
}

/// The parent's calls are there, each with its end; the child, which calls the same methods in
/// memory of its own, does what it did.
#[test]
fn calls_of_a_program_that_forks_are_its_own() {
    each_runtime(|runtime| {
        for request in ["probes:each", "probes:args", "coverage;include=[Processes]*;probes:each"] {
            let place = format!("{request} on {}", runtime.version);
            let command = || {
                let mut command = runtime.command(&fixture("Processes"));
                command.arg("fork");
                command
            };
            let bare = run(command());
            let request = format!("{request};probe=Processes.Program::*Work*;probe=Processes.Program::StepInChild");
            let run = record_command(runtime, "Processes", &request, command());
            assert_unchanged(&run.finished, &bare, &place);
            let process = &run.recording.processes[0];
            assert_eq!((run.recording.processes.len(), process.losses.len()), (1, 0), "{place}: {:?}", process.losses);
            let said = Expectations::parse(&run.finished.stdout_text());
            let (counted, counters) = (counted(&run.recording), counters(&run.recording));
            assert_eq!(counted, counters, "{place}");
            for (name, calls) in &said.calls {
                assert_eq!(counted.get(name).map(|[calls, ..]| calls), Some(calls), "{name} with {place}");
            }
        }
    });
}

/// Counters of lines stand in the same bodies.
#[test]
fn values_are_what_the_program_says_where_its_lines_are_covered() {
    check("coverage;include=[Arguments]*;probes:args", &[]);
}

/// Calls of a recording by the names of their methods: how many, how many ended, how many of these
/// by an exception.
fn counted(recording: &Recording) -> BTreeMap<String, [u64; 3]> {
    let mut counted: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    visit(recording, |call| {
        let of = counted.entry(call.method.name.clone()).or_default();
        of[0] += 1;
        of[1] += u64::from(call.failed.is_some());
        of[2] += u64::from(call.failed == Some(true));
        assert_eq!(call.duration_ns.is_some(), call.failed.is_some());
    });
    counted
}

/// Counters of the methods, in the form of [`counted`].
fn counters(recording: &Recording) -> BTreeMap<String, [u64; 3]> {
    let mut counted: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for row in probes(recording, &Query::default()).expect("probes were recorded").0 {
        let of = counted.entry(row.name.clone()).or_default();
        [row.calls, row.ended(), row.failed].into_iter().zip(of).for_each(|(more, sum)| *sum += more);
    }
    counted.retain(|_, [calls, ..]| *calls > 0);
    counted
}

/// Generic methods, exceptions through all kinds of blocks, async methods, many threads, recursion
/// 10,000 calls deep.
#[test]
fn each_call_that_is_counted_is_there() {
    each_runtime(|runtime| {
        for name in ["Generics", "Exceptions", "Async", "Threads", "Recursion", "Filters", "Iterators"] {
            for request in ["probes:each", "probes:args=types", "probes:args,depth=3"] {
                let place = format!("{name} with {request} on {}", runtime.version);
                let bare = run(runtime.command(&fixture(name)));
                let run = record(runtime, name, &format!("{request};probe=[{name}]*"));
                assert_unchanged(&run.finished, &bare, &place);
                let lost = |reason| move |loss: &&Loss| loss.reason == reason;
                let losses = &run.recording.processes[0].losses;
                assert!(losses.iter().find(lost(LossReason::EventDropped)).is_none(), "{place}: {losses:?}");
                assert_eq!(counted(&run.recording), counters(&run.recording), "{place}");
            }
        }
    });
}

/// A thread that is being stopped may stand in what a probed method calls; and objects move
/// whenever it does not.
#[test]
fn collections_do_not_wait_for_calls_nor_calls_see_them() {
    each_runtime(|runtime| {
        let place = format!("on {}", runtime.version);
        let request = "probes:args,last=4MiB;probe=[Collecting]*Leaf;probe=[System.Private.CoreLib]System.GC::Collect";
        let run = record_with(runtime, "Collecting", request, &["4", "200"]);
        assert!(run.finished.status.success(), "{place}: {:?}", run.finished);
        let (mut leaves, mut last) = (0, BTreeMap::new());
        visit(&run.recording, |call| {
            let before = last.insert(call.thread.map(|thread| thread.id), call.time_ns);
            assert!(before.is_none_or(|before| before <= call.time_ns), "{place}: in the order of time");
            let given =
                call.arguments.as_ref().map(|captured| captured.arguments.iter().map(argument).collect::<Vec<_>>());
            if call.method.name.ends_with("Leaf") && given.is_some() {
                assert_eq!(given, Some(vec![("number".to_owned(), json!(1))]), "{place}");
                leaves += 1;
            }
        });
        let calls = counters(&run.recording)["Collecting.Program::Leaf"][0];
        let losses = &run.recording.processes[0].losses;
        let overwritten: u64 =
            losses.iter().filter(|loss| loss.reason == LossReason::RingOverwritten).map(|loss| loss.count).sum();
        assert!(leaves > 10_000 && overwritten > 0, "{place}: {leaves} of {calls}, {losses:?}");
    });
}

#[test]
fn redacted_values_are_nowhere_in_the_recording_and_types_alone_hold_none() {
    let secret: Vec<u8> = "hunter2".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let holds = |recording: &Recording| {
        let chunks = recording.processes[0].events.iter().flat_map(|arena| &arena.chunks);
        chunks.into_iter().any(|chunk| chunk.bytes.load().windows(secret.len()).any(|window| window == secret))
    };
    each_runtime(|runtime| {
        let probed = |rest: &str| record(runtime, "Arguments", &format!("{rest};probe=[Arguments]*Program::Secrets"));
        assert!(holds(&probed("probes:args").recording), "the test finds what is not hidden");
        assert!(!holds(&probed("redact=*word;probes:args").recording), "the password was recorded");
        let types = probed("probes:args=types");
        assert!(!holds(&types.recording), "the password was recorded where types were wanted");
        visit(&types.recording, |call| {
            let captured = call.arguments.as_ref().expect("types");
            assert!(captured.arguments.iter().all(|argument| argument.value == Some(Taken::Hidden)), "{captured:?}");
        });
    });
}
