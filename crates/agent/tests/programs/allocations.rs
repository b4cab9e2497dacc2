//! `alloc` against a program that knows what it allocates.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::support::{self, Run, assert_unchanged, record_with, under_agent};
use clrscope_analysis::{BYTES, OBJECTS, Query, TreeOptions, collections, functions, tree};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{
    Allocation, AllocationEngine, AllocationKind, FunctionKind, LossReason, Process, Recording, StackFrame,
};
use clrscope_testkit::{
    Runtime, Service, attempted, each_runtime, fixture, pause, random_pause, run, scratch, wait_for,
};

/// Every record, with the index of its thread.
fn records(process: &Process) -> Vec<(u32, Allocation)> {
    let chunks = process.arenas(instrument::ALLOC).flat_map(|arena| &arena.chunks);
    chunks
        .flat_map(|chunk| Allocation::all(&chunk.bytes.load()).map(|record| (chunk.thread, record)).collect::<Vec<_>>())
        .collect()
}

fn type_name<'a>(process: &'a Process, record: &Allocation) -> &'a str {
    process.types.get(record.object_type as usize).map_or("", |of| of.name.as_str())
}

/// Names of the methods on the stack of a record, innermost first.
fn methods<'a>(process: &'a Process, record: &Allocation) -> Vec<&'a str> {
    let name = |frame| match frame {
        StackFrame::Method { function, .. } => Some(process.functions.get(function as usize)?.name.as_str()),
        _ => None,
    };
    process.stacks.frames(record.stack).filter_map(name).collect()
}

/// Objects and bytes by type, of what was allocated with this method on the stack.
fn below<'a>(process: &'a Process, method: &str) -> BTreeMap<&'a str, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for (_, record) in records(process) {
        if record.kind == AllocationKind::Allocated && methods(process, &record).contains(&method) {
            let sum: &mut (u64, u64) = sums.entry(type_name(process, &record)).or_default();
            *sum = (sum.0 + record.objects, sum.1 + record.bytes);
        }
    }
    sums
}

/// Objects and bytes in the leaves of paths below a method, by type.
fn leaves_below<'a>(recording: &'a Recording, method: &str) -> BTreeMap<&'a str, (u64, u64)> {
    let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (metric, is_bytes) in [(&OBJECTS, false), (&BYTES, true)] {
        let query = Query { metric: Some(metric), type_leaves: true, ..Query::default() };
        let mut path: Vec<&str> = Vec::new();
        for node in tree(recording, &query, &TreeOptions::default()).expect("a tree").nodes {
            path.truncate(node.depth as usize);
            path.push(node.function.name());
            if node.function.kind() != FunctionKind::Type {
                assert_eq!(node.amount.own, 0, "what a method allocates lies in its types: {path:?}");
            } else if path.contains(&method) {
                let sum = sums.entry(node.function.name()).or_default();
                *if is_bytes { &mut sum.1 } else { &mut sum.0 } += node.amount.own;
            }
        }
    }
    sums
}

/// The number behind a word in what the program printed.
fn printed(run: &Run, word: &str) -> u64 {
    let text = run.finished.stdout_text();
    let found = text.lines().find_map(|line| line.strip_prefix(word)?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("no '{word}' in {text}"))
}

fn bare(runtime: &Runtime, arguments: &[&str]) -> clrscope_testkit::Finished {
    let mut command = runtime.command(&fixture("Allocated"));
    command.args(arguments);
    run(command)
}

fn assert_nothing_is_lost(process: &Process, place: &str) {
    let lost: Vec<_> = process.losses.iter().filter(|loss| loss.reason != LossReason::NameUnknown).collect();
    assert!(lost.is_empty(), "{place}: {lost:?}");
}

