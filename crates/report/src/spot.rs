//! From places in code, as recordings have them, to what lines are looked up by.

use clrscope_analysis::{CodePlace, FunctionRef};
use clrscope_symbols::{Lines, SourceLine, Spot, SpotLine};

/// A line of the source, and the way in which it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocatedLine {
    pub(crate) line: SourceLine,
    /// Several lines are in question, and of these one alone calls what was called there.
    pub(crate) by_call: bool,
}

impl LocatedLine {
    /// Finds the line of a place in a function; `None` where that is not known.
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

    /// Remark behind the line, for texts.
    pub(crate) fn remark(&self) -> &'static str {
        if self.by_call { " (by the call)" } else { "" }
    }
}

/// The spot of a place.
pub(crate) fn spot(place: CodePlace<'_>) -> Spot<'_> {
    let CodePlace { il_offset, il_span, is_unoptimised, callee, .. } = place;
    Spot { il_offset, il_span, is_unoptimised, callee }
}
