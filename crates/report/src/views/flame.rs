//! The view `flame`: the calling-context tree as a flame graph in text. Its rows are those of `tree`.

use clrscope_analysis::Metric;

use super::tree::{Opened, columns};
use super::{NO_CALLERS, NO_HEAP, NO_SOURCE};
use crate::render::{Layout, Style};
use crate::request::Flag;
use crate::view::View;

/// The view `flame`.
pub(super) static VIEW: View = View {
    name: "flame",
    about: "A flame graph as wide as the terminal",
    refuses: &[
        (
            &[Flag::Follow, Flag::Group, Flag::Name, Flag::Each, Flag::Interleave, Flag::Output],
            "its rows are sums, not single calls or events",
        ),
        (&[Flag::Sort], "its frames are ordered by their width"),
        NO_CALLERS,
        NO_SOURCE,
        NO_HEAP,
    ],
    sorts: &[],
    text_rows: |_| None,
    has_head: true,
    layout: Layout::Dense,
    columns,
    open: |recording, request, _| {
        let own = Metric::of(recording, &request.query)?.exclusive;
        Ok(Box::new(Opened::new(recording, request, Style::Flame { own })?))
    },
};
