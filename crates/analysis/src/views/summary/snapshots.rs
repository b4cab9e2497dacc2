//! Sentences about heap snapshots.

use clrscope_contract::instruments::check;
use clrscope_contract::instruments::heap::{AT, SPEC};
use clrscope_contract::instruments::spec::Moment;
use clrscope_recording::model::{HeapSnapshot, Process, Recording, SnapshotReason, SnapshotState};

use super::{Finding, FindingKind};
use crate::numbers::{bytes, number, time};
use crate::printable::one_line;
use crate::query::Query;
use crate::select::processes;

/// The sentences of a summary if snapshots were requested: about the outcome of each snapshot,
/// about a snapshot missing at the end because the program ended abruptly, and about requested
/// snapshots at moments that the program did not reach.
pub(super) fn found(recording: &Recording, query: &Query) -> Vec<Finding> {
    let heap = recording.run.filled.instruments().iter().find(|request| request.name == SPEC.name);
    let checked = heap.and_then(|request| check(request).ok());
    let moments = checked.as_ref().map_or(&[][..], |checked| checked.moments(AT));
    let is_wanted_at_end = moments.contains(&Moment::End);
    let mut texts = Vec::new();
    for process in processes(recording, query).unwrap_or_default() {
        texts.extend(process.snapshots.iter().map(outcome));
        texts.extend(moments_missed(process, moments).map(|moment| {
            let (pid, lasted) = (process.pid, time(process.duration_ns));
            match moment {
                Moment::Resident(_) => {
                    format!("there is no snapshot of the heap at {moment}: process {pid} never had that much in memory")
                }
                _ => format!("there is no snapshot of the heap at {moment}: process {pid} was recorded for {lasted}"),
            }
        }));
        if is_wanted_at_end && process.refusal().is_none() && lacks_its_last(process) {
            texts.push(format!(
                "there is no snapshot of the heap at the end of process {}: it ended abruptly, as by a signal or an \
                 unhandled exception",
                process.pid
            ));
        }
    }
    texts.into_iter().map(|text| Finding::exact(FindingKind::Recording, text, 0.0)).collect()
}

/// Moments for snapshots that a process did not reach while it was recorded.
fn moments_missed<'a>(process: &Process, moments: &'a [Moment]) -> impl Iterator<Item = &'a Moment> + use<'a> {
    let taken = |reason| process.snapshots.iter().filter(move |found| found.reason == reason);
    let times = taken(SnapshotReason::Time).count();
    let lasted = process.duration_ns;
    let is_over = process.exit.is_some() && process.refusal().is_none();
    let all_times = moments.iter().filter(|moment| matches!(moment, Moment::After(_))).skip(times);
    let missed_times =
        all_times.filter(move |moment| matches!(moment, Moment::After(ms) if ms.saturating_mul(1_000_000) > lasted));
    // A snapshot has the name of the greatest size that the process had exceeded by then.
    let all_sizes = moments.iter().filter(|moment| matches!(moment, Moment::Resident(_)));
    let is_taken = |moment: &Moment| taken(SnapshotReason::Size).any(|found| found.name == moment.to_string());
    let passed = all_sizes.clone().enumerate().filter(|(_, moment)| is_taken(moment)).map(|(at, _)| at + 1).last();
    missed_times.chain(all_sizes.skip(passed.unwrap_or(0))).filter(move |_| is_over)
}

fn lacks_its_last(process: &Process) -> bool {
    process.exit.is_some() && !process.snapshots.iter().any(|found| found.reason == SnapshotReason::End)
}

/// Outcome of a snapshot.
fn outcome(snapshot: &HeapSnapshot) -> String {
    let HeapSnapshot { number: ordinal, name, why, .. } = snapshot;
    let name = if name.is_empty() { String::new() } else { format!(" '{}'", one_line(name)) };
    let what = format!("snapshot {ordinal}{name} of the heap");
    match snapshot.state {
        SnapshotState::Complete => {
            let objects = number(snapshot.objects);
            let size = bytes(snapshot.bytes);
            let pause = time(snapshot.pause_ns);
            format!("{what} has {objects} objects of {size}; the program was stopped for {pause}")
        }
        SnapshotState::NoRoom => format!("{what} could not be stored, and is not shown: {}", one_line(why)),
        SnapshotState::Refused => format!("{what} could not be taken: {}", one_line(why)),
        _ => format!("{what} was cut, and is not shown: the program ended while it was taken"),
    }
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::Exit;

    use super::*;

    /// Regression: `heap:at=2s` gave no sentence for a program that ended earlier.
    #[test]
    fn times_that_the_program_did_not_live_to_see_are_named() {
        let moments = [500, 2_000, 3_000].map(Moment::After);
        let taken = HeapSnapshot { reason: SnapshotReason::Time, ..HeapSnapshot::default() };
        let mut process = Process { duration_ns: 600_000_000, snapshots: vec![taken], ..Process::default() };
        let missed = |process: &Process| moments_missed(process, &moments).map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(missed(&process), [""; 0], "it may run on");
        process.exit = Some(Exit::Code(0));
        assert_eq!(missed(&process), ["2s", "3s"]);
        process.duration_ns = 2_100_000_000;
        assert_eq!(missed(&process), ["3s"]);
    }

    /// One snapshot represents all sizes that were exceeded at once.
    #[test]
    fn sizes_behind_the_last_snapshot_were_never_reached() {
        let moments = [100_u64 << 20, 1 << 30, 2 << 30].map(Moment::Resident);
        let missed = |snapshots: Vec<HeapSnapshot>| {
            let process = Process { exit: Some(Exit::Code(0)), snapshots, ..Process::default() };
            moments_missed(&process, &moments).map(Moment::to_string).collect::<Vec<_>>()
        };
        let at =
            |name: &str| HeapSnapshot { name: name.into(), reason: SnapshotReason::Size, ..HeapSnapshot::default() };
        assert_eq!(missed(vec![]), ["100MiB", "1GiB", "2GiB"]);
        assert_eq!(missed(vec![at("1GiB")]), ["2GiB"]);
        assert_eq!(missed(vec![at("100MiB"), at("2GiB")]), [""; 0]);
    }

    #[test]
    fn each_snapshot_says_what_became_of_it() {
        let whole = HeapSnapshot {
            number: 1,
            state: SnapshotState::Complete,
            objects: 10_000_273,
            bytes: 320_079_376,
            pause_ns: 901_464_403,
            ..HeapSnapshot::default()
        };
        let text = outcome(&whole);
        assert!(text.starts_with("snapshot 1 of the heap has 10,000,273 objects of "), "{text}");
        let full =
            HeapSnapshot { number: 2, name: "a\nb".into(), state: SnapshotState::NoRoom, why: "full".into(), ..whole };
        assert_eq!(outcome(&full), "snapshot 2 'a\\nb' of the heap could not be stored, and is not shown: full");
        let cut = HeapSnapshot { number: 3, ..HeapSnapshot::default() };
        assert!(outcome(&cut).contains("was cut"));
    }
}
