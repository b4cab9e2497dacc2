//! Call paths of samples against programs that know theirs: every own frame is there, in order, and
//! no other. Nothing has hooks here: these would force frames on methods and keep precompiled code
//! out, and with them the faults.
//!
//! `cargo xtask accuracy --paths` does the same at length, by step, into `docs/accuracy.md`.

use std::collections::BTreeMap;

use crate::support::{Run, record_command, record_with};
use clrscope_contract::request::{AGENT_CLSID, AGENT_VARIABLE};
use clrscope_recording::model::{LossReason, Process, Sample, SamplingEngine};
use clrscope_testkit::{
    CallerPaths, CrashReport, KnownPaths, PartTime, Runtime, RuntimeStops, STOPS_VARIABLE, SampledPaths, Slower, Tally,
    attempted, each_runtime, fixture, hooked_agent, load_profiler, methods, not_run, run as run_command, samples,
    scratch,
};

/// Requests with each engine; waits are looked at as well.
const REQUESTS: [(SamplingEngine, &str); 2] = [
    (SamplingEngine::Perf, "cpu:engine=perf;wall:rate=1000"),
    (SamplingEngine::Timer, "cpu:engine=timer;wall:rate=1000"),
];

/// Runs a fixture with each engine that is to be had.
fn each_engine(runtime: &Runtime, name: &str, arguments: &[&str], mut check: impl FnMut(&Run, &str)) {
    for (engine, request) in REQUESTS {
        let mut command = runtime.command(&fixture(name));
        command.args(arguments);
        let crash = CrashReport::of(&mut command);
        let run = record_command(runtime, name, request, command);
        let place = format!("{} on {}", engine.name(), runtime.version);
        let ended = &run.finished;
        let told = || format!("{}{}\n{}", ended.stdout_text(), ended.stderr_text(), crash.frames());
        assert_eq!(ended.code(), 0, "{place}: {name} {arguments:?} ended so: {}", told());
        let by = run.recording.processes[0].samplers.iter().find(|sampler| sampler.instrument == "cpu");
        if by.is_none_or(|sampler| sampler.engine != engine) {
            not_run(&format!("the engine {} is not to be had here", engine.name()));
            continue;
        }
        check(&run, &place);
    }
}

/// Samples of an instrument, each with the names of its methods, innermost first.
fn sampled<'a>(process: &'a Process, instrument: &str) -> Vec<(Sample, Vec<&'a str>)> {
    let innermost_first = |sample: Sample| {
        let mut names = methods(process, sample.stack);
        names.reverse();
        (sample, names)
    };
    samples(process, instrument).map(innermost_first).collect()
}

/// Nanoseconds that samples with this method on their stacks stand for.
fn below(all: &[(Sample, Vec<&str>)], method: &str) -> u64 {
    all.iter().filter(|(_, names)| names.contains(&method)).map(|(sample, _)| sample.weight_ns).sum()
}

/// `Task.Wait()` and `List<T>.Contains` have no frame pointer: stepping over them by frame pointers
/// left their callers out, in silence.
#[test]
fn callers_of_frameless_methods_have_their_time() {
    each_runtime(|runtime| {
        for (way, rounds, instrument) in [("waits", "4", "wall"), ("works", "8", "cpu")] {
            let outcome = attempted(|| {
                let mut wrong = Vec::new();
                each_engine(runtime, "Frameless", &[way, rounds], |run, place| {
                    wrong.extend(wrong_shares(run, instrument).map(|share| format!("{place}, {way}: {share}")));
                });
                if wrong.is_empty() { Ok(()) } else { Err(wrong) }
            });
            assert_eq!(outcome, Ok(()));
        }
    });
}

