//! Converts places in code, as recordings have them, into the positions by which source lines are
//! looked up.

use clrscope_analysis::{CodePlace, FunctionRef};
use clrscope_symbols::{Lines, SourceLine, Spot, SpotLine};

/// A source line, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocatedLine {
    pub(crate) line: SourceLine,
    /// Whether the line was chosen among several possible lines because only it calls the recorded
    /// callee.
    pub(crate) by_call: bool,
}

impl LocatedLine {
    /// Finds the line of a place in a function; `None` if the line is not known.
    pub(crate) fn find(lines: &mut Lines, function: &FunctionRef<'_>, place: CodePlace<'_>) -> Option<Self> {
        Self::at(lines, &function.module.path, function.token(), place)
    }

    /// Finds the line of a place in the method with a token in an assembly.
    pub(crate) fn at(lines: &mut Lines, assembly: &str, token: u32, place: CodePlace<'_>) -> Option<Self> {
        match lines.locate(assembly, token, &spot(place)) {
            SpotLine::Line(line) => Some(Self { line, by_call: false }),
            SpotLine::ByCall(line) => Some(Self { line, by_call: true }),
            SpotLine::Unknown(_) | SpotLine::NoSource => None,
        }
    }

    /// Remark that text output shows after the line.
    pub(crate) fn remark(&self) -> &'static str {
        if self.by_call { " (by the call)" } else { "" }
    }
}

/// The position for which to look up a place's source line.
pub(crate) fn spot(place: CodePlace<'_>) -> Spot<'_> {
    let CodePlace { il_offset, il_span, is_unoptimised, callee, .. } = place;
    Spot { il_offset, il_span, is_unoptimised, callee }
}