#[test]
fn every_object_and_every_byte_is_counted_by_type_and_path() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 1000;
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let run = record_with(runtime, "Allocated", "alloc:exact", &["exact", "4", "1000"]);
        assert!(run.finished.status.success(), "{place}: {}", run.finished.stderr_text());
        let process = &run.recording.processes[0];
        assert_nothing_is_lost(process, &place);
        let sampling = process.allocation_sampling.as_ref().expect("how allocations were taken");
        assert_eq!((sampling.engine, sampling.mean_bytes), (AllocationEngine::Exact, 0), "{place}");
        let found = below(process, "Allocated.Program::Work");
        let all: u64 = found.values().map(|(_, bytes)| bytes).sum();
        assert_eq!(all, printed(&run, "bytes"), "{place}: as the runtime itself counts\n{found:#?}");
        let rounds = THREADS * ROUNDS;
        let strings = THREADS * (1..=ROUNDS).map(|i| (22 + 2 * (1 + i % 40)).next_multiple_of(8)).sum::<u64>();
        let bytes = THREADS * (1..=ROUNDS).map(|i| (24 + i % 50).next_multiple_of(8)).sum::<u64>();
        let tenth = rounds / 10;
        let expected = [
            ("int", rounds, 24 * rounds),
            ("Allocated.Money", rounds, 32 * rounds),
            ("System.DayOfWeek", rounds, 24 * rounds),
            ("byte[]", rounds + 2 * tenth, bytes + tenth * (100_024 + 224)),
            ("string[]", rounds, 48 * rounds),
            ("int[,]", rounds, 64 * rounds),
            ("Allocated.Point[][]", rounds, 40 * rounds),
            ("string", rounds, strings),
            ("Allocated.Cache<string, Allocated.Point>", rounds, 32 * rounds),
            ("Allocated.Cache<int, Allocated.Point[]>.Entry", rounds, 32 * rounds),
            ("System.Func<int>", rounds, 64 * rounds),
            ("System.Action", rounds, 64 * rounds),
            ("Allocated.Program.<>c__DisplayClass14_0", rounds, 24 * rounds),
            ("Allocated.Program.<Count>d__15", rounds, 40 * rounds),
        ];
        for (name, objects, bytes) in expected {
            assert_eq!(found.get(name), Some(&(objects, bytes)), "{place}: {name}\n{found:#?}");
        }
        assert_eq!(leaves_below(&run.recording, "Allocated.Program::Work"), found, "{place}: paths end in types");
    });
}

/// With `calls`, the nodes of the tree also say what was allocated on their paths: each object
/// once, and as many as there were calls.
#[test]
fn beside_calls_each_path_of_the_tree_has_what_it_allocated() {
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let run = record_with(runtime, "Allocated", "calls;alloc:exact", &["exact", "2", "300"]);
        assert!(run.finished.status.success(), "{place}: {}", run.finished.stderr_text());
        assert_nothing_is_lost(&run.recording.processes[0], &place);
        let tree = tree(&run.recording, &Query::default(), &TreeOptions::default()).expect("a tree");
        let of = |name: &str| tree.nodes.iter().filter(|node| node.function.name() == name).collect::<Vec<_>>();
        let [work] = of("Allocated.Program::Work")[..] else { panic!("{place}: one path leads to the work") };
        let allocated = work.allocated.as_deref().expect("allocations");
        assert_eq!(allocated.total_bytes, printed(&run, "bytes"), "{place}: as the runtime itself counts");
        let points: Vec<_> = of("Allocated.Program::NewPoint");
        assert!(points.len() >= 2, "{place}: before the work, and in it");
        for node in points {
            let (allocated, calls) = (node.allocated.as_deref().expect("allocations"), node.times.calls);
            assert_eq!((allocated.own_objects, allocated.own_bytes), (calls, 24 * calls), "{place}: {node:?}");
        }
        let whole = functions(&run.recording, &Query::default()).expect("functions");
        let row = whole.rows.iter().find(|row| row.function.name() == "Allocated.Program::NewPoint").expect("a row");
        let allocated = row.allocated.expect("allocations");
        assert_eq!((allocated.own_objects, allocated.total_bytes), (row.times.calls, 24 * row.times.calls), "{place}");
    });
}