/// Methods of `Frameless` whose samples do not stand for the time that the program measured.
fn wrong_shares<'a>(run: &'a Run, instrument: &'a str) -> impl Iterator<Item = String> {
    let all = sampled(&run.recording.processes[0], instrument);
    let text = run.finished.stdout_text();
    let measured = text.lines().filter_map(|line| line.strip_prefix("MEASURED ")?.split_once("-ns "));
    let measured: Vec<(&str, &str)> = measured.filter_map(|(_, rest)| rest.split_once(' ')).collect();
    assert_eq!(measured.len(), 2, "{text}");
    let shares = measured.into_iter().map(|(method, truth)| {
        let truth: u64 = truth.parse().expect("nanoseconds");
        (below(&all, method) as f64 / truth as f64, truth, method)
    });
    let wrong = shares.filter(|(share, ..)| !(0.85..1.15).contains(share));
    wrong
        .map(|(share, truth, method)| format!("{share:.2} of the {truth} ns of {method}"))
        .collect::<Vec<_>>()
        .into_iter()
}

/// The frame that a signal had interrupted was left out, and a return address that the runtime had
/// changed led nowhere: `Leaf` had half of the time of `Mid`, which does nothing but call it.
#[test]
fn a_method_that_is_suspended_keeps_its_time() {
    each_runtime(|runtime| {
        each_engine(runtime, "Suspended", &["1500"], |run, place| {
            for instrument in ["cpu", "wall"] {
                let all = sampled(&run.recording.processes[0], instrument);
                let mid: Vec<_> =
                    all.into_iter().filter(|(_, names)| names.contains(&"Suspended.Program::Mid")).collect();
                let (leaf, whole) = (below(&mid, "Suspended.Program::Leaf"), below(&mid, "Suspended.Program::Mid"));
                assert!(mid.len() > 20, "{place}, {instrument}: {} samples", mid.len());
                let share = leaf as f64 / whole as f64;
                // Of few samples chance takes some more, but no more than four standard deviations.
                let chance = 4.0 * (0.01 * 0.99 / mid.len() as f64).sqrt();
                assert!(share >= 0.99 - chance, "{place}, {instrument}: Leaf has {share:.3} of the time of Mid");
            }
        });
    });
}

/// The worst shapes of a tally, in words.
fn worst(known: &KnownPaths, tally: &Tally) -> String {
    let names: Vec<&str> = known.shapes().map(|shape| shape.name.as_str()).collect();
    let mut wrong: Vec<_> = tally.by_shape.iter().filter(|(_, sum)| sum.equal < sum.samples).collect();
    wrong.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.samples - sum.equal));
    let line = |(shape, sum): &(&usize, &clrscope_testkit::ShapeTally)| {
        format!(
            "{}: {} of {} are equal; {}\n",
            names[**shape],
            sum.equal,
            sum.samples,
            sum.first_wrong.as_deref().unwrap_or("")
        )
    };
    wrong.iter().take(4).map(line).collect()
}

/// 999 of 1,000 samples have the own frames of the path that the leaf noted, in order and no
/// others.
#[test]
fn own_frames_are_those_of_the_path_that_the_program_notes() {
    // A busy machine stops threads where they seldom stand.
    assert_eq!(attempted(look_at_own_frames), Ok(()));
}

/// Samples of each kind of run that a share needs.
const ENOUGH: u64 = 1_000;
/// Most rounds of runs: on a busy machine one round has few samples.
const MOST_ROUNDS: usize = 5;

