//! Common parts of the views of heap snapshots: their options, the snapshots above the rows, and
//! the notes below.

use std::io;

use clrscope_analysis::{
    Conditions, DominatorTree, HeapPaths, HeapQuery, HeapView, HeapWaste, Heaps, PendingOperations, QueryProblem,
    SnapshotRef, Sort, conditions, dominator_tree, heap, heap_paths, heap_waste, pending_operations,
};
use clrscope_recording::model::Recording;

use super::snapshots;
use crate::cell::ColumnInfo;
use crate::render::{Layout, Renderer, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// Options of views of heap snapshots.
pub(super) const OF_ONE: &[Flag] = &[Flag::Module, Flag::Limit, Flag::Verbose, Flag::Snapshot, Flag::Type];

/// What differs between the views of heap snapshots.
pub(super) trait HeapRows: 'static {
    /// See [`View`].
    const NAME: &'static str;
    /// See [`View`].
    const ABOUT: &'static str;
    /// See [`View`].
    const TAKES: &'static [&'static [Flag]] = &[OF_ONE];
    /// See [`View`].
    const SORTS: &'static [Sort];
    /// Default number of rows in text.
    const TEXT_ROWS: Option<usize> = Some(30);
    /// See [`View`].
    const LAYOUT: Layout = Layout::Rows;

    /// Answer of the analysis.
    type Found<'a>: OfSnapshots<'a> + 'a;

    /// Columns that a row has.
    fn columns() -> Vec<ColumnInfo>;

    /// Shows the rows.
    fn show(found: &Self::Found<'_>, frame: &Frame<'_>, renderer: &mut dyn Renderer) -> io::Result<()>;
}

/// What the analysis found in snapshots.
pub(super) trait OfSnapshots<'a>: Sized {
    /// The answer to a request.
    fn find(heaps: &Heaps<'a>, request: &Request, recording: &'a Recording) -> Result<Self, QueryProblem>;

    /// The snapshots of the rows, by their keys in JSON.
    fn snapshots(&self) -> Vec<(&'static str, &[SnapshotRef<'a>])>;
}

/// Declares answers about one snapshot of each process, with the function that finds them.
macro_rules! of_one {
    ($($answer:ident by $ask:ident),*) => {$(
        impl<'a> OfSnapshots<'a> for $answer<'a> {
            fn find(heaps: &Heaps<'a>, request: &Request, _recording: &'a Recording) -> Result<Self, QueryProblem> {
                $ask(heaps, &heap_query(request))
            }

            fn snapshots(&self) -> Vec<(&'static str, &[SnapshotRef<'a>])> {
                vec![("snapshots", &self.snapshots)]
            }
        }
    )*};
}

of_one!(
    HeapView by heap,
    HeapPaths by heap_paths,
    DominatorTree by dominator_tree,
    HeapWaste by heap_waste,
    PendingOperations by pending_operations
);

/// The part of a request that is about heap snapshots.
pub(super) fn heap_query(request: &Request) -> HeapQuery {
    HeapQuery { query: request.query.clone(), snapshot: request.snapshot }
}

/// The view that has these rows.
pub(super) const fn heap_view<R: HeapRows>() -> View {
    View {
        name: R::NAME,
        about: R::ABOUT,
        takes: R::TAKES,
        sorts: R::SORTS,
        text_rows: |_| R::TEXT_ROWS,
        has_head: true,
        layout: R::LAYOUT,
        columns: |_| R::columns(),
        open: |recording, request, heaps| {
            Ok(answer::<R>(OfSnapshots::find(heaps, request, recording)?, request, recording))
        },
    }
}

/// The answer of a view with what the analysis found.
pub(super) fn answer<'a, R: HeapRows>(
    found: R::Found<'a>,
    request: &Request,
    recording: &'a Recording,
) -> Box<dyn Answer + 'a> {
    Box::new(OpenView::<'a, R> { found, request: request.clone(), recording })
}

struct OpenView<'a, R: HeapRows> {
    found: R::Found<'a>,
    request: Request,
    recording: &'a Recording,
}

impl<R: HeapRows> Answer for OpenView<'_, R> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let mut shown = Vec::new();
        for (key, all) in self.found.snapshots() {
            snapshots::show(key, all, renderer)?;
            shown.extend_from_slice(all);
        }
        let note = snapshots::note_of_cut(self.recording, &self.request, &shown);
        let frame = Frame {
            request: &self.request,
            recording: self.recording,
            has_processes: self.recording.processes.len() > 1,
            bytes: shown.iter().fold(0, |sum: u64, snapshot| sum.saturating_add(snapshot.bytes)),
            note,
        };
        R::show(&self.found, &frame, renderer)
    }
}

/// Facts about an answer that are needed to show its rows.
pub(super) struct Frame<'f> {
    /// The request.
    pub(super) request: &'f Request,
    /// The recording; if there are several, the last one.
    pub(super) recording: &'f Recording,
    /// Whether there are several processes: rows then name their process.
    pub(super) has_processes: bool,
    /// Bytes of all objects of the snapshots.
    pub(super) bytes: u64,
    /// Remark about snapshots that are not shown.
    note: Option<String>,
}

impl Frame<'_> {
    /// Sentences after the last row; `own` is one from the view.
    pub(super) fn tail(&self, left_out: usize, own: Option<String>) -> Tail {
        let notes: Vec<String> = own.into_iter().chain(self.note.clone()).collect();
        Tail { left_out: left_out as u64, note: (!notes.is_empty()).then(|| notes.join(" ")) }
    }
}
