//! Places in the code of methods, as exactly as stacks record them.

use clrscope_recording::model::{Process, StackFrame, Stacks, Tier};

use crate::function::FunctionRef;

/// Location of a frame in the code of its method, from which its source line is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CodePlace<'a> {
    /// Offset in the method's IL, if the runtime reported it.
    pub il_offset: Option<u32>,
    /// Length in bytes of the IL range that contains the location. The range begins at the offset.
    /// 0 if the offset is exact, `u16::MAX` if the range extends to the end of the method.
    pub il_span: u16,
    /// Whether the code was unoptimised, so that the offset is right.
    pub is_unoptimised: bool,
    /// Raw name of the method that the frame has called, if the stack contains it. For state
    /// machines it is the name in the code, `MoveNext`.
    pub callee: Option<&'a str>,
}

/// A frame of a stack, with its function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedFrame<'a> {
    pub(crate) function: FunctionRef<'a>,
    pub(crate) place: CodePlace<'a>,
}

impl<'a> PlacedFrame<'a> {
    /// Returns the frame with its values from the table. `callee`: raw name of the method that the
    /// frame called.
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
