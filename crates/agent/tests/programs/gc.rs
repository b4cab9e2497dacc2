//! `gc` against programs that know what the runtime counts itself: collections, pauses, bytes.

use std::collections::BTreeMap;

use crate::support::{Run, record_command};
use clrscope_analysis::{Collection, CollectionKind, Query, SurvivorQuery, collection_facts, collections, survivors};
use clrscope_testkit::{Runtime, each_runtime, fixture, not_run, runtimes};

/// A way in which the runtime collects, with the variables that ask for it.
type Flavour = (&'static str, &'static [(&'static str, &'static str)]);

/// Collectors in a library of their own, with the first version that has it.
const IN_LIBRARIES: [(Flavour, u32); 2] = [
    (("segments", &[("DOTNET_GCName", "libclrgc.so")]), 8),
    (("regions and adapting", &[("DOTNET_GCName", "libclrgcexp.so"), ("DOTNET_gcServer", "1")]), 9),
];

/// Collectors that every runtime is tried with.
const COMMON: [Flavour; 2] =
    [("workstation", &[]), ("server", &[("DOTNET_gcServer", "1"), ("DOTNET_GCHeapCount", "2")])];

/// Others, for the newest.
const OTHERS: [Flavour; 3] = [
    ("not concurrent", &[("DOTNET_gcConcurrent", "0")]),
    ("conserving memory", &[("DOTNET_GCConserveMemory", "5")]),
    ("adapting", &[("DOTNET_gcServer", "1"), ("DOTNET_GCDynamicAdaptationMode", "1")]),
];

fn each_flavour(check: impl Fn(&Runtime, Flavour) + Sync) {
    each_runtime(|runtime| {
        let in_libraries = IN_LIBRARIES.iter().filter(|(_, since)| runtime.version.major >= *since);
        COMMON.iter().chain(in_libraries.map(|(flavour, _)| flavour)).for_each(|flavour| check(runtime, *flavour));
    });
    let newest = runtimes().last().expect("a runtime");
    OTHERS.iter().for_each(|flavour| check(newest, *flavour));
}

fn record(runtime: &Runtime, flavour: Flavour, arguments: &[&str]) -> Run {
    let mut command = runtime.command(&fixture("Collections"));
    command.args(arguments).envs(flavour.1.iter().copied());
    record_command(runtime, "Collections", "gc", command)
}

/// The numbers behind a word that the program says.
fn said(run: &Run, word: &str) -> Vec<u64> {
    let text = run.finished.stdout_text();
    let line = text.lines().find_map(|line| line.strip_prefix(word)).unwrap_or_else(|| panic!("no {word} in {text}"));
    line.split_whitespace().map(|number| number.parse().expect("a number")).collect()
}

fn rows(run: &Run) -> Vec<Collection<'_>> {
    collections(&run.recording, &Query::default()).expect("collections")
}

/// Own code that caused each collection.
fn causes<'a>(rows: &[Collection<'a>]) -> BTreeMap<&'a str, Vec<Collection<'a>>> {
    let mut by_cause: BTreeMap<&str, Vec<Collection<'_>>> = BTreeMap::new();
    for row in rows {
        by_cause.entry(row.cause().map_or("", |cause| cause.name())).or_default().push(row.clone());
    }
    by_cause
}