/// An object that leaves its method nowhere lies on the stack, on .NET 10 and where the compiler
/// does that before: no count has it, and the program allocates no more for being looked at.
#[test]
fn objects_on_the_stack_are_not_invented() {
    // A thread that waits long for the pool allocates what it waits with: two runs on a busy
    // machine differ by it.
    each_runtime(|runtime| assert_eq!(attempted(|| objects_on_the_stack(runtime)), Ok(())));
}

/// Looks at three runs; what two of them differ by, in words.
fn objects_on_the_stack(runtime: &Runtime) -> Result<(), String> {
    const ROUNDS: u64 = 700;
    let place = runtime.version.to_string();
    let run_with = |variables: &[(&str, &str)]| {
        let mut command = runtime.command(&fixture("Allocated"));
        command.args(["exact", "1", &ROUNDS.to_string()]).envs(variables.iter().copied());
        command
    };
    let optimised = ("DOTNET_TieredCompilation", "0");
    let bare = |variables: &[_]| {
        let text = clrscope_testkit::run(run_with(variables)).stdout_text();
        let line = text.lines().find_map(|line| line.strip_prefix("bytes ")).expect("bytes");
        line.parse::<u64>().expect("a number")
    };
    let as_it_is = bare(&[optimised]);
    let run = support::record_command(runtime, "Allocated", "alloc:exact", run_with(&[optimised]));
    let process = &run.recording.processes[0];
    let sum = |method| below(process, method).values().map(|(_, bytes)| bytes).sum::<u64>();
    let counted = sum("Allocated.Program::Work");
    assert_eq!(counted, printed(&run, "bytes"), "{place}: as the runtime itself counts");
    // The way on of a task is one object more or less.
    if counted.abs_diff(as_it_is) >= 3 * ROUNDS {
        return Err(format!("{place}: {counted}, without the profiler {as_it_is}"));
    }
    let on_heap = bare(&[optimised, ("DOTNET_JitObjectStackAllocation", "0")]);
    let is_on_stack = on_heap > as_it_is + 20 * ROUNDS;
    if !is_on_stack && runtime.version.major >= 10 {
        return Err(format!("{place}: {as_it_is}, and {on_heap} without the stack"));
    }
    // Rounds that the program does not count warm up.
    let expected = if is_on_stack { 0..=0 } else { 24 * ROUNDS..=24 * (ROUNDS + 2) };
    let found = sum("Allocated.Program::Escapes");
    if !expected.contains(&found) {
        return Err(format!("{place}: {found} and not {expected:?}"));
    }
    Ok(())
}

/// Two runs of each runtime, sampled: what each type takes is what the program measured, as nearly
/// as so many samples can say. Large objects are counted one by one.
#[test]
fn sampled_bytes_of_each_type_are_near_the_truth() {
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let run = record_with(runtime, "Allocated", "alloc", &["mixed", "300"]);
        assert!(run.finished.status.success(), "{place}: {}", run.finished.stderr_text());
        let process = &run.recording.processes[0];
        assert_nothing_is_lost(process, &place);
        let sampling = process.allocation_sampling.as_ref().expect("how allocations were taken");
        let is_random = runtime.version.major >= 10;
        let engine = if is_random { AllocationEngine::Randomized } else { AllocationEngine::Ticks };
        assert_eq!((sampling.engine, sampling.large_exact, sampling.pinned_exact), (engine, true, true), "{place}");
        assert_eq!(sampling.why_engine.contains("GCAllocationTick"), is_random, "{place}: {}", sampling.why_engine);
        let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (_, record) in records(process) {
            let sum = sums.entry(type_name(process, &record)).or_default();
            *sum = (sum.0 + record.objects, sum.1 + record.weight);
            assert!(record.weight >= record.bytes && record.objects > 0, "{place}: {record:?}");
        }
        for line in run.finished.stdout_text().lines() {
            let (truth, name) = line.split_once(' ').expect("bytes and a type");
            let truth: f64 = truth.parse().expect("bytes");
            let (seen, bytes) = sums[name];
            // Six deviations: one of a billion tries lies beyond.
            let most = 6.0 * truth / (seen as f64).sqrt();
            assert!((bytes as f64 - truth).abs() < most, "{place}: {name}: {bytes} for {truth}, of {seen} samples");
        }
        let below = below(process, "Allocated.Program::Mix");
        assert!(below.len() >= 4, "{place}: stacks lead to who allocates: {below:?}");
    });
}

