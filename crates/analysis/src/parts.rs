//! Reduces a recording to some of its parts, before any view reads it.

use std::collections::HashSet;
use std::ops::Range;

use clrscope_recording::model::{CallTree, LossReason, Part, Process, Recording, TreeSource};

use crate::query::{Query, QueryProblem};
use crate::select::quoted_list;

/// Reduces a recording to the parts with these names. Trees keep the values gained during these
/// parts, and events stay if they are in one of them. Parts with the same name count together, and
/// time in several parts counts once. Without names nothing changes.
///
/// # Errors
/// When no process has a part with one of the names.
pub fn keep_parts(recording: &mut Recording, names: &[String]) -> Result<(), QueryProblem> {
    if names.is_empty() {
        return Ok(());
    }
    let mut known: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    for span in recording.processes.iter().flat_map(|process| Part::spans(&process.parts)) {
        if seen.insert(span.name.clone()) {
            known.push(span.name);
        }
    }
    let unknown: Vec<String> = names.iter().filter(|name| !seen.contains(*name)).cloned().collect();
    if !unknown.is_empty() {
        return Err(QueryProblem::NoPart { wanted: quoted_list(&unknown), known });
    }
    recording.processes.iter_mut().for_each(|process| keep_parts_of(process, names));
    Ok(())
}

/// The time that a recording covers, in nanoseconds since the Unix epoch: the recording's period,
/// or the chosen parts. Without either, the whole run.
#[must_use]
pub fn observed_unix_ns(recording: &Recording) -> Range<u64> {
    let (observed, started) = (observed_time(recording), recording.run.started_unix_ns);
    started.saturating_add(observed.start)..started.saturating_add(observed.end)
}

/// Length of the time that a recording covers, in nanoseconds.
#[must_use]
pub fn observed_ns(recording: &Recording) -> u64 {
    let observed = observed_unix_ns(recording);
    observed.end - observed.start
}

/// Whether the recorded programs kept running after the recording ended: the recording was stopped,
/// or covers only an earlier period.
#[must_use]
pub fn ran_on(recording: &Recording) -> bool {
    let all = &recording.processes;
    let may_run = |one: &Process| !one.complete && !one.has_lost(LossReason::AbruptEnd);
    let is_earlier = || observed_ns(recording) < recording.run.duration_ns && all.iter().all(may_run);
    !all.is_empty()
        && recording.run.exit.is_none()
        && (is_earlier() || all.iter().all(|one| one.has_lost(LossReason::Stopped)))
}

/// The time that a recording covers, in nanoseconds since the start of the run: the recording's
/// period, or the whole run. Chosen parts do not change it.
#[must_use]
pub fn recorded_time(recording: &Recording) -> Range<u64> {
    let time = time_of(recording, |process| part_time(process).map(Some));
    // A part may end after the last sign of life, or at a damaged time.
    time.start..time.end.min(recording.run.duration_ns).max(time.start)
}

/// The time from a process's first part to its last one; `None` without parts.
fn part_time(process: &Process) -> Option<Range<u64>> {
    Some(process.parts.first()?.since_ns..process.parts.last()?.until_ns)
}

/// As [`recorded_time`], but only with the chosen parts.
fn observed_time(recording: &Recording) -> Range<u64> {
    time_of(recording, |process| match &process.shown {
        // A process without one of the chosen parts has nothing to show.
        Some(shown) => Some(shown.first().zip(shown.last()).map(|(first, last)| first.0..last.1)),
        None => part_time(process).map(Some),
    })
}

/// The time of all processes; the whole run where `of_process` has no time of one.
fn time_of(recording: &Recording, of_process: impl Fn(&Process) -> Option<Option<Range<u64>>>) -> Range<u64> {
    let whole = 0..recording.run.duration_ns;
    let observed: Option<Vec<_>> = recording.processes.iter().map(of_process).collect();
    let observed: Option<Vec<Range<u64>>> = observed.map(|all| all.into_iter().flatten().collect());
    let Some(observed) = observed.filter(|observed| !observed.is_empty()) else { return whole };
    let start = observed.iter().map(|time| time.start).min().unwrap_or(whole.start);
    start..observed.iter().map(|time| time.end).max().unwrap_or(whole.end).max(start)
}

