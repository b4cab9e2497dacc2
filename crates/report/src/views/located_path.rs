//! Paths in views of waits: frames with their lines.

use clrscope_analysis::Frame;
use clrscope_symbols::Lines;
use serde_json::{Value, json};

use super::sources::line_behind;
use super::stack_frame::json_frame;
use crate::cell::Cell;
use crate::spot::LocatedLine;

/// A path, with the lines of its frames, and the waits on it.
pub(super) struct LocatedPath<'a> {
    count: u64,
    ns: u64,
    frames: Vec<(Frame<'a>, Option<LocatedLine>)>,
}

impl<'a> LocatedPath<'a> {
    /// A path with `count` waits, which took `ns` nanoseconds in total.
    pub(super) fn new((count, ns): (u64, u64), frames: impl Iterator<Item = Frame<'a>>, lines: &mut Lines) -> Self {
        let locate = |frame: Frame<'a>| (frame, LocatedLine::find(lines, &frame.function, frame.place));
        Self { count, ns, frames: frames.map(locate).collect() }
    }

    /// The path in JSON.
    pub(super) fn json(&self) -> Value {
        let frame = |(frame, found): &(Frame<'_>, Option<LocatedLine>)| {
            let function = frame.function;
            let line = found.as_ref().map(|found| &found.line);
            json_frame(function.name(), function.function.kind, Some(function.module()), line)
        };
        let frames: Vec<Value> = self.frames.iter().map(frame).collect();
        json!({ "count": self.count, "total_ns": self.ns, "frames": frames })
    }

    /// The innermost own function, with its line; `None` if there is none.
    pub(super) fn own_place(&self) -> Option<Cell<'a>> {
        self.own_place_behind(0)
    }

    /// The innermost own function outside the first `frames` frames, with its line; `None` if there
    /// is none.
    pub(super) fn own_place_behind(&self, frames: usize) -> Option<Cell<'a>> {
        let (frame, found) = self.frames.iter().skip(frames).find(|(frame, _)| frame.is_own())?;
        let line = line_behind(found.as_ref().map(|found| &found.line));
        Some(Cell::text(frame.function.name()).said(format!("{}{line}", frame.function.label())))
    }
}

/// Paths in JSON.
pub(super) fn paths(of: &[LocatedPath<'_>]) -> Cell<'static> {
    Cell::Nested(of.iter().map(LocatedPath::json).collect())
}
