//! The snapshots that a query selects.

use clrscope_contract::request::Glob;
use clrscope_recording::heap::{HeapChunk, HeapData};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{HeapSnapshot, Process, Recording, SnapshotState};

use super::load::{LoadedSnapshot, Missing};
use crate::query::{Query, QueryProblem};
use crate::select::processes;

/// Which snapshots to show, and which types in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeapQuery {
    /// The filters that all views share: processes, modules, types, order and limit.
    pub query: Query,
    /// Number of the snapshot in each process; `None` selects the last complete one.
    pub snapshot: Option<u32>,
}

/// A snapshot, with its facts for views.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotRef<'a> {
    /// The process.
    pub process: &'a Process,
    /// The snapshot.
    pub snapshot: &'a HeapSnapshot,
    /// Number of objects that are present.
    pub objects: u64,
    /// Bytes of the objects that are present.
    pub bytes: u64,
    /// Number of references among these objects.
    pub references: u64,
    /// Missing parts of the snapshot.
    pub missing: Missing,
}

impl HeapQuery {
    /// Whether the query selects rows of this type, declared by this module.
    pub(super) fn wants(&self, type_name: &str, module: &str) -> bool {
        Glob::any_matches(&self.query.types, type_name) && Glob::any_matches(&self.query.modules, module)
    }

    /// Checks that the query selects a snapshot of the recording.
    ///
    /// # Errors
    /// When the query selects no process or snapshot.
    pub fn check(&self, recording: &Recording, view: &'static str) -> Result<(), QueryProblem> {
        self.select(recording, view).map(|_| ())
    }

    /// The selected snapshots, one for each process that has any.
    pub(super) fn select<'a>(
        &self,
        recording: &'a Recording,
        view: &'static str,
    ) -> Result<Vec<(&'a Process, &'a HeapSnapshot)>, QueryProblem> {
        let found = processes(recording, &self.query)?;
        let all = || found.iter().flat_map(|process| process.snapshots.iter());
        let Some(last) = all().last() else {
            return Err(QueryProblem::NotRecorded { view, instrument: instrument::HEAP });
        };
        let meant = |process: &&'a Process| {
            let last = |is_it: &dyn Fn(&HeapSnapshot) -> bool| process.snapshots.iter().rfind(|found| is_it(found));
            let snapshot = match self.snapshot {
                Some(number) => last(&|found| found.number == number),
                None => last(&HeapSnapshot::is_complete).or_else(|| last(&|found| is_there(process, found))),
            };
            Some((*process, snapshot?))
        };
        let chosen: Vec<_> = found.iter().filter_map(meant).collect();
        if let Some((_, cut)) = chosen.iter().find(|(process, snapshot)| !is_there(process, snapshot)) {
            return Err(cut_problem(cut));
        }
        match (chosen.is_empty(), self.snapshot) {
            (false, _) => Ok(chosen),
            (true, None) => Err(cut_problem(last)),
            (true, Some(wanted)) => {
                let mut known: Vec<u32> = all().map(|snapshot| snapshot.number).collect();
                known.sort_unstable();
                known.dedup();
                Err(QueryProblem::NoSnapshot { wanted, known })
            }
        }
    }
}

/// Whether objects of a snapshot can be shown: an incomplete snapshot may have some.
fn is_there(process: &Process, snapshot: &HeapSnapshot) -> bool {
    let has_objects = |data: HeapData<'_>| {
        data.chunks().iter().any(|chunk| matches!(data.chunk(&chunk.bytes.load()), HeapChunk::Objects(_)))
    };
    snapshot.is_complete() || process.cut_heap(snapshot.number).is_some_and(has_objects)
}

fn cut_problem(snapshot: &HeapSnapshot) -> QueryProblem {
    QueryProblem::SnapshotCut { number: snapshot.number, why: why_cut(snapshot) }
}

/// Reason why a snapshot is incomplete, as part of a sentence.
pub(super) fn why_cut(snapshot: &HeapSnapshot) -> String {
    let reason = match snapshot.state {
        SnapshotState::Begun => "the program or its recording ended too early",
        SnapshotState::NoRoom => "the disk was full, or the recording had its maximum size",
        SnapshotState::Refused => "the runtime refused",
        _ => "it was not completed",
    };
    match snapshot.why.as_str() {
        "" => reason.to_owned(),
        why => format!("{reason}: {why}"),
    }
}

impl<'a> SnapshotRef<'a> {
    pub(super) fn new(loaded: &LoadedSnapshot<'a>) -> Self {
        Self {
            process: loaded.process,
            snapshot: loaded.snapshot,
            objects: loaded.len() as u64,
            bytes: loaded.bytes(),
            references: loaded.graph.references(),
            missing: loaded.missing,
        }
    }

    /// Reason why the snapshot is incomplete, as part of a sentence; `None` if it is complete.
    #[must_use]
    pub fn why_cut(&self) -> Option<String> {
        (!self.snapshot.is_complete()).then(|| why_cut(self.snapshot))
    }

    /// Time of the snapshot, in nanoseconds since the start of the run.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        self.process.started_ns.saturating_add(self.snapshot.time_ns)
    }
}

/// The complete snapshots of the processes that a query selects, for each process in the order of
/// their numbers.
///
/// # Errors
/// When the query selects no process.
pub fn complete_snapshots<'a>(
    recording: &'a Recording,
    query: &Query,
) -> Result<Vec<(&'a Process, &'a HeapSnapshot)>, QueryProblem> {
    let all = processes(recording, query)?.into_iter();
    let all = all.flat_map(|process| process.snapshots.iter().map(move |snapshot| (process, snapshot)));
    Ok(all.filter(|(_, snapshot)| snapshot.is_complete()).collect())
}

/// An incomplete snapshot.
#[derive(Debug, Clone)]
pub struct CutSnapshot<'a> {
    /// The process.
    pub process: &'a Process,
    /// The snapshot.
    pub snapshot: &'a HeapSnapshot,
    /// Reason why the snapshot is incomplete, as part of a sentence.
    pub why: String,
    /// Whether some of the snapshot's objects are present. Views show them if the query names this
    /// snapshot's number.
    pub is_there: bool,
}

/// Incomplete snapshots of the processes that a query selects.
#[must_use]
pub fn cut_snapshots<'a>(recording: &'a Recording, query: &Query) -> Vec<CutSnapshot<'a>> {
    let all = processes(recording, query).unwrap_or_default();
    let all = all.into_iter().flat_map(|process| process.snapshots.iter().map(move |snapshot| (process, snapshot)));
    let cut = all.filter(|(_, snapshot)| !snapshot.is_complete());
    cut.map(|(process, snapshot)| {
        let (why, is_there) = (why_cut(snapshot), is_there(process, snapshot));
        CutSnapshot { process, snapshot, why, is_there }
    })
    .collect()
}
