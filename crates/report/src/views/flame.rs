//! The view `flame`: the calling-context tree, in text output as a flame graph. Its rows are those
//! of `tree`.

use clrscope_analysis::Metric;

use super::tree::{OpenView, columns};
use super::{FOLDING, REQUESTS, SELECTION};
use crate::render::{Layout, Style};
use crate::request::Flag;
use crate::view::View;

/// The view `flame`.
pub(super) static VIEW: View = View {
    name: "flame",
    about: "A flame graph as wide as the terminal",
    takes: &[
        SELECTION,
        REQUESTS,
        FOLDING,
        &[Flag::Limit, Flag::Raw, Flag::PerThread, Flag::Metric, Flag::Depth, Flag::Verbose, Flag::Type],
    ],
    sorts: &[],
    text_rows: |_| None,
    has_head: true,
    layout: Layout::Dense,
    columns,
    open: |recording, request, _| {
        let own = Metric::for_query(recording, &request.query)?.exclusive;
        Ok(Box::new(OpenView::new(recording, request, Style::Flame { own })?))
    },
};
