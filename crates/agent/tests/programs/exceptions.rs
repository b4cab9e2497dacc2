//! The stories of exceptions, against what programs say of themselves.

use std::collections::BTreeMap;

use crate::support::{self, assert_unchanged, record, record_command, record_with};
use clrscope_analysis::{
    EXCEPTIONS, Exception, ExceptionLog, ExceptionQuery, Query, TreeOptions, Value, functions, tree,
};
use clrscope_recording::model::Recording;
use clrscope_testkit::{each_runtime, fixture, methods, run};

fn all(recording: &Recording) -> ExceptionLog<'_> {
    ExceptionLog::open(recording, &ExceptionQuery::default()).expect("exceptions")
}

fn names<'a>(functions: impl IntoIterator<Item = &'a clrscope_analysis::FunctionRef<'a>>) -> Vec<&'a str> {
    functions.into_iter().map(|f| f.name().rsplit("+").next().unwrap_or("")).collect()
}

fn find<'a, 'r>(found: &'a [Exception<'r>], message: &str) -> &'a Exception<'r> {
    found.iter().find(|e| e.message.as_deref() == Some(message)).unwrap_or_else(|| panic!("no '{message}'"))
}

#[test]
fn each_story_is_what_the_program_did() {
    each_runtime(|runtime| {
        let bare = run(runtime.command(&fixture("Exceptions"))).expect_success();
        let seen = record(runtime, "Exceptions", "exceptions");
        assert_eq!(seen.finished.stdout_text(), bare.stdout_text(), "{}", runtime.version);
        let log = all(&seen.recording);
        let (found, _) = log.rows();
        let place = &runtime.version;
        // Per round: by hand from the source.
        assert_eq!(found.len(), 40 * 100, "{place}");
        assert!(found.iter().all(|e| !e.unhandled), "{place}");

        let simple = find(&found, "simple 7");
        assert_eq!(simple.type_name, "System.InvalidOperationException");
        let stack: Vec<_> = simple.stack.iter().map(|frame| frame.function.name()).collect();
        let own = ["Simple::Throw", "Simple::Through", "Simple::Start"].map(|n| format!("Exceptions.Program+{n}"));
        assert_eq!(stack[..3], own, "{place}");
        assert_eq!(stack[3], "Exceptions.Program::Main", "{place}");
        assert!(simple.stack.iter().take(4).all(|frame| frame.il_offset.is_some()), "{place}");
        assert_eq!(names(&simple.search), ["Simple::Throw", "Simple::Through", "Simple::Start"], "{place}");
        assert_eq!(names(&simple.unwound), ["Simple::Throw", "Simple::Through"], "{place}");
        assert_eq!(names(&simple.finally), ["Simple::Through"], "{place}");
        assert_eq!(names(&simple.catcher), ["Simple::Start"], "{place}");
        assert!(simple.throw_to_catch_ns.is_some_and(|ns| ns > 0), "{place}");

        let filtered = find(&found, "filter 7");
        let answers: Vec<_> = filtered.filters.iter().map(|f| (f.function.name(), f.accepted)).collect();
        let middle = ("Exceptions.Program+Filters::Middle", Some(false));
        assert_eq!(answers, [middle, ("Exceptions.Program+Filters::Start", Some(true))], "{place}");

        let by_runtime = found.iter().filter(|e| e.caught_by_runtime).collect::<Vec<_>>();
        assert_eq!(by_runtime.len(), 100, "those out of a filter on {place}");
        assert!(by_runtime.iter().all(|e| names(&e.unwound).contains(&"Nested::BadFilter")), "{place}");
        let replaced: Vec<_> = found.iter().filter(|e| e.replaced_by.is_some()).collect();
        assert_eq!(replaced.len(), 100, "those that another took the place of in a finally block on {place}");
        assert!(replaced.iter().all(|e| names(&e.finally) == ["Nested::FromFinally"]), "{place}");
        // `throw;` and `throw e;` once a round, and at each of twelve levels of the ladder.
        assert_eq!(found.iter().filter(|e| e.rethrow_of.is_some()).count(), 14 * 100, "{place}");

        // The table adds up what the stories say.
        let (groups, _) = log.groups();
        let sum = |of: &dyn Fn(&clrscope_analysis::ExceptionGroup<'_>) -> u64| groups.iter().map(of).sum::<u64>();
        assert_eq!((sum(&|g| g.count), sum(&|g| g.rethrown), sum(&|g| g.unhandled)), (4_000, 1_400, 0), "{place}");
        assert_eq!(sum(&|g| g.caught_by_runtime), 100, "{place}");
        let times = found.iter().filter_map(|e| e.throw_to_catch_ns);
        assert_eq!(sum(&|g| g.throw_to_catch_ns), times.sum::<u64>(), "{place}");
        let caught = found.iter().filter(|e| !e.caught_by_runtime && e.replaced_by.is_none());
        assert!(caught.clone().all(|e| e.throw_to_catch_ns.is_some()), "each of {} on {place}", caught.count());

        let hardware = groups.iter().find(|g| g.type_name == "System.IndexOutOfRangeException").expect("one");
        assert_eq!(hardware.place.map(|f| f.name()), Some("Exceptions.Program+Hardware::Index"), "{place}");
    });
}

/// Names of a tree's paths by exceptions, with what was thrown at their ends.
fn paths(recording: &Recording, query: &Query) -> BTreeMap<String, u64> {
    let tree = tree(recording, query, &TreeOptions::default()).expect("a tree");
    let (mut path, mut found) = (Vec::new(), BTreeMap::new());
    for node in &tree.nodes {
        path.truncate(node.depth as usize);
        path.push(node.function.name().rsplit(['.', '+']).next().unwrap_or(""));
        if node.amount.own > 0 {
            *found.entry(path.join(" ")).or_default() += node.amount.own;
        }
    }
    found
}

#[test]
fn exceptions_count_along_their_paths() {
    each_runtime(|runtime| {
        for request in ["exceptions", "exceptions;calls"] {
            let place = format!("{request} on {}", runtime.version);
            let seen = record(runtime, "Exceptions", request);
            let query = Query { metric: Some(&EXCEPTIONS), ..Query::default() };
            let view = functions(&seen.recording, &query).expect("rows");
            // Fourteen of the forty throws of a round are of an object that was thrown before.
            assert_eq!(view.conditions.total, 26 * 100, "{place}");
            let of = |name: &str| {
                let name = format!("Exceptions.Program{name}");
                let row = view.rows.iter().find(|row| row.function.name() == name);
                row.map_or((0, 0), |row| (row.amount.own, row.amount.total))
            };
            assert_eq!(of("::Main"), (0, 2_600), "{place}");
            assert_eq!(
                [of("+Simple::Start"), of("+Simple::Through"), of("+Simple::Throw")],
                [(0, 100), (0, 100), (100, 100)]
            );
            let paths = paths(&seen.recording, &query);
            assert_eq!(paths.get("Program::Main Simple::Start Simple::Through Simple::Throw"), Some(&100), "{paths:?}");
            let filtered = "Program::Main Filters::Start Filters::Middle Filters::Inner Filters::Throw";
            assert_eq!(paths.get(filtered), Some(&100), "{paths:?}");
            assert_eq!(paths.values().sum::<u64>(), 2_600, "{place}");

            // The metric's own amounts agree with the throwers in the view of exceptions.
            let mut thrown: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
            let log = all(&seen.recording);
            for group in &log.groups().0 {
                let thrower = group.place.expect("a stack");
                let sums = thrown.entry((thrower.module(), thrower.signature())).or_default();
                *sums = (sums.0 + group.exceptions(), sums.1 + group.rethrown);
            }
            for row in &view.rows {
                let key = (row.function.module(), row.function.signature());
                let own = (row.amount.own, row.amount.samples.own);
                assert_eq!(thrown.remove(&key).unwrap_or_default(), own, "{key:?} {place}");
            }
            assert!(thrown.is_empty(), "{thrown:?} {place}");
        }
    });
}

/// What the program `Rethrown` says of a scenario: exceptions that it made and threw, and throws of
/// them after that; and the same as the runtime told the program.
struct Truth<'a> {
    name: &'a str,
    counted: (u64, u64),
    told: (u64, u64),
}

