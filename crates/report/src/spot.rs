//! From places in code, as recordings have them, to what lines are looked up by.

use clrscope_analysis::CodePlace;
use clrscope_symbols::Spot;

/// The spot of a place.
pub(crate) fn spot(place: CodePlace<'_>) -> Spot<'_> {
    let CodePlace { il_offset, il_span, is_unoptimised, callee, .. } = place;
    Spot { il_offset, il_span, is_unoptimised, callee }
}