/// Points by the method that allocated them and the place in its IL: their number and bytes,
/// sampled ones by what they stand for.
fn by_place(process: &Process) -> BTreeMap<(&str, Option<u32>), (u64, u64)> {
    let mut sums = BTreeMap::new();
    for (_, record) in records(process).iter().filter(|(_, record)| type_name(process, record) == "Allocated.Point") {
        let place = process.stacks.frames(record.stack).find_map(|frame| match frame {
            StackFrame::Method { function, il_offset, .. } => {
                let name = process.functions.get(function as usize)?.name.as_str();
                name.starts_with("Allocated.").then_some((name, il_offset))
            }
            _ => None,
        });
        let sum: &mut (u64, u64) = sums.entry(place.unwrap_or_default()).or_default();
        *sum = (sum.0 + record.objects, sum.1 + record.weight);
    }
    sums
}

/// On .NET 10 the method that allocates is in no frame, so that all places of a method and all
/// methods that a call leads to looked the same: the first that was met got all objects.
#[test]
fn methods_and_places_that_allocate_the_same_type_are_told_apart() {
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let run = record_with(runtime, "Allocated", "alloc:exact", &["places", "3000"]);
        let process = &run.recording.processes[0];
        assert_nothing_is_lost(process, &place);
        let found = by_place(process);
        let counts = |method: &str| {
            let of = found.iter().filter(|((name, _), _)| *name == method);
            of.map(|(_, (objects, _))| *objects).collect::<Vec<_>>()
        };
        let methods = ["Allocated.First::Make", "Allocated.Second::Make", "Allocated.Places::Work"];
        assert_eq!(methods.map(counts), [vec![1000], vec![2000], vec![3000, 3000]], "{place}: {found:?}");
        // What is not chosen at random is in step with such a program.
        if runtime.version.major < 10 {
            return;
        }
        let run = record_with(runtime, "Allocated", "alloc", &["places", "1000000"]);
        let found = by_place(&run.recording.processes[0]);
        let all: u64 = found.values().map(|(_, bytes)| bytes).sum();
        let share = |method: &str| {
            let of = found.iter().filter(|((name, _), _)| *name == method);
            of.map(|(_, (_, bytes))| *bytes as f64 / all as f64).collect::<Vec<_>>()
        };
        let ninths = [vec![1.0], vec![2.0], vec![3.0, 3.0]];
        for (method, expected) in methods.into_iter().zip(ninths) {
            let shares = share(method);
            // Six deviations of the 700 samples.
            let is_near = |(share, ninths): (&f64, f64)| (share - ninths / 9.0).abs() < 0.11;
            assert_eq!(shares.len(), expected.len(), "{place}: {method}: {found:?}");
            assert!(shares.iter().zip(expected).all(is_near), "{place}: {method}: {shares:?}");
        }
    });
}

/// Objects by type and by the fixture's caller on their stacks: their number and the bytes that
/// they stand for.
fn by_caller(process: &Process) -> BTreeMap<(&str, &str), (u64, u64)> {
    let mut sums: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for (_, record) in records(process) {
        let name = type_name(process, &record);
        if name.starts_with("Forwarded.T") {
            let caller = process.stacks.frames(record.stack).find_map(|frame| match frame {
                StackFrame::Method { function, .. } => {
                    process.functions.get(function as usize)?.signature.strip_prefix("Forwarded.Caller<")
                }
                _ => None,
            });
            let of = caller.and_then(|rest| rest.split('>').next());
            let sum = sums.entry((name, of.unwrap_or("nobody"))).or_default();
            *sum = (sum.0 + record.objects, sum.1 + record.weight);
        }
    }
    sums
}