impl<'a> Truth<'a> {
    fn parse(line: &'a str) -> Self {
        let (counted, told) = line.split_once(" but seen ").map_or((line, None), |(line, told)| (line, Some(told)));
        let number = |word: &str| word.parse::<u64>().expect("a number");
        let mut words = counted.split(' ').skip(1);
        let mut word = || words.next().expect("a word");
        let (name, counted) = (word(), (number(word()), number(word())));
        let told = told.and_then(|told| told.split_once(" and "));
        Self { name, counted, told: told.map_or(counted, |(first, again)| (number(first), number(again))) }
    }
}

/// Every throw counted as an exception: those of one object many times, and those of a service that
/// awaits through five methods six times as many as there were.
#[test]
fn an_object_counts_once_and_its_further_throws_apart() {
    each_runtime(|runtime| {
        let bare = run(runtime.command(&fixture("Rethrown"))).expect_success();
        for request in ["exceptions", "exceptions;gc;alloc"] {
            let place = format!("{request} on {}", runtime.version);
            let seen = record(runtime, "Rethrown", request);
            assert_eq!(seen.finished.stdout_text(), bare.stdout_text(), "{place}");
            let query = Query { metric: Some(&EXCEPTIONS), ..Query::default() };
            let view = functions(&seen.recording, &query).expect("rows");
            let told = bare.stdout_text();
            let all: Vec<Truth<'_>> = told.lines().map(Truth::parse).collect();
            for truth in &all {
                let name = format!("Rethrown.{}::Start", truth.name);
                let row = view.rows.iter().find(|row| row.function.name() == name);
                let amount = row.map(|row| row.amount).unwrap_or_default();
                // What runs on another thread or after an await is not below `Start`.
                if !["Awaiting", "Handed"].contains(&truth.name) {
                    assert_eq!((amount.total, amount.samples.total), truth.told, "{name}, {place}");
                }
                // On .NET 9 and 10 the runtime itself throws again what passed its own code on the
                // way to reflection.
                assert!(truth.told == truth.counted || truth.name == "Reflected", "{name}, {place}: {told}");
            }
            assert_eq!(all.len(), 13, "{told}");
            let sum = |of: fn(&(u64, u64)) -> u64| all.iter().map(|truth| of(&truth.told)).sum::<u64>();
            let (first, again) = (sum(|told| told.0), sum(|told| told.1));
            let own =
                |of: fn(&clrscope_analysis::Amount) -> u64| view.rows.iter().map(|row| of(&row.amount)).sum::<u64>();
            assert_eq!((own(|amount| amount.own), own(|amount| amount.samples.own)), (first, again), "{place}");
            assert_eq!(view.conditions.total, first, "{place}");

            // Each await throws again, for the method that awaits.
            let awaits = ["First", "Second", "Third"].map(|name| {
                let name = format!("Rethrown.Awaiting::{name}");
                let rows = view.rows.iter().filter(|row| row.function.name() == name);
                rows.map(|row| row.amount.samples.total).max().unwrap_or(0)
            });
            assert!(awaits.iter().all(|&again| again >= 20), "{awaits:?} {place}");

            let log = all_of(&seen.recording);
            assert_eq!(log, (first, again), "the view `exceptions`, {place}");
        }
    });
}

