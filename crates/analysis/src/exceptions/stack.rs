//! The stack of a throw, read from the table of stacks on demand.

use std::collections::BTreeMap;
use std::sync::Arc;

use clrscope_recording::model::{Process, Stacks};

use super::{Arguments, Frame};
use crate::code_place::{CodePlace, PlacedFrame};
use crate::function::FunctionRef;

/// A call stack of one process. It stores no frames: each frame is looked up in the [stack
/// table](Process::stacks) on demand.
#[derive(Debug, Clone)]
pub struct CallStack<'a> {
    process: &'a Process,
    table: Arc<Stacks>,
    number: u32,
    /// Arguments of calls, by their position in the stack.
    pub(super) arguments: BTreeMap<usize, Arguments>,
}

impl<'a> CallStack<'a> {
    /// The stack with this number in `table`; 0 for no stack.
    pub(crate) fn new(process: &'a Process, table: &Arc<Stacks>, number: u32) -> Self {
        Self { process, table: Arc::clone(table), number, arguments: BTreeMap::new() }
    }

    /// The frames, innermost first.
    pub fn iter(&self) -> impl Iterator<Item = Frame<'_>> {
        self.frames().enumerate().map(|(at, frame)| Frame { arguments: self.arguments.get(&at), ..frame })
    }

    /// Returns the frames without their arguments, innermost first.
    fn frames(&self) -> impl Iterator<Item = Frame<'a>> {
        let placed = PlacedFrame::all(self.process, &self.table, self.number);
        placed.map(|PlacedFrame { function, place }| Frame {
            function,
            il_offset: place.il_offset,
            place,
            arguments: None,
        })
    }

    /// The number of the stack in its table.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The functions of the frames, innermost first.
    pub fn functions(&self) -> impl Iterator<Item = FunctionRef<'a>> {
        PlacedFrame::all(self.process, &self.table, self.number).map(|frame| frame.function)
    }

    /// Returns the innermost frame; `None` for a stack without frames.
    pub(crate) fn innermost(&self) -> Option<Frame<'a>> {
        self.frames().next()
    }

    /// Returns the innermost own function, with the place in its code; `None` if the stack has no
    /// own function.
    pub(crate) fn innermost_own(&self) -> Option<(FunctionRef<'a>, CodePlace<'a>)> {
        self.frames().find(Frame::is_own).map(|frame| (frame.function, frame.place))
    }

    /// Number of frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.frames(self.number).count()
    }

    /// Whether no frames are known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Whether the stack had more frames than were kept.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.table.is_cut(self.number)
    }
}