/// Bytes that the fixture allocated, by type and caller.
fn allocated_below(said: &str) -> BTreeMap<(&str, &str), u64> {
    let of_line = |line| -> Option<((&str, &str), u64)> {
        let mut words = str::strip_prefix(line, "ALLOCATED ")?.split(' ');
        Some(((words.next()?, words.next()?), words.next()?.parse().ok()?))
    };
    said.lines().filter_map(of_line).filter(|(_, objects)| *objects > 0).collect()
}

/// Paths were told apart by frame pointers alone, which lead past the caller of a method without a
/// frame: the first caller that was met got what all others allocated.
#[test]
fn callers_of_methods_without_frames_have_what_was_allocated_below_them() {
    each_runtime(|runtime| {
        for variables in [&[][..], &[("DOTNET_TieredCompilation", "0")], &[("DOTNET_TieredPGO", "0")]] {
            let place = format!("{variables:?} on {}", runtime.version);
            let mut command = runtime.command(&fixture("Forwarded"));
            command.args(["rounds", "2", "20000"]).envs(variables.iter().copied());
            let run = support::record_command(runtime, "Forwarded", "alloc:exact", command);
            assert!(run.finished.status.success(), "{place}: {}", run.finished.stderr_text());
            let process = &run.recording.processes[0];
            assert_nothing_is_lost(process, &place);
            let said = run.finished.stdout_text();
            let (expected, found) = (allocated_below(&said), by_caller(process));
            assert!(expected.len() > 200, "{place}: {expected:?}");
            let of = |key: &(&str, &str)| found.get(key).map_or(0, |(objects, _)| *objects);
            let wrong: Vec<_> = expected.iter().filter(|(key, objects)| of(key) != **objects).collect();
            let wrong: Vec<_> = wrong.iter().map(|(key, objects)| (key, objects, of(key))).collect();
            let others: Vec<_> = found.iter().filter(|(key, _)| !expected.contains_key(*key)).collect();
            assert!(wrong.is_empty() && others.is_empty(), "{place}: {} wrong: {wrong:?} {others:?}", wrong.len());
        }
    });
}

/// As exactly as so many samples can say.
#[test]
fn callers_of_methods_without_frames_have_their_share_of_what_is_sampled_below_them() {
    each_runtime(|runtime| {
        for variables in [&[][..], &[("DOTNET_TieredCompilation", "0")]] {
            let place = format!("{variables:?} on {}", runtime.version);
            let mut command = runtime.command(&fixture("Forwarded"));
            command.args(["rounds", "2", "2000000"]).envs(variables.iter().copied());
            let run = support::record_command(runtime, "Forwarded", "alloc", command);
            assert!(run.finished.status.success(), "{place}: {}", run.finished.stderr_text());
            let said = run.finished.stdout_text();
            let (mut expected, mut found): (BTreeMap<_, u64>, BTreeMap<_, (u64, u64)>) = Default::default();
            allocated_below(&said)
                .into_iter()
                .for_each(|((_, caller), objects)| *expected.entry(caller).or_default() += objects);
            for ((_, caller), (samples, bytes)) in by_caller(&run.recording.processes[0]) {
                let sum = found.entry(caller).or_default();
                *sum = (sum.0 + samples, sum.1 + bytes);
            }
            let all = expected.values().sum::<u64>() as f64;
            let (samples, bytes) = found.values().fold((0, 0), |sums, of| (sums.0 + of.0, sums.1 + of.1));
            assert!(samples > 500 && !found.contains_key("nobody"), "{place}: {found:?}");
            for (caller, objects) in &expected {
                let share = *objects as f64 / all;
                let seen = found.get(caller).map_or(0.0, |(_, of)| *of as f64 / bytes as f64);
                // Six deviations: one of a billion tries lies beyond.
                let most = 6.0 * (share * (1.0 - share) / samples as f64).sqrt();
                assert!((seen - share).abs() < most, "{place}: {caller}: {seen} for {share}, of {samples} samples");
            }
        }
    });
}