/// Sums of the view `exceptions`: exceptions, and throws of them after their first.
fn all_of(recording: &Recording) -> (u64, u64) {
    let log = all(recording);
    let (groups, _) = log.groups();
    groups.iter().fold((0, 0), |sums, group| (sums.0 + group.exceptions(), sums.1 + group.rethrown))
}

#[test]
fn inner_ones_rethrown_ones_and_those_the_runtime_catches() {
    each_runtime(|runtime| {
        let bare = run(runtime.command(&fixture("Throws"))).expect_success();
        let seen = record(runtime, "Throws", "exceptions");
        assert_eq!(seen.finished.stdout_text(), bare.stdout_text(), "{}", runtime.version);
        let log = all(&seen.recording);
        let (found, _) = log.rows();
        let place = &runtime.version;
        let inner = find(&found, "inner one");
        let outer = find(&found, "outer one");
        assert_eq!(outer.inner.map(|i| (i.type_name, i.number)), Some(("System.FormatException", Some(inner.number))));

        let again: Vec<_> = found.iter().filter(|e| e.message.as_deref() == Some("again")).collect();
        assert_eq!(again.len(), 2, "{place}");
        assert_eq!((again[0].rethrow_of, again[1].rethrow_of), (None, Some(again[0].number)), "{place}");
        assert_ne!(again[0].thread.map(|t| t.id), again[1].thread.map(|t| t.id), "{place}");
        assert_eq!(again[1].thread.map(|t| t.name.as_str()), Some("rethrower"), "{place}");

        let initializer = find(&found, "initializer");
        assert!(initializer.caught_by_runtime && initializer.catcher.is_none(), "{initializer:?} on {place}");
        let wrapper = found.iter().find(|e| e.type_name == "System.TypeInitializationException").expect("one");
        assert_eq!(wrapper.inner.map(|i| i.type_name), Some("System.NotImplementedException"), "{place}");

        let own = found.iter().find(|e| e.type_name.ends_with("Own")).expect("an own type");
        assert_eq!(
            (own.message.as_deref(), own.thrower().map(|f| f.name())),
            (None, Some("Throws.Program::Generic")),
            "{place}"
        );
        let long = found.iter().find(|e| e.message.as_deref().is_some_and(|m| m.starts_with("xxx"))).expect("one");
        assert_eq!(long.message.as_deref().map(str::len), Some(512), "{place}");
    });
}

