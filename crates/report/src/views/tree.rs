//! The view `tree`.

use std::cell::Cell as Slot;
use std::io;
use std::sync::Arc;

use clrscope_analysis::{
    Amount, CallAllocations, Column as Measured, Conditions, Forest, FunctionRef, PrunedPaths, QueryProblem, Source,
    Times, TreeNode, TreeOptions, Unit,
};

use clrscope_recording::model::Recording;

use super::functions::share as share_of;
use super::timed::{Present, TimedRow, allocation_keys, metric_columns, name_columns, second_keys};
use super::{FOLDING, REQUESTS, SELECTION, nothing};
use crate::cell::{Cell, ColumnInfo, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{bytes, count, share, time};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `tree`.
pub(super) static VIEW: View = View {
    name: "tree",
    about: "The calling-context tree",
    takes: &[
        SELECTION,
        REQUESTS,
        FOLDING,
        &[Flag::Limit, Flag::Raw, Flag::PerThread, Flag::Metric, Flag::Verbose, Flag::Type],
    ],
    sorts: &Forest::SORTS,
    text_rows: |_| None,
    has_head: true,
    layout: Layout::Dense,
    columns,
    open: |recording, request, _| Ok(Box::new(OpenView::new(recording, request, Style::Tree)?)),
};

/// Columns that nodes have.
pub(super) fn columns(request: &Request) -> Vec<ColumnInfo> {
    sheet(Present::all(request.query.metric)).infos()
}

/// The answer from an open forest, for a caller that queries parts of the forest repeatedly: the
/// forest keeps decoded trees.
pub(crate) fn answer_again<'a>(
    forest: &Arc<Forest<'a>>,
    recording: &'a Recording,
    request: &Request,
) -> Box<dyn Answer + 'a> {
    let (forest, style) = (Arc::clone(forest), Style::Tree);
    Box::new(OpenView { forest, request: request.clone(), recording, style, again: true })
}

struct Nodes;

impl RowKind for Nodes {
    type Row<'a> = NodeEntry<'a>;
}

/// A node, and the sums for its shares.
struct NodeEntry<'a> {
    node: &'a TreeNode<'a>,
    conditions: &'a Conditions<'a>,
}

impl Row for NodeEntry<'_> {
    fn depth(&self) -> u32 {
        self.node.depth
    }
}

impl TimedRow for NodeEntry<'_> {
    fn function(&self) -> Option<FunctionRef<'_>> {
        Some(self.node.function)
    }

    fn times(&self) -> &Times {
        &self.node.times
    }

    fn amount(&self) -> Amount {
        self.node.amount
    }

    fn allocated(&self) -> Option<CallAllocations> {
        self.node.allocated.as_deref().copied()
    }

    fn share(&self, amount: u64) -> f64 {
        share_of(self.conditions, amount)
    }

    fn samples_in_all(&self) -> u64 {
        self.conditions.samples
    }

    fn name(&self) -> Cell<'_> {
        let mut name = Cell::function(&self.node.function);
        if let Cell::Function(named) = &mut name {
            if let Some(thread) = self.node.thread.filter(|_| self.node.depth == 0) {
                named.before = format!("{} {}: ", thread.id, thread.role.name());
            }
            if self.node.by_tail_call {
                named.after.push_str(" (tail call)");
            }
        }
        name
    }
}

fn sheet<'c>(present: Present) -> Sheet<'c, Nodes> {
    let depth = Column::new("depth", "depth", Kind::Count, |row: &NodeEntry<'_>| Cell::Count(row.node.depth.into()));
    let tail_call = Column::new("tail_call", "tail call", Kind::Flag, |row: &NodeEntry<'_>| {
        if row.node.by_tail_call { Cell::Flag(true) } else { Cell::Absent }
    });
    let thread = Column::new("thread", "thread", Kind::Thread, |row: &NodeEntry<'_>| {
        row.node.thread.map_or(Cell::Absent, Cell::Thread)
    });
    let mut columns = vec![depth.not_in_json()];
    columns.extend(name_columns(if present.threads { "thread and function" } else { "function" }));
    columns.extend(metric_columns(present));
    let pid =
        Column::new("pid", "process", Kind::Number, |row: &NodeEntry<'_>| Cell::Number(row.node.function.pid.into()));
    columns.extend([tail_call, thread.only_if(present.threads), pid.on_request()]);
    Sheet::new(columns)
}