fn keep_parts_of(process: &mut Process, names: &[String]) {
    let kept: Vec<&Part> = Part::named(&process.parts, names).into_iter().map(|at| &process.parts[at]).collect();
    let cpu_ns = |tree: &CallTree| tree.values().iter().map(|(_, values)| values.cpu_ns).sum::<u64>();
    for (index, thread) in (0..).zip(&mut process.threads) {
        let trees: Vec<TreeSource> = kept.iter().filter_map(|part| part.trees.of_thread(index)).collect();
        thread.tree = match trees.as_slice() {
            [only] => only.clone(),
            [] => TreeSource::default(),
            _ => TreeSource::lazy(move || CallTree::sum(&trees.iter().map(TreeSource::load).collect::<Vec<_>>())),
        };
        thread.cpu_ns = thread.cpu_ns.map(|_| cpu_ns(&thread.tree.load()));
    }
    process.cpu_ns = process.cpu_ns.map(|_| process.threads.iter().filter_map(|thread| thread.cpu_ns).sum());
    process.shown = Some(merged(kept.iter().map(|part| (part.since_ns, part.until_ns))));
}

/// Time ranges in order, with adjacent ranges merged.
fn merged(times: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut times: Vec<(u64, u64)> = times.collect();
    // A damaged recording may have them in any order.
    times.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (since, until) in times {
        match merged.last_mut() {
            Some(last) if last.1 >= since => last.1 = last.1.max(until),
            _ => merged.push((since, until)),
        }
    }
    merged
}

/// Length of the shown part of a recording.
fn shown_ns(recording: &Recording) -> u64 {
    let of_process = |process: &Process| {
        let parts = process.shown.as_ref()?.iter();
        Some(parts.map(|(since, until)| until.saturating_sub(*since)).sum::<u64>())
    };
    recording.processes.iter().filter_map(of_process).max().unwrap_or(recording.run.duration_ns)
}

/// Returns the length of the part of a recording that a query shows, in nanoseconds.
pub(crate) fn queried_ns(recording: &Recording, query: &Query) -> u64 {
    let shown = shown_ns(recording);
    if query.since_ns.is_none() && query.until_ns.is_none() {
        return shown;
    }
    let until = query.until_ns.unwrap_or(u64::MAX).min(recording.run.duration_ns);
    until.saturating_sub(query.since_ns.unwrap_or(0)).min(shown)
}

/// Length of the time in which a process was recorded and which the query shows, in nanoseconds.
pub(crate) fn watched_ns(process: &Process, query: &Query) -> u64 {
    let whole = (process.started_ns, process.started_ns.saturating_add(process.duration_ns));
    let times = watched_times(process, query, whole);
    times.iter().map(|(since, until)| until.saturating_sub(*since)).fold(0, u64::saturating_add)
}