#[test]
fn an_exception_that_nobody_catches_is_unhandled() {
    each_runtime(|runtime| {
        let seen = support::record_with(runtime, "Ends", "exceptions", &["unhandled"]);
        let log = all(&seen.recording);
        let (found, _) = log.rows();
        let unhandled: Vec<_> = found.iter().filter(|e| e.unhandled).collect();
        assert_eq!(unhandled.len(), 1, "{} thrown on {}", found.len(), runtime.version);
        assert!(unhandled[0].catcher.is_none() && !unhandled[0].search.is_empty(), "{}", runtime.version);
    });
}

#[test]
fn the_stack_is_cut_where_it_was_asked_to_be() {
    each_runtime(|runtime| {
        let seen = record(runtime, "Exceptions", "exceptions:frames=2");
        let log = all(&seen.recording);
        let (found, _) = log.rows();
        let simple = find(&found, "simple 0");
        assert_eq!((simple.stack.len(), simple.stack_cut), (2, true), "{}", runtime.version);
    });
}

#[test]
fn stacks_walked_by_frames_are_the_runtimes_own() {
    each_runtime(|runtime| {
        for (name, arguments, least) in
            [("Exceptions", &[][..], 1_500), ("Async", &[], 500), ("Blocks", &["", "40"], 5_000)]
        {
            // Tiers change all the time, so that rules are learnt again.
            let variables = [("DOTNET_TC_CallCountThreshold", "5"), ("DOTNET_TC_BackgroundWorkerTimeoutMs", "0")];
            let mut command = runtime.command(&fixture(name));
            command.args(arguments).envs(if name == "Blocks" { &variables[..] } else { &[] }.iter().copied());
            let seen = record_command(runtime, name, "exceptions:stacks=check", command);
            let remarks = &seen.recording.processes[0].remarks;
            let remark = remarks.iter().find(|remark| remark.text.contains("by snapshot")).expect("a remark");
            let numbers: Vec<u32> = remark.text.split(' ').filter_map(|word| word.parse().ok()).collect();
            let &[same, other, _asked] = &numbers[..] else { panic!("{remark:?}") };
            let stack = |text: &str| {
                let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
                methods(&seen.recording.processes[0], digits.parse().expect("a stack")).join(" > ")
            };
            let first: Vec<String> = remark.text.split('#').skip(1).map(stack).collect();
            let told = first.join("\n");
            assert!(same >= least && other == 0, "{name} on {}: {}\n{told}", runtime.version, remark.text);
        }
    });
}