/// The compiler maps inlined code to no IL, so most of what optimised methods allocate had no line.
#[test]
fn what_inlined_code_allocates_has_the_line_that_it_is_inlined_in() {
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let run = record_with(runtime, "Allocated", "alloc", &["joined", "400000"]);
        assert_eq!(run.finished.stdout_text(), "done\n", "{place}");
        let process = &run.recording.processes[0];
        let by_work = |frame: &StackFrame| match frame {
            StackFrame::Method { function, il_offset, .. } => {
                let name = process.functions.get(*function as usize)?.name.as_str();
                (name == "Allocated.Joined::Work").then_some(*il_offset)
            }
            _ => None,
        };
        let mut sums: BTreeMap<(&str, Option<u32>), u64> = BTreeMap::new();
        for (_, record) in records(process) {
            if let Some(offset) = process.stacks.frames(record.stack).find_map(|frame| by_work(&frame)) {
                *sums.entry((type_name(process, &record), offset)).or_default() += record.weight;
            }
        }
        let of = |is_it: fn(&(&str, Option<u32>)) -> bool| {
            sums.iter().filter(|(key, _)| is_it(key)).map(|(_, bytes)| *bytes).sum::<u64>()
        };
        let (all, without) = (of(|_| true), of(|(_, offset)| offset.is_none()));
        assert!(all > 100_000_000 && without < all / 10, "{place}: {sums:?}");
        // Arrays are made where the list grows, by the statement that makes most texts. Its call of
        // `Add`, at 47, may be told.
        let statement = |offset: u32| if (28..52).contains(&offset) { 28 } else { offset };
        let lists = sums.keys().filter(|key| key.0 == "string[]").filter_map(|key| key.1);
        let lists: BTreeSet<u32> = lists.map(statement).collect();
        let texts = sums.iter().filter(|(key, _)| key.0 == "string").max_by_key(|(_, bytes)| **bytes);
        let most = texts.and_then(|((_, offset), _)| *offset).expect("the statement of most texts");
        assert_eq!(lists, BTreeSet::from([statement(most)]), "{place}: {sums:?}");
    });
}

/// Objects that are followed by their types, as far as `by` is on their stacks: those alive and
/// those gone.
fn followed<'a>(process: &'a Process, by: &str) -> BTreeMap<&'a str, (u64, u64)> {
    let all = records(process);
    let of = |kind| all.iter().map(|(_, record)| record).filter(move |record| record.kind == kind);
    let gone: BTreeSet<u32> = of(AllocationKind::Gone).map(|record| record.object).collect();
    let mut counts = BTreeMap::new();
    for record in of(AllocationKind::Followed).filter(|record| methods(process, record).contains(&by)) {
        let count: &mut (u64, u64) = counts.entry(type_name(process, record)).or_default();
        *if gone.contains(&record.object) { &mut count.1 } else { &mut count.0 } += 1;
    }
    counts
}

/// Objects that a cache keeps are alive at the end, those that were dropped are gone.
#[test]
fn what_a_cache_keeps_is_alive_and_what_was_dropped_is_gone() {
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let stop = tempfile::NamedTempFile::new().expect("a file");
        let arguments = ["keep", stop.path().to_str().expect("a path")];
        let run = record_with(runtime, "Allocated", "alloc:exact,live", &arguments);
        assert_unchanged(&run.finished, &bare(runtime, &arguments), &place);
        let process = &run.recording.processes[0];
        assert_nothing_is_lost(process, &place);
        let alive = |name: &str, by: &str| followed(process, by).get(name).copied().unwrap_or_default();
        assert_eq!(alive("Allocated.Point[]", "Allocated.Program::Remember"), (4_000, 0), "{place}");
        let kept = "Allocated.Cache<string, Allocated.Point[]>";
        assert_eq!(alive(kept, "Allocated.Program::Remember"), (4_000, 0), "{place}");
        let (alive, gone) = alive("long[]", "Allocated.Program::Drop");
        // The last is still in a static field when the last collection runs.
        assert!(alive <= 1 && alive + gone == 40_000, "{place}: {alive} alive, {gone} gone");
    });
}