/// Looks at runs with each engine on each runtime; the faults in words.
fn look_at_own_frames() -> Result<(), String> {
    let mut sums: BTreeMap<String, (Tally, String)> = BTreeMap::new();
    for _ in 0..MOST_ROUNDS {
        for (which, tally, text) in tallies_of_one_round() {
            let (sum, all) = sums.entry(which).or_default();
            *all += &text;
            sum.join(tally);
        }
        if sums.values().all(|(tally, _)| tally.samples > ENOUGH) {
            break;
        }
    }
    let wrong: Vec<String> =
        sums.into_iter().filter_map(|(which, (tally, text))| not_true(&which, &tally, &text)).collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// One run with each engine on each runtime: its kind, and what its samples say.
fn tallies_of_one_round() -> Vec<(String, Tally, String)> {
    let tallies = each_runtime(|runtime| {
        let mut tallies = Vec::new();
        for way in ["", "collected"] {
            let folder = scratch();
            let notes = folder.path().join("notes").display().to_string();
            // Filters are left out: they stand under their own method in samples as in exact trees,
            // without what has thrown, which the runtime's own stack traces have.
            let more = if way.is_empty() { [].as_slice() } else { &["-filter"] };
            let arguments: Vec<&str> = [&notes, "700", "1", way].into_iter().chain(more.iter().copied()).collect();
            each_engine(runtime, "KnownPaths", &arguments, |run, place| {
                let known = KnownPaths::read(notes.as_ref());
                // Time waiting for a processor is spent where the thread was seen last, so waits of
                // `wall` prove nothing about paths.
                let instrument = "cpu";
                let tally = SampledPaths::judge(&run.recording.processes[0], instrument, run.start_ns(), &known).tally;
                let place =
                    format!("{place}, {instrument}, {way}: {:.2} % of {}\n", tally.equal_percent(), tally.samples);
                let text = format!("{place}{}", worst(&known, &tally));
                tallies.push((format!("{instrument} {way}"), tally, text));
            });
        }
        tallies
    });
    tallies.into_iter().flatten().collect()
}

/// Fault of a tally in words, if it has one. Of few samples chance may have put some more among the
/// wrong ones, but no more than four standard deviations.
fn not_true(which: &str, tally: &Tally, text: &str) -> Option<String> {
    let expected = 0.001 * tally.samples as f64;
    let unequal = (tally.samples - tally.equal) as f64;
    let is_true = tally.samples > ENOUGH && unequal <= expected + 4.0 * expected.sqrt();
    (!is_true).then(|| format!("{which}: {:.2} % of {} are equal\n{text}", tally.equal_percent(), tally.samples))
}

/// On 9 and 10 a collection that moves an exception while the runtime tells profilers of its filter
/// leaves the filter with the old address, wherever a profiler asks for notifications of
/// exceptions. No engine asks for them (timers did, to let their signal in again behind hardware
/// exceptions), and for those that do exceptions are held where they are: without that each of
/// these runs ended by a fault.
#[test]
fn a_filter_that_runs_during_collections_does_not_end_the_program() {
    each_runtime(|runtime| {
        let folder = scratch();
        let notes = folder.path().join("notes").display().to_string();
        let arguments: &[&str] = &[&notes, "300", "1", "collected", "filter"];
        each_engine(runtime, "KnownPaths", arguments, |run, place| {
            assert!(!sampled(&run.recording.processes[0], "cpu").is_empty(), "{place}");
        });
        for request in ["exceptions", "calls", "flow", "events:exceptions"] {
            let run = record_with(runtime, "KnownPaths", request, arguments);
            let (ended, losses) = (&run.finished, &run.recording.processes[0].losses);
            assert_eq!(ended.code(), 0, "{request} on {}: {}", runtime.version, ended.stderr_text());
            assert!(losses.iter().all(|loss| loss.reason != LossReason::PanicCaught), "{request}: {losses:?}");
        }
    });
}

/// A method with a frame, one that is inlined and one without a frame are made slower by k, 2k and
/// 4k: by so much their time rises, and that of no other.
#[test]
fn a_method_that_is_made_slower_has_that_time_and_nobody_else() {
    each_runtime(|runtime| {
        // Timers of a busy machine fire at few ticks, in step with the phases.
        assert_eq!(attempted(|| look_at_slower_methods(runtime)), Ok(()));
    });
}

/// Looks at one run; the faults in words.
fn look_at_slower_methods(runtime: &Runtime) -> Result<(), String> {
    let run = record_with(runtime, "Slower", "cpu:rate=5000", &["3000"]);
    let process = &run.recording.processes[0];
    let all = sampled(process, "cpu");
    let mut slower = Slower::parse(&run.finished.stdout_text());
    all.iter().for_each(|(sample, names)| slower.add(names, sample.weight_ns));
    let count: u64 = all.iter().map(|(sample, _)| u64::from(sample.count)).sum();
    let step = all.iter().map(|(sample, _)| sample.weight_ns).sum::<u64>() as f64 / count as f64;
    let place = format!("{} on {}, {count} samples", process.samplers[0].engine.name(), runtime.version);
    let odd = slower.odd_percent();
    let wrong: Vec<PartTime> = slower.parts(step).into_iter().filter(|part| !part.is_met()).collect();
    let is_true = odd < 0.5 && wrong.is_empty();
    if is_true { Ok(()) } else { Err(format!("{place}: {odd:.2} % on no path of a round, {wrong:#?}")) }
}

/// Stacks at stops of the whole runtime have the same methods by its own walk (`DoStackSnapshot`)
/// and by ours. Threads that were stopped when a method returned had none of them in ours, which
/// were called complete: the unwind data of the function that they wait in is wrong.
#[test]
fn stacks_are_those_of_the_runtimes_own_walk_where_it_has_stopped_the_threads() {
    each_runtime(|runtime| {
        for (way, milliseconds) in [("", "1500"), ("collected", "500")] {
            // A busy machine stops threads where they seldom stand.
            let outcome = attempted(|| {
                let found = stops(runtime, way, milliseconds);
                // New code that runs before it is told of is a stub, in one stack of several
                // thousand; other differences are said to be guesses, and are few.
                let is_true = found.different() <= 1 && found.said() as f64 <= 2.0 + 0.01 * found.compared() as f64;
                if is_true { Ok(()) } else { Err(found) }
            });
            assert!(outcome.is_ok(), "{way} on {}: {outcome:?}", runtime.version);
        }
    });
}

/// Comparisons at the stops of one run.
fn stops(runtime: &Runtime, way: &str, milliseconds: &str) -> RuntimeStops {
    let folder = scratch();
    let [notes, stops, out] = ["notes", "stops", "run.clrs.d"].map(|name| folder.path().join(name));
    let mut command = runtime.command(&fixture("KnownPaths"));
    command.arg(&notes).args([milliseconds, "1", way, "-filter"]).env(STOPS_VARIABLE, &stops);
    load_profiler(&mut command, hooked_agent(), AGENT_CLSID);
    command.env(AGENT_VARIABLE, format!("wall:rate=1000;trust-writable;out={}", out.display()));
    let ended = run_command(command);
    let found = RuntimeStops::read(&stops);
    let place = format!("{way} on {}: {found:?}", runtime.version);
    assert_eq!(ended.code(), 0, "{place}: {}", ended.stderr_text());
    assert!(found.compared() > 100, "{place}");
    found
}

/// The callers of each sample, all own frames but the innermost, are a path of the exact tree that
/// `calls` has of the same run.
#[test]
fn callers_by_samples_are_callers_by_calls() {
    let is_own =
        |name: &&str| name.starts_with("KnownPaths.") && !name.ends_with("::FindIn") && !name.ends_with("::SortItems");
    each_runtime(|runtime| {
        let folder = scratch();
        let notes = folder.path().join("notes").display().to_string();
        // A filter runs on top of the method that throws, which did not call it: the tree does not
        // have it between.
        let arguments = [&notes, "900", "1", "", "-filter"];
        let run = record_with(runtime, "KnownPaths", "calls;cpu", &arguments);
        let process = &run.recording.processes[0];
        let mut paths = CallerPaths::default();
        for thread in &process.threads {
            let tree = thread.tree.load();
            let name = |function: u32| process.functions.get(function as usize).map(|function| function.name.as_str());
            let nodes = tree.parents().iter().zip(tree.functions());
            paths.add(nodes.map(|(&parent, &function)| (parent, name(function).filter(is_own))));
        }
        let walkers: Vec<u32> = process
            .threads
            .iter()
            .filter(|thread| thread.name.starts_with("walker "))
            .map(|thread| thread.id)
            .collect();
        let (mut samples, mut wrong) = (0, Vec::new());
        for (_, names) in sampled(process, "cpu").iter().filter(|(sample, _)| walkers.contains(&sample.thread)) {
            let callers: Vec<&str> = names.iter().copied().filter(is_own).skip(1).collect();
            samples += 1;
            if !paths.hold(callers.iter().rev().copied()) {
                wrong.push(callers.join(" < "));
            }
        }
        let (allowed, place) = (0.001 * f64::from(samples), format!("{} on {samples} samples", runtime.version));
        assert!(samples > 50 && paths.len() > 1_000, "{place}, {} paths", paths.len());
        assert!(
            wrong.len() as f64 <= allowed + 4.0 * allowed.sqrt(),
            "{place}: {} are not in the tree: {:#?}",
            wrong.len(),
            &wrong[..wrong.len().min(3)]
        );
    });
}
