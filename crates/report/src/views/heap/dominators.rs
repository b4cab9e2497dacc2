//! The view `dominators`: the dominator tree of the heap, merged by type.

use std::io;

use clrscope_analysis::{DominatorNode, DominatorTree, Sort};

use super::super::nothing;
use super::frame::{Frame, HeapRows, heap_view};
use super::types::share;
use crate::cell::{Cell, ColumnInfo, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::text::units::{bytes, count};
use crate::render::{Layout, Renderer, Section, Style};
use crate::view::View;

/// The view `dominators`.
pub(in crate::views) static VIEW: View = heap_view::<Nodes>();

struct Nodes;

impl RowKind for Nodes {
    type Row<'a> = NodeEntry<'a>;
}

/// A node, and the bytes of the heap, for its share.
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
        Column::new("type", "type", Kind::Type, |row: &NodeEntry<'_>| Cell::text(&row.node.type_name)),
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

impl HeapRows for Nodes {
    const NAME: &'static str = "dominators";
    const ABOUT: &'static str =
        "Dominator tree by type: what alone keeps what alive, and the bytes that its end would free";
    const SORTS: &'static [Sort] = &[];
    const TEXT_ROWS: Option<usize> = None;
    const LAYOUT: Layout = Layout::Dense;

    type Found<'a> = DominatorTree<'a>;

    fn columns() -> Vec<ColumnInfo> {
        sheet(true).infos()
    }

    fn show(found: &DominatorTree<'_>, frame: &Frame<'_>, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = sheet(frame.has_processes);
        let text = shown(&[
            ("retained_bytes", 0, true),
            ("retained_share", 0, true),
            ("bytes", 1, true),
            ("objects", 0, true),
            ("pid", 2, frame.has_processes),
            ("type", 0, true),
        ]);
        let section = Section { nothing: nothing("object"), ..sheet.main(frame.request, "roots", Style::Tree, &text) };
        renderer.section(&section, &mut |visit| {
            let show = |node: &DominatorNode<'_>| visit(&sheet.entry(&NodeEntry { node, all: frame.bytes }));
            let smaller = found.walk(frame.request.min_share, show)?;
            let note = (smaller.nodes > 0).then(|| {
                let (nodes, size) = (count(smaller.nodes), bytes(smaller.bytes));
                format!("... and {nodes} smaller nodes that retain {size}; --format json has them.")
            });
            Ok(frame.tail(0, note))
        })
    }
}
