//! Awaits, against what programs count and clock themselves.

use std::collections::BTreeMap;

use clrscope_analysis::{AwaitRow, Metric, Query, awaits, functions, make_paths_logical};
use clrscope_recording::model::Recording;
use clrscope_symbols::Lines;
use clrscope_testkit::{Runtime, attempted, each_runtime, fixture, run};

use crate::support::record_with;

/// Rounds of the program.
const ROUNDS: u64 = 10;

/// What the program says of an await.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Clocked {
    count: u64,
    failed: u64,
    cancelled: u64,
    total_ns: u64,
    longest_ns: u64,
}

/// Awaits by their lines, as the program printed them.
fn clocked(output: &str) -> BTreeMap<u32, Clocked> {
    let parse = |line: &str| {
        let (name, numbers) = line.strip_prefix("AWAIT ")?.split_once(' ')?;
        let numbers: Vec<u64> = numbers.split(' ').filter_map(|number| number.parse().ok()).collect();
        let [count, failed, cancelled, total_ns, longest_ns] = numbers[..] else { return None };
        Some((name.split_once(':')?.1.parse().ok()?, Clocked { count, failed, cancelled, total_ns, longest_ns }))
    };
    output.lines().filter_map(parse).collect()
}

/// What the program prints that is the same in each run.
fn constant_lines(output: &str) -> Vec<String> {
    let is_constant = |line: &&str| ["SUM ", "TRACE ", "TASK "].iter().any(|key| line.starts_with(key));
    output.lines().filter(is_constant).map(str::to_owned).collect()
}

fn rows(recording: &Recording) -> Vec<AwaitRow<'_>> {
    awaits(recording, &Query::default()).expect("awaits").0
}

/// The line of a row's await.
fn line_of(row: &AwaitRow<'_>, lines: &mut Lines) -> Option<u32> {
    let function = &row.frame.function;
    let module = row.process.modules.get(function.function.module as usize)?;
    Some(lines.find(&module.path, function.function.token, row.frame.place.il_offset?)?.line)
}

/// Checks each await that the program clocks; the first that is not as it says.
fn check(recording: &Recording, output: &str) -> Result<(), String> {
    let (rows, lines) = (rows(recording), &mut Lines::default());
    let by_line: BTreeMap<u32, &AwaitRow<'_>> =
        rows.iter().filter_map(|row| Some((line_of(row, lines)?, row))).collect();
    let clocked = clocked(output);
    assert_eq!(clocked.len(), 14, "{output}");
    for (line, known) in clocked {
        let row = by_line.get(&line).unwrap_or_else(|| panic!("no row of line {line}: {output}"));
        let counted = (row.count, row.failed, row.cancelled, row.pending, row.is_exact);
        // On a busy machine a delay may be over before it is awaited, and then nothing waits.
        if counted != (known.count, known.failed, known.cancelled, 0, true) {
            return Err(format!("line {line}: {counted:?} of {known:?}"));
        }
        // The program's clock also runs while the method is called, and while it goes on.
        assert!(row.total_ns <= known.total_ns && row.max_ns <= known.longest_ns, "line {line}: {known:?}");
        // Milliseconds that a method waits are nearly all of what the program clocks; of
        // microseconds they are not.
        let is_long = known.total_ns > known.count * 1_500_000;
        if is_long && row.total_ns < known.total_ns / 10 * 8 {
            return Err(format!("line {line}: {} of {known:?}", row.total_ns));
        }
        let [half, most] = [50, 99].map(|percent| row.percentile_ns(percent).expect("a time"));
        assert!(half <= most && most <= row.max_ns && row.mean_ns().is_some_and(|mean| mean <= row.max_ns));
    }
    Ok(())
}

fn record(runtime: &Runtime, program: &str, request: &str) -> (Recording, String) {
    let seen = record_with(runtime, program, request, &[&ROUNDS.to_string()]);
    let output = seen.finished.stdout_text();
    (seen.recording, output)
}

#[test]
fn awaits_of_each_kind_are_counted_and_clocked_as_the_program_does() {
    each_runtime(|runtime| {
        for program in ["Waits", "WaitsDebug"] {
            for request in ["awaits", "awaits:exact"] {
                attempted(|| {
                    let (recording, output) = record(runtime, program, request);
                    check(&recording, &output)
                        .map_err(|why| format!("{program} {request} on {}: {why}\n{output}", runtime.version))
                })
                .unwrap_or_else(|why: String| panic!("{why}"));
            }
        }
    });
}