#[test]
fn collections_are_those_that_the_program_asked_for_and_the_runtime_counts() {
    each_flavour(|runtime, flavour| {
        let run = record(runtime, flavour, &["known"]);
        let place = format!("{} on {}", flavour.0, runtime.version);
        assert!(run.finished.status.success(), "{place}: {}", run.finished.stderr_text());
        let process = &run.recording.processes[0];
        assert!(process.losses.is_empty() && run.recording.problems.is_empty(), "{place}: {:?}", process.losses);
        let rows = rows(&run);
        let mut counts = vec![0_u64; 3];
        rows.iter().for_each(|row| counts[row.generation as usize] += 1);
        assert_eq!(counts, said(&run, "COLLECTIONS"), "{place}: by generation");
        let by_cause = causes(&rows);
        let of = |method: &str| by_cause.get(&*format!("Collections.Program::{method}")).map_or(&[][..], Vec::as_slice);
        // A server's collector makes more of a request at times, by the runtime's own events on 8,
        // 9 and 10: a request for a young generation becomes a collection of all in the background,
        // and the next request is then part of that. The program counts what happened.
        let is_server = flavour.1.contains(&("DOTNET_gcServer", "1"));
        for (method, asked) in [("Zero", 5), ("One", 3), ("Full", 7), ("Compact", 1)] {
            let (rows, counted) = (of(method), said(&run, &format!("DURING {method}"))[0]);
            assert_eq!(rows.len() as u64, counted, "{place}: by {method}, {rows:?}");
            assert!(counted == asked || is_server && counted + 1 == asked, "{place}: {counted} by {method} of {asked}");
            let may_be_background = is_server && ["Zero", "One"].contains(&method);
            let is_blocking = |row: &Collection<'_>| row.kind == CollectionKind::Blocking || may_be_background;
            assert!(rows.iter().all(|row| is_blocking(row) && row.reason.is_induced()), "{place}: {rows:?}");
        }
        for row in ["Zero", "One", "Full", "Compact"].into_iter().flat_map(of) {
            assert!(row.end_ns.is_some() && row.pause_ns > 0 && row.suspend_ns <= row.pause_ns, "{place}: {row:?}");
            assert_eq!(row.thread.map(|thread| thread.role.name()), Some("main"), "{place}");
        }
        let full = of("Full");
        assert!(full.iter().all(|row| row.generation == 2 && row.compacting.is_some()), "{place}: {full:?}");
        assert!(of("Compact").iter().all(|row| row.generation == 2 && row.compacting == Some(true)), "{place}");
        sizes_grow(full, &place);
        pauses_agree(&run, &rows, &place);
        assert_eq!(said(&run, "DIED"), [40], "{place}");
        let finalizers: u64 = rows.iter().map(|row| row.finalizers).sum();
        // The framework has some of its own.
        assert!((40..200).contains(&finalizers), "{place}: {finalizers} finalizers");
        let facts = collection_facts(&run.recording, &Query::default()).expect("facts");
        let growth = facts.growth.unwrap_or_else(|| panic!("{place}: the heap grows, {rows:?}"));
        let grown = growth.last_bytes - growth.first_bytes;
        assert!((11_000_000..14_000_000).contains(&grown), "{place}: {growth:?}");
        assert!(growth.bytes_per_minute > 1e6, "{place}: {growth:?}");
    });
}