/// Columns in text. Flame graphs are made of totals, names and kinds of code.
fn text(conditions: &Conditions<'_>, allocated: bool, style: Style) -> Vec<(&'static str, u8)> {
    if let Style::Flame { .. } = style {
        let total = match conditions.metric.source {
            Source::Calls(Measured::Calls) => "calls",
            Source::Calls(Measured::Cpu) => "inclusive_cpu_ns",
            Source::Calls(_) => "inclusive_ns",
            Source::Stacks { keys: [_, total], .. } => total,
        };
        return vec![(total, 0), ("name", 0), ("code", 0)];
    }
    let [own_bytes, total_bytes, _, total_objects] = allocation_keys();
    match conditions.metric.keys() {
        None => shown(&[
            ("inclusive_ns", 0, true),
            ("inclusive_share", 0, true),
            ("exclusive_ns", 2, true),
            ("calls", 1, true),
            (total_bytes, 1, allocated),
            (own_bytes, 3, allocated),
            (total_objects, 2, allocated),
            ("name", 0, true),
        ]),
        Some([own, total]) => {
            let [own_again, total_again] = second_keys(conditions).unwrap_or_default();
            let is_again = second_keys(conditions).is_some();
            shown(&[
                (total, 0, true),
                ("inclusive_share", 0, true),
                (own, 2, true),
                (total_again, 0, is_again),
                (own_again, 2, is_again),
                ("name", 0, true),
            ])
        }
    }
}

/// The tree of a recording, shown as a tree or as a flame graph.
pub(super) struct OpenView<'a> {
    forest: Arc<Forest<'a>>,
    request: Request,
    recording: &'a Recording,
    style: Style,
    /// Whether the forest will be queried again.
    again: bool,
}

impl<'a> OpenView<'a> {
    /// Opens the tree for a request.
    pub(super) fn new(recording: &'a Recording, request: &Request, style: Style) -> Result<Self, QueryProblem> {
        let forest = Arc::new(Forest::open(recording, &request.query)?);
        Ok(Self { forest, request: request.clone(), recording, style, again: false })
    }
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        Some(self.forest.conditions().clone())
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let conditions = self.forest.conditions();
        let (cpu, metric) = (conditions.totals.cpu_ns.is_some(), conditions.metric);
        let (threads, resolution) = (self.request.query.per_thread, conditions.resolution());
        let samples = conditions.samples > 0;
        let allocated = self.forest.has_allocations();
        let sheet = sheet(Present {
            processes: false,
            threads,
            cpu,
            metric,
            resolution,
            samples,
            allocated,
            tail_recursive: false,
        });
        let shown = text(conditions, allocated, self.style);
        let section = Section { nothing: nothing("path"), ..sheet.main(&self.request, "roots", self.style, &shown) };
        // The deepest that is wanted is still shown.
        let max_depth = self.request.max_depth.map(|depth| depth.saturating_add(1));
        let options = TreeOptions { min_share: self.request.min_share, max_depth };
        renderer.section(&section, &mut |visit| {
            let shown = Slot::new(false);
            let show = |node: &TreeNode<'_>| {
                shown.set(true);
                visit(&sheet.entry(&NodeEntry { node, conditions }))
            };
            let pruned = match self.again {
                true => self.forest.walk_again(self.request.below.as_ref(), &options, show)?,
                false => self.forest.walk(&options, show)?,
            };
            // A caller that queries again gets the smaller nodes when its reader opens them.
            let left = if self.again { None } else { smaller(&pruned, conditions) };
            let notes = [left, super::thread_time(self.recording, conditions)];
            let notes: Vec<String> = notes.into_iter().flatten().filter(|_| shown.get()).collect();
            Ok(Tail { left_out: 0, note: (!notes.is_empty()).then(|| notes.join(" ")) })
        })
    }
}

/// Line about the nodes that are too small to show.
fn smaller(pruned: &PrunedPaths, conditions: &Conditions<'_>) -> Option<String> {
    let (paths, metric) = (count(pruned.subtrees), conditions.metric.sizes());
    let total = match metric.unit {
        Unit::Nanoseconds => time(pruned.total),
        Unit::Bytes => bytes(pruned.total),
        Unit::Count => format!("{} {}", count(pruned.total), metric.title),
    };
    let part = share(share_of(conditions, pruned.total));
    let note = format!("... and {paths} smaller paths with {total} ({part}) in all; --format json has them.");
    (pruned.subtrees > 0).then_some(note)
}