#[test]
fn the_program_prints_what_it_prints_without_us_and_what_it_forgot_is_pending() {
    each_runtime(|runtime| {
        for program in ["Waits", "WaitsDebug"] {
            let mut bare = runtime.command(&fixture(program));
            bare.arg(ROUNDS.to_string());
            let bare = constant_lines(&run(bare).stdout_text());
            let (recording, output) = record(runtime, program, "awaits:exact");
            assert_eq!((bare.len(), constant_lines(&output)), (3, bare.clone()), "{program} on {}", runtime.version);
            let pending: Vec<(String, u64)> = rows(&recording)
                .iter()
                .filter(|row| row.pending > 0)
                .map(|row| (row.frame.function.name().to_owned(), row.pending))
                .collect();
            assert_eq!(pending, [("Waits.Program::Forgotten".to_owned(), 3)], "{program} on {}", runtime.version);
        }
    });
}

#[test]
fn awaits_are_told_apart_by_who_awaits_their_method() {
    each_runtime(|runtime| {
        let (mut recording, output) = record(runtime, "Waits", "awaits:exact");
        make_paths_logical(&mut recording);
        let rows = rows(&recording);
        let query = rows.iter().find(|row| row.frame.function.name() == "Waits.Program::Query").expect("a row");
        let below = |root: &str| {
            let has_root = |path: &&clrscope_analysis::AwaitPath<'_>| {
                path.frames().any(|frame| frame.function.name() == format!("Waits.Program::{root}"))
            };
            query.paths.iter().filter(has_root).map(|path| path.count).sum::<u64>()
        };
        // Kinds awaits it three times a round. The first waits end before the types of who awaits
        // are looked up, which the agent's own thread does, one link at a time.
        let found = ["First", "Second", "Kinds"].map(below);
        let known = [2 * ROUNDS, ROUNDS, 3 * ROUNDS];
        let place = format!("{found:?} of {known:?} on {}\n{output}", runtime.version);
        assert!(found.iter().zip(known).all(|(found, known)| *found <= known && found * 10 >= known * 7), "{place}");
        assert_eq!(query.awaits, "System.Threading.Tasks.Task::Delay");

        // First waits for nothing but what it awaits, and no time counts twice.
        let metric = Metric::parse("awaited").expect("a metric");
        let view = functions(&recording, &Query { metric: Some(metric), ..Query::default() }).expect("functions");
        let amount = |name: &str| {
            let name = format!("Waits.Program::{name}");
            let row = view.rows.iter().find(|row| row.function.name() == name).unwrap_or_else(|| panic!("{name}"));
            row.amount
        };
        let (first, checkout) = (amount("First"), amount("Checkout"));
        assert_eq!(first.own, 0, "{place}");
        assert!(checkout.own > 0 && checkout.total > checkout.own, "{place}");
        let ran = recording.processes[0].duration_ns;
        assert!(first.total > 0 && amount("Main").total <= ran + ran / 10, "{place}");
    });
}

/// The time of streams and of methods with pooled builders counted twice in `awaited`, beside that
/// of the await on them: nothing told who awaits them.
#[test]
fn streams_and_methods_with_pooled_builders_have_their_consumers_as_awaiters() {
    each_runtime(|runtime| {
        for program in ["Waits", "WaitsDebug"] {
            let (mut recording, output) = record(runtime, program, "awaits:exact");
            make_paths_logical(&mut recording);
            for (name, known) in [("Numbers", 3 * ROUNDS), ("Pooled", ROUNDS)] {
                let rows = rows(&recording);
                let name = format!("Waits.Program::{name}");
                let row = rows.iter().find(|row| row.frame.function.name() == name).expect("a row");
                let names = |path: &clrscope_analysis::AwaitPath<'_>| -> Vec<String> {
                    path.frames().map(|frame| frame.function.name().to_owned()).collect()
                };
                let paths: Vec<(Vec<String>, u64)> = row.paths.iter().map(|path| (names(path), path.count)).collect();
                let place = format!("{program} on {}: {known} {paths:#?}\n{output}", runtime.version);
                let below = |root: &str| {
                    let has_root = |(names, _): &&(Vec<String>, u64)| names.iter().any(|name| name == root);
                    paths.iter().filter(has_root).map(|(_, count)| count).sum::<u64>()
                };
                // The first waits end before the agent's own thread has looked up the types.
                let found = below("Waits.Program::Kinds");
                assert!(found <= known && found * 10 >= known * 6, "{place}");
                assert_eq!(below("Waits.Program::Main"), found, "{place}");
                assert_eq!(found + below("[unknown awaiter]") + below("[not awaited yet]"), known, "{place}");
            }
        }
    });
}