#[test]
fn threads_that_all_allocate_and_memory_that_runs_out_are_counted_through() {
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let run = record_with(runtime, "Allocated", "alloc:exact", &["many", "1000"]);
        assert_eq!(run.finished.stdout_text(), "done\n", "{place}");
        let found = below(&run.recording.processes[0], "Allocated.Program::NewPoint");
        assert_eq!(found.get("Allocated.Point"), Some(&(500_000, 12_000_000)), "{place}: {found:?}");
        for request in ["gc", "gc:survivors;alloc", "alloc:exact", "gc;alloc:live"] {
            let mut command = runtime.command(&fixture("Allocated"));
            command.arg("exhaust").env("DOTNET_GCHeapHardLimit", "0x2000000");
            let run = support::record_command(runtime, "Allocated", request, command);
            assert_eq!(run.finished.stdout_text(), "exhausted\n", "{place} {request}: {}", run.finished.stderr_text());
        }
    });
}

/// Objects and bytes that were seen, and collections, of a program that is still running or was
/// killed; `None` before there are any.
fn seen_so_far(out: &std::path::Path) -> Option<(u64, u64, usize)> {
    let recording = clrscope_recording::open(out).ok()?;
    let all = records(recording.processes.first()?);
    let allocated = all.iter().map(|(_, record)| record).filter(|record| record.kind == AllocationKind::Allocated);
    let (objects, bytes) = allocated.fold((0, 0), |sums, record| (sums.0 + record.objects, sums.1 + record.bytes));
    let collections = collections(&recording, &Query::default()).map_or(0, |rows| rows.len());
    (objects > 0 && collections > 0).then_some((objects, bytes, collections))
}

#[test]
fn killed_while_it_allocates_what_was_seen_of_objects_and_collections_is_there() {
    each_runtime(|runtime| {
        for request in ["gc;alloc:exact,live", "gc:survivors;alloc"] {
            let place = format!("{request} on {}", runtime.version);
            let folder = scratch();
            let out = folder.path().join("run.clrs.d");
            let mut command = runtime.command(&fixture("Allocated"));
            // More than it can allocate before it is killed, and a collection every few megabytes.
            command.args(["mixed", "100000000"]).env("DOTNET_GCgen0size", "400000");
            under_agent(&mut command, request, &out);
            let service = Service::start_silent(command);
            wait_for("objects and collections", || seen_so_far(&out));
            pause(random_pause(Duration::from_millis(100)));
            let before = seen_so_far(&out).unwrap_or_else(|| panic!("{place}: they were there"));
            let finished = service.stop("KILL");
            assert_eq!((finished.stdout_text(), finished.stderr_text()), (String::new(), String::new()), "{place}");
            let recording = clrscope_recording::open(&out).expect("a recording");
            assert_eq!(recording.problems, [], "{place}");
            let process = &recording.processes[0];
            assert_nothing_is_lost(process, &place);
            assert!(!process.complete, "{place}");
            let after = seen_so_far(&out).unwrap_or_else(|| panic!("{place}: they were there"));
            let is_more = after.0 >= before.0 && after.1 >= before.1 && after.2 >= before.2;
            assert!(is_more, "{place}: {before:?} before, {after:?} after");
        }
    });
}