/// Time ranges in which a process was recorded and which the query shows: from and to, in
/// nanoseconds since the start of the run. `whole` is the recorded range if the recording was never
/// switched on or off.
pub(crate) fn watched_times(process: &Process, query: &Query, whole: (u64, u64)) -> Vec<(u64, u64)> {
    let parts: Vec<(u64, u64)> = process.parts.iter().map(|part| (part.since_ns, part.until_ns)).collect();
    // A recording that was switched off meanwhile has parts.
    let times = match &process.shown {
        Some(shown) => shown.as_slice(),
        None if parts.is_empty() => &[whole],
        None => &parts,
    };
    let wanted = |&(since, until): &(u64, u64)| {
        let since = since.max(query.since_ns.unwrap_or(since));
        (since, until.min(query.until_ns.unwrap_or(until)))
    };
    times.iter().map(wanted).filter(|(since, until)| since <= until).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clrscope_recording::model::{CallTreeBuilder, Node, NodeFlags, NodeValues, PartTrees, ROOT, Thread};

    use super::*;

    fn tree(calls: u64) -> TreeSource {
        let mut builder = CallTreeBuilder::new(NodeValues::default());
        let values = NodeValues { metric: calls, cpu_ns: calls };
        builder.push(Node { parent: ROOT, function: 1, calls, values, flags: NodeFlags::default() });
        TreeSource::ready(builder.finish())
    }

    fn part(name: &str, since_ns: u64, calls: u64) -> Part {
        let trees = PartTrees::new(BTreeMap::from([(0, tree(calls))]));
        Part { name: name.to_owned(), since_ns, until_ns: since_ns + 10, trees, ..Part::default() }
    }

    fn recording() -> Recording {
        let thread = Thread { cpu_ns: Some(100), tree: tree(100), ..Thread::default() };
        let parts = vec![part("1", 0, 60), part("load", 20, 10), part("load", 40, 5)];
        let process = Process { threads: vec![thread], parts, ..Process::default() };
        let other = Process { threads: vec![Thread { tree: tree(7), ..Thread::default() }], ..Process::default() };
        Recording { processes: vec![process, other], ..Recording::default() }
    }

    #[test]
    fn parts_of_one_name_count_together_and_the_rest_is_gone() {
        let mut recording = recording();
        keep_parts(&mut recording, &["load".to_owned()]).expect("a part");
        let [process, other] = recording.processes.as_slice() else { panic!("two processes") };
        assert_eq!((process.threads[0].tree.load().calls(1), process.threads[0].cpu_ns), (15, Some(15)));
        assert!(other.threads[0].tree.load().is_empty());
        assert_eq!([10, 20, 30, 31, 50].map(|time| process.shows(time)), [false, true, true, false, true]);
        assert!(!other.shows(20));
        assert_eq!(shown_ns(&recording), 20);
    }

    #[test]
    fn the_observed_time_is_that_of_the_parts_or_the_whole_run() {
        let mut recording = recording();
        (recording.run.started_unix_ns, recording.run.duration_ns) = (1_000, 70);
        assert_eq!(observed_unix_ns(&recording), 1_000..1_070, "a process without parts was recorded all the time");
        keep_parts(&mut recording, &["load".to_owned()]).expect("a part");
        assert_eq!(observed_unix_ns(&recording), 1_020..1_050, "a process without the part shows nothing");
        let period = Recording { processes: recording.processes[..1].to_vec(), ..recording.clone() };
        assert_eq!(observed_unix_ns(&period), 1_020..1_050);
        recording.run.started_unix_ns = u64::MAX;
        assert_eq!(observed_unix_ns(&recording), u64::MAX..u64::MAX);
    }

    /// The part "test" lies within "load", and both are requested.
    #[test]
    fn what_lies_in_several_parts_counts_once() {
        let mut recording = recording();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let parts = [
            ("load", 0, 10, &["load"][..], &[][..]),
            ("test", 10, 5, &["test"], &["test"]),
            ("load", 20, 3, &[], &["load"]),
        ];
        recording.processes[0].parts = parts
            .map(|(name, since_ns, calls, begins, ends)| Part {
                begins: names(begins),
                ends: names(ends),
                ..part(name, since_ns, calls)
            })
            .into();
        for (asked, calls, shown) in
            [(&["load"][..], 18, (0, 30)), (&["test"], 5, (10, 20)), (&["load", "test"], 18, (0, 30))]
        {
            let mut recording = recording.clone();
            keep_parts(&mut recording, &names(asked)).expect("parts");
            let process = &recording.processes[0];
            assert_eq!(
                (process.threads[0].tree.load().calls(1), process.shown.as_deref()),
                (calls, Some(&[shown][..]))
            );
        }
    }

    #[test]
    fn a_part_that_is_not_there_is_an_error_with_those_that_are() {
        let mut recording = recording();
        let error = keep_parts(&mut recording, &["load".to_owned(), "warm".to_owned()]).expect_err("no such part");
        assert_eq!(error.to_string(), "no part is named 'warm'; the recording has 1, load");
        assert!(recording.processes[0].shown.is_none(), "nothing is changed");
        let error = keep_parts(&mut Recording::default(), &["1".to_owned()]).expect_err("no parts at all");
        assert_eq!(error.to_string(), "no part is named '1'; the recording has none");
    }
}