/// Two million bytes more are left among large objects each time.
fn sizes_grow(full: &[Collection<'_>], place: &str) {
    let large: Vec<u64> = full.iter().map(|row| row.generations[3].after - row.generations[3].free_after).collect();
    assert!(large.windows(2).all(|pair| pair[1] >= pair[0] + 2_000_000), "{place}: {large:?}");
    let last = full.last().expect("a collection");
    assert!(last.before_bytes() >= last.live_bytes() && last.promoted_bytes > Some(12_000_000), "{place}: {last:?}");
    assert!(last.pinned_objects >= Some(1), "{place}: {last:?}");
}

/// The callbacks, the runtime's events and what it says of itself.
fn pauses_agree(run: &Run, rows: &[Collection<'_>], place: &str) {
    let ours: u64 = rows.iter().map(|row| row.pause_ns).sum();
    let known = rows.iter().filter_map(|row| Some((row.pause_ns, row.runtime_pause_ns?)));
    let (by_callbacks, by_events) = known.clone().fold((0, 0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
    assert!(known.clone().count() + 3 >= rows.len(), "{place}: {rows:?}");
    assert!(known.clone().all(|(callbacks, events)| events >= callbacks), "{place}: {:?}", known.collect::<Vec<_>>());
    // A thread that writes an event may wait for a processor.
    let near = |one: u64, other: u64| one.abs_diff(other) <= one.max(other) / 5 + 60_000_000;
    assert!(near(by_callbacks, by_events), "{place}: {by_callbacks} and {by_events}");
    // Nor does stopping the threads take longer by the one than by the other.
    let stopped = rows.iter().filter_map(|row| Some((row.suspend_ns, row.runtime_suspend_ns?)));
    let (by_callbacks, by_events) = stopped.clone().fold((0, 0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
    assert!(stopped.count() + 3 >= rows.len(), "{place}: {rows:?}");
    assert!(near(by_callbacks, by_events), "{place}: stopped in {by_callbacks} and {by_events}");
    let paused = said(run, "PAUSED")[0];
    assert!(near(ours, paused), "{place}: {ours} ns here, {paused} ns by the runtime");
}

/// Collectors that have no thread yet for a collection alongside the program stop the program all
/// the same: what the runtime's event calls background is a blocking one then.
#[test]
fn a_collection_beside_the_program_is_one_in_the_background_with_short_pauses() {
    each_runtime(|runtime| {
        let run = record(runtime, COMMON[0], &["background"]);
        let (place, rows) = (&runtime.version, rows(&run));
        let asked: Vec<_> = rows.iter().filter(|row| row.reason.words() == "induced, not forced").collect();
        assert_eq!(asked.len(), 6, "{place}: {rows:?}");
        for row in &asked {
            assert!(row.generation == 2 && row.pause_ns > 0, "{place}: {row:?}");
            assert!(row.live_bytes() > Some(1_000_000 * 24), "{place}: {row:?}");
            assert_eq!(row.cause().map(|cause| cause.name()), Some("Collections.Program::Background"), "{place}");
            let lasted_ns = row.end_ns.expect("an end") - row.start_ns;
            assert_eq!(row.kind == CollectionKind::Background, row.pause_ns < lasted_ns, "{place}: {row:?}");
        }
        if !asked.iter().any(|row| row.kind == CollectionKind::Background) {
            not_run(&format!("a collection in the background: .NET {place} makes none here"));
        }
    });
}

#[test]
fn bytes_allocated_between_collections_are_those_that_the_program_allocated() {
    each_runtime(|runtime| {
        // Collections every 32 MB, whatever the caches of the processor.
        let run = record(runtime, ("small", &[("DOTNET_GCgen0size", "2000000")]), &["allocate", "300"]);
        let rows = rows(&run);
        let allocated: u64 = rows.iter().filter_map(|row| row.allocated_bytes).sum();
        let known = said(&run, "ALLOCATED")[0];
        // What was allocated before the first collection and after the last is not known.
        assert!(
            allocated < known * 21 / 20 && allocated > known * 3 / 5,
            "{}: {allocated} of {known}, {rows:?}",
            runtime.version
        );
        let causes = causes(&rows);
        assert!(causes.contains_key("Collections.Program::Allocate"), "{}: {:?}", runtime.version, causes.keys());
        assert!(rows.iter().all(|row| !row.reason.is_induced()), "{rows:?}");
    });
}

/// Sums of the survivals of a type in a generation: objects, bytes, those moved, those that died.
fn survivals(run: &Run, type_name: &str, generation: u32) -> Option<(u64, u64, u64, Option<u64>)> {
    let (rows, _) = survivors(&run.recording, &SurvivorQuery::default()).expect("survivors");
    let mut of_type = rows.iter().filter(|row| (row.type_name, row.generation) == (type_name, generation));
    of_type.next().map(|row| (row.objects, row.bytes, row.moved_objects, row.died_objects))
}

#[test]
fn survivors_are_counted_by_type_and_generation_and_so_are_those_that_die_young() {
    each_runtime(|runtime| {
        for (flavour, environment) in COMMON {
            let mut command = runtime.command(&fixture("Collections"));
            command.args(["known"]).envs(environment.iter().copied());
            let run = record_command(runtime, "Collections", "gc:survivors", command);
            let place = format!("{flavour} on {}", runtime.version);
            assert!(run.finished.status.success(), "{place}: {}", run.finished.stderr_text());
            // The first collection finds all of them in generation 0, and they move on from there
            // to the last.
            let young = survivals(&run, "Collections.Survivor", 0).unwrap_or_else(|| panic!("{place}: none"));
            assert_eq!((young.0, young.1), (1_000, 24_000), "{place}");
            assert!(young.2 <= 1_000 && young.3 == Some(0), "{place}: {young:?}");
            let old = survivals(&run, "Collections.Survivor", 2).unwrap_or_else(|| panic!("{place}: none"));
            assert!(old.0.is_multiple_of(1_000) && old.0 >= 6_000 && old.1 == old.0 * 24, "{place}: {old:?}");
            let doomed = survivals(&run, "Collections.Doomed", 0);
            assert!(doomed.is_some_and(|of| of.0 <= 1 && of.3.is_some_and(|died| died >= 499)), "{place}: {doomed:?}");
            let rows = rows(&run);
            assert!(rows.iter().all(|row| row.kind == CollectionKind::Blocking), "{place}: {rows:?}");
            let large = survivals(&run, "byte[]", 3);
            assert!(large.is_some_and(|of| of.0 == 1 + 2 + 3 + 4 + 5 + 6 + 6), "{place}: {large:?}");
        }
    });
}