/// Collections all the time: counts stay exact, and each object that is followed goes once.
#[test]
fn collections_all_the_time_change_no_count() {
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let mut command = runtime.command(&fixture("Allocated"));
        command.args(["exact", "2", "1500"]).env("DOTNET_GCgen0size", "40000");
        let run = support::record_command(runtime, "Allocated", "gc;alloc:exact,live", command);
        assert!(run.finished.status.success(), "{place}: {}", run.finished.stderr_text());
        let process = &run.recording.processes[0];
        assert_nothing_is_lost(process, &place);
        let found = below(process, "Allocated.Program::Work");
        let bytes: u64 = found.values().map(|(_, bytes)| bytes).sum();
        assert_eq!(bytes, printed(&run, "bytes"), "{place}: as the runtime itself counts\n{found:#?}");
        let (alive, gone) = followed(process, "Allocated.Program::Work")["Allocated.Money"];
        assert!(alive + gone == 3_000 && gone > 1_000, "{place}: {alive} alive, {gone} gone");
        let all = records(process);
        let objects = |kind| all.iter().filter(move |(_, record)| record.kind == kind).map(|(_, record)| record.object);
        let (followed, gone) = (objects(AllocationKind::Followed), objects(AllocationKind::Gone));
        let numbers: BTreeSet<u32> = followed.clone().collect();
        assert_eq!(numbers.len(), followed.count(), "{place}: each has a number of its own");
        assert_eq!(gone.clone().collect::<BTreeSet<_>>().len(), gone.clone().count(), "{place}: and goes once");
        assert!(gone.into_iter().all(|number| numbers.contains(&number)), "{place}");
        let rows = collections(&run.recording, &Query::default()).expect("collections");
        assert!(rows.len() > 5, "{place}: {} collections", rows.len());
    });
}

/// Weak handles and names of types hold no context: Loading fails where none is unloaded. Stacks
/// that were looked up after their code had gone lacked the methods of the context. On .NET 10 all
/// objects lacked them, as all methods that one call leads to looked the same there.
#[test]
fn objects_of_contexts_that_come_and_go_are_counted_and_hold_none() {
    each_runtime(|runtime| {
        for request in ["alloc:exact,live", "gc:survivors;alloc:live"] {
            let place = format!("{request} on {}", runtime.version);
            let run = record_with(runtime, "Loading", request, &["contexts"]);
            let mut command = runtime.command(&fixture("Loading"));
            command.arg("contexts");
            assert_unchanged(&run.finished, &clrscope_testkit::run(command), &place);
            let process = &run.recording.processes[0];
            assert_nothing_is_lost(process, &place);
            if request.contains("exact") {
                let all = records(process);
                let items = || {
                    all.iter().map(|(_, record)| record).filter(|of| type_name(process, of) == "Plugin.Item<string>")
                };
                let allocated = items().filter(|record| record.kind == AllocationKind::Allocated);
                assert_eq!(allocated.map(|record| record.objects).sum::<u64>(), 6_000, "{place}");
                let followed = items().filter(|record| record.kind == AllocationKind::Followed).count();
                assert_eq!(followed, 6_000, "{place}");
                let found = below(process, "Plugin.Work::Run");
                assert_eq!(found.get("Plugin.Item<string>"), Some(&(6_000, 144_000)), "{place}: {found:?}");
            }
        }
    });
}

/// With a small `max=` each thread had a table of 3 KiB all the same, and what `gc` takes was not
/// said at all.
#[test]
fn tables_of_a_thousand_threads_keep_to_a_small_limit_and_are_told_of() {
    const THREADS: u64 = 1_000;
    let newest = clrscope_testkit::runtimes().last().expect("a runtime");
    let request = "gc:survivors,max=1MiB;alloc:exact,max=1MiB";
    let run = record_with(newest, "Allocated", request, &["many", &THREADS.to_string()]);
    assert_eq!(run.finished.stdout_text(), "done\n");
    let memory: BTreeMap<&str, u64> = run.recording.processes[0].memory_of_instruments().collect();
    assert_eq!(memory.keys().copied().collect::<Vec<_>>(), ["alloc", "gc"]);
    // Four places of 48 bytes are there for each thread in any case.
    assert!(memory["alloc"] < (1 << 18) + THREADS * 4 * 48, "{memory:?}");
    assert!(memory["gc"] < 1 << 18, "{memory:?}");
}