#[test]
fn frames_show_what_their_calls_were_given() {
    each_runtime(|runtime| {
        let bare = run(runtime.command(&fixture("Exceptions"))).expect_success();
        for request in ["exceptions:args;include=[Exceptions]*", "exceptions:args;calls;include=[Exceptions]*"] {
            let place = format!("{request} on {}", runtime.version);
            let seen = record(runtime, "Exceptions", request);
            assert_eq!(seen.finished.stdout_text(), bare.stdout_text(), "{place}");
            let losses = &seen.recording.processes[0].losses;
            assert!(losses.iter().all(|loss| loss.reason.is_benign()), "{place}: {losses:?}");
            let log = all(&seen.recording);
            let (found, _) = log.rows();
            assert_eq!(found.len(), 40 * 100, "{place}");
            let mut checked = 0;
            for exception in &found {
                // The message ends in the number of the round, which every method of the scenario
                // hands on.
                let round = exception.message.as_deref().and_then(|message| message.split_once(' '));
                let Some(("simple" | "filter" | "nested", round)) = round else { continue };
                for frame in exception.stack.iter().filter(|frame| frame.function.module() == "Exceptions") {
                    let captured = log.captured(exception, &frame).expect("each of the program's own is named");
                    let i = captured.arguments.iter().find(|argument| argument.name == "i");
                    let Some(i) = i.and_then(|argument| argument.value.as_ref()) else { continue };
                    assert_eq!(*i, Value::Int(round.parse().expect("a number")), "{exception:?} {place}");
                    checked += 1;
                }
            }
            // Throw, Through, Start; four of the filters; three from each bad block, four from
            // within.
            assert_eq!(checked, 100 * (3 + 4 + 3 * 3 + 4), "{place}");
            let calls = seen.recording.processes[0].threads.iter().any(|thread| thread.tree.load().len() > 1);
            assert_eq!(calls, request.contains("calls"), "{place}");
        }
    });
}

/// Structures whose fields end before the next one begins, in arrays, and vectors of the processor
/// among the arguments: both were read from the wrong places, and every program ended with SIGSEGV.
#[test]
fn arguments_of_all_methods_of_the_framework_can_be_kept() {
    each_runtime(|runtime| {
        let bare = run(runtime.command(&fixture("Dynamic"))).expect_success();
        let seen = record(runtime, "Dynamic", "exceptions:args;include=*");
        assert_eq!(seen.finished.stdout_text(), bare.stdout_text(), "{}", runtime.version);
    });
}

/// A filter that said no was shown as "said yes" whenever another clause of its method caught, and
/// so was one that threw.
#[test]
fn a_filter_that_refused_is_not_said_to_have_accepted_what_another_clause_of_its_method_caught() {
    each_runtime(|runtime| {
        let bare = run(runtime.command(&fixture("Filters"))).expect_success();
        let seen = record(runtime, "Filters", "exceptions");
        assert_eq!(seen.finished.stdout_text(), bare.stdout_text(), "{}", runtime.version);
        assert!(!bare.stdout_text().contains("wrong"), "{}", bare.stdout_text());
        let log = all(&seen.recording);
        let (found, _) = log.rows();
        let mut listed = 0;
        for exception in found.iter().filter(|exception| exception.type_name == "System.FormatException") {
            let message = exception.message.as_deref().expect("a message");
            let truth: Vec<Option<bool>> = match message.split(';').next().expect("a part") {
                "thrown in the filter" => vec![Some(false)],
                answers => answers.split(", ").map(|answer| Some(answer == "accepted")).collect(),
            };
            let answers: Vec<Option<bool>> = exception.filters.iter().map(|filter| filter.accepted).collect();
            assert_eq!(answers, truth, "{message} on {}", runtime.version);
            listed += 1;
        }
        assert_eq!(listed, 12, "{}", runtime.version);
    });
}

/// Exceptions are held where they are until they are handled, from .NET 9 on. Filters get what was
/// thrown, and nothing stays held.
#[test]
fn exceptions_that_were_held_are_forgotten_with_their_last_reference() {
    each_runtime(|runtime| {
        let mut bare = runtime.command(&fixture("Forgotten"));
        bare.arg("200");
        let bare = run(bare);
        assert_eq!(bare.stdout_text(), "alive 0 of 2604, wrong 0\n", "{}", runtime.version);
        for request in ["exceptions", "calls", "events:exceptions"] {
            let run = record_with(runtime, "Forgotten", request, &["200"]);
            assert_unchanged(&run.finished, &bare, &format!("{request} on {}", runtime.version));
        }
    });
}
