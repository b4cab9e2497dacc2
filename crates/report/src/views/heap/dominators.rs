//! The view `dominators`: what holds what alone, type by type.

use std::io;

use clrscope_analysis::{Conditions, DominatorNode, DominatorTree, conditions, dominator_tree};
use clrscope_recording::model::Recording;

use super::super::{LOG_FLAGS, NO_FOLDING, NO_METRIC, NO_SOURCE, RAW, nothing};
use super::types::share;
use super::{ALONE, REFUSED, TIMES, heap_query, snapshots};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{bytes, count};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `dominators`.
pub(in crate::views) static VIEW: View = View {
    name: "dominators",
    about: "The tree of what holds what alone, by type, with the bytes that would be free without it",
    refuses: &[
        LOG_FLAGS,
        NO_METRIC,
        NO_FOLDING,
        NO_SOURCE,
        RAW,
        ALONE,
        REFUSED,
        TIMES,
        (&[Flag::Sort], "its nodes are in the order of what they retain"),
    ],
    sorts: &[],
    text_rows: |_| None,
    has_head: true,
    layout: Layout::Dense,
    columns: |_| sheet(true).infos(),
    open: |recording, request| {
        let tree = dominator_tree(recording, &heap_query(request))?;
        Ok(Box::new(Opened { tree, request: request.clone(), recording }))
    },
};

struct Nodes;

impl RowKind for Nodes {
    type Row<'a> = NodeEntry<'a>;
}

/// A node, and the bytes of the heap that its own are a part of.
struct NodeEntry<'a> {
    node: &'a DominatorNode<'a>,
    all: u64,
}

impl Row for NodeEntry<'_> {
    fn depth(&self) -> u32 {
        self.node.depth
    }
}

fn sheet<'c>(processes: bool) -> Sheet<'c, Nodes> {
    Sheet::new([
        Column::new("depth", "depth", Kind::Count, |row: &NodeEntry<'_>| Cell::Count(row.node.depth.into()))
            .not_in_json(),
        Column::new("type", "type", Kind::Text, |row: &NodeEntry<'_>| Cell::text(&row.node.type_name)),
        Column::new("module", "module", Kind::Text, |row: &NodeEntry<'_>| Cell::text(row.node.module)),
        Column::new("objects", "objects", Kind::Count, |row: &NodeEntry<'_>| Cell::Count(row.node.objects)),
        Column::new("bytes", "bytes", Kind::Bytes, |row: &NodeEntry<'_>| Cell::Bytes(row.node.bytes)),
        Column::new("retained_bytes", "retained", Kind::Bytes, |row: &NodeEntry<'_>| {
            Cell::Bytes(row.node.retained_bytes)
        }),
        Column::new("retained_share", "share", Kind::Share, |row: &NodeEntry<'_>| {
            share(row.node.retained_bytes, row.all)
        })
        .on_request(),
        Column::new("pid", "process", Kind::Number, |row: &NodeEntry<'_>| Cell::Number(row.node.process.pid.into()))
            .only_if(processes),
    ])
}

struct Opened<'a> {
    tree: DominatorTree<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for Opened<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        snapshots::show("snapshots", &self.tree.snapshots, renderer)?;
        let processes = self.recording.processes.len() > 1;
        let sheet = sheet(processes);
        let text = shown(&[
            ("retained_bytes", 0, true),
            ("retained_share", 0, true),
            ("bytes", 1, true),
            ("objects", 0, true),
            ("pid", 2, processes),
            ("type", 0, true),
        ]);
        let section = Section { nothing: nothing("object"), ..sheet.main(&self.request, "roots", Style::Tree, &text) };
        let all = self.tree.snapshots.iter().fold(0_u64, |sum, snapshot| sum.saturating_add(snapshot.bytes));
        renderer.section(&section, &mut |visit| {
            let smaller =
                self.tree.walk(self.request.min_share, |node| visit(&sheet.entry(&NodeEntry { node, all })))?;
            let note = (smaller.nodes > 0).then(|| {
                let (nodes, size) = (count(smaller.nodes), bytes(smaller.bytes));
                format!("... and {nodes} smaller nodes that retain {size}; --format json has them.")
            });
            let notes: Vec<String> =
                note.into_iter().chain(snapshots::note_of_cut(self.recording, &self.request)).collect();
            Ok(Tail { left_out: 0, note: (!notes.is_empty()).then(|| notes.join(" ")) })
        })
    }
}
