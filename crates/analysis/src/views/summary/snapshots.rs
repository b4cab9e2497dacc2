//! Sentences about snapshots of the heap.

use clrscope_contract::instruments::check;
use clrscope_contract::instruments::heap::{AT, SPEC};
use clrscope_contract::instruments::spec::Moment;
use clrscope_recording::model::{HeapSnapshot, Process, Recording, SnapshotReason, SnapshotState};

use super::findings::Finding;
use crate::numbers::{bytes, number, time};
use crate::printable::one_line;
use crate::query::Query;
use crate::select::processes;

/// The sentences of a summary, where snapshots were to be taken: what became of each, and that there is none at the end
/// where the program ended without a word.
pub(super) fn found(recording: &Recording, query: &Query) -> Vec<Finding> {
    let is_wanted_at_end = recording.run.filled.instruments().iter().any(|request| {
        let checked = check(request).ok().filter(|_| request.name == SPEC.name);
        checked.is_some_and(|checked| checked.moments(AT).contains(&Moment::End))
    });
    let mut texts = Vec::new();
    for process in processes(recording, query).unwrap_or_default() {
        texts.extend(process.snapshots.iter().map(outcome));
        if is_wanted_at_end && process.refusal().is_none() && lacks_its_last(process) {
            texts.push(format!(
                "there is no snapshot of the heap at the end of process {}: it ended without saying so, as by a signal or by an \
                 exception that nobody caught",
                process.pid
            ));
        }
    }
    texts.into_iter().map(|text| Finding::exact(text, 0.0)).collect()
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
            format!("{what} has {objects} objects of {size}; the program stood still for {pause}")
        }
        SnapshotState::NoRoom => format!("{what} found no room, and is not shown: {}", one_line(why)),
        SnapshotState::Refused => format!("{what} could not be taken: {}", one_line(why)),
        _ => format!("{what} was cut, and is not shown: the program ended while it was taken"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(outcome(&full), "snapshot 2 'a\\nb' of the heap found no room, and is not shown: full");
        let cut = HeapSnapshot { number: 3, ..HeapSnapshot::default() };
        assert!(outcome(&cut).contains("was cut"));
    }
}
