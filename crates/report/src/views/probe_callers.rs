//! Callers of probed methods: the view `probes` with `--callers`.

use std::io;

use clrscope_analysis::{CallerNode, ProbeCallers};

use super::nothing;
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::{Renderer, Section, Style, Tail};
use crate::request::Request;

/// Rows of methods and callers.
pub(super) struct Callers;

impl RowKind for Callers {
    type Row<'a> = CallerNode<'a>;
}

impl Row for CallerNode<'_> {
    fn depth(&self) -> u32 {
        self.depth
    }
}

/// Columns of a method or caller.
pub(super) fn sheet<'c>() -> Sheet<'c, Callers> {
    Sheet::new([
        Column::new("depth", "depth", Kind::Count, |row: &CallerNode<'_>| Cell::Count(row.depth.into())).not_in_json(),
        Column::new("name", "method and its callers", Kind::Function, |row: &CallerNode<'_>| {
            Cell::function(&row.function)
        }),
        Column::new("signature", "signature", Kind::Text, |row: &CallerNode<'_>| Cell::text(row.function.signature())),
        Column::new("module", "module", Kind::Text, |row: &CallerNode<'_>| Cell::text(row.function.module())),
        Column::new("kind", "kind", Kind::Text, |row: &CallerNode<'_>| Cell::text(row.function.kind().name())),
        Column::new("calls", "calls", Kind::Count, |row: &CallerNode<'_>| Cell::Count(row.sums.calls)),
        Column::new("failed", "failed", Kind::Count, |row: &CallerNode<'_>| Cell::Count(row.sums.failed)),
        Column::new("total_ns", "total", Kind::Time, |row: &CallerNode<'_>| Cell::Time(row.sums.total_ns)),
        Column::new("mean_ns", "mean", Kind::Time, |row: &CallerNode<'_>| {
            Cell::or_null(row.sums.mean_ns(), Cell::Time)
        }),
    ])
}

/// Columns of text, each with the rank by which narrow terminals omit it.
const TEXT: [(&str, u8); 5] = [("calls", 0), ("failed", 2), ("total_ns", 0), ("mean_ns", 1), ("name", 0)];

/// Note below the rows.
const NOTE: &str = "Below a method are its callers, and below each of these its own callers; numbers are of the \
                    method's calls on that path. Inlined methods, and methods that left by a tail call, are missing.";

/// Writes the methods with their callers.
pub(super) fn write(callers: &ProbeCallers<'_>, request: &Request, to: &mut dyn Renderer) -> io::Result<()> {
    let sheet = sheet();
    let main = sheet.main(request, "rows", Style::Tree, &TEXT);
    let section = Section { nothing: nothing("probed method"), what: "rows", ..main };
    to.section(&section, &mut |visit| {
        let mut is_any = false;
        let left_out = callers.walk(request.min_share, |node| {
            is_any = true;
            visit(&sheet.entry(node))
        })?;
        Ok(Tail { left_out: left_out as u64, note: is_any.then(|| NOTE.to_owned()) })
    })
}
