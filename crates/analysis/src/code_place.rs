//! Places in the code of methods, as exactly as stacks say.

use clrscope_recording::model::{Process, StackFrame, Stacks, Tier};

use crate::function::FunctionRef;

/// Place of a frame in the code of its method: what a line is looked up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CodePlace<'a> {
    /// Offset in the method's IL, if the runtime could say.
    pub il_offset: Option<u32>,
    /// Bytes of IL from the offset on that are in question: 0 where it is exact, the largest number
    /// for all that are left.
    pub il_span: u16,
    /// The code was not optimised, so that the offset is right.
    pub is_unoptimised: bool,
    /// Raw name of the method that the frame has called, where the stack says it: of state machines
    /// `MoveNext`, as the code names it.
    pub callee: Option<&'a str>,
}

/// A frame of a stack, with its function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedFrame<'a> {
    pub(crate) function: FunctionRef<'a>,
    pub(crate) place: CodePlace<'a>,
}

impl<'a> PlacedFrame<'a> {
    /// Returns the frame as the table has it. `callee`: raw name of the method that it called.
    pub(crate) fn new(process: &'a Process, frame: StackFrame, callee: Option<&'a str>) -> Self {
        let (function, il_offset, il_span, tier) = match frame {
            StackFrame::Method { function, il_offset, il_span, tier } => (function, il_offset, il_span, tier),
            _ => (0, None, 0, Tier::Unknown),
        };
        let known = process.functions.get(function as usize).filter(|known| function != 0 && !known.name.is_empty());
        Self {
            function: FunctionRef::new(process, known),
            place: CodePlace { il_offset, il_span, is_unoptimised: tier.has_exact_offset(), callee },
        }
    }

    /// Returns the frames of a stack, the innermost first.
    pub(crate) fn all(process: &'a Process, table: &Stacks, number: u32) -> impl Iterator<Item = Self> {
        let mut callee = None;
        table.frames(number).map(move |frame| {
            let frame = Self::new(process, frame, callee);
            callee = Some(frame.function.function.raw_name.as_str()).filter(|name| !name.is_empty());
            frame
        })
    }
}
