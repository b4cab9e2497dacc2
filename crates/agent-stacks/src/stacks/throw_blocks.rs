//! Blocks of a method that throw when one of its checks fails.
//!
//! In optimised code all checks of one kind in a region (array bounds, overflows) jump to one
//! block. The block calls the runtime's helper, and the compiler maps it to no IL (the runtime's
//! src/coreclr/jit/flowgraph.cpp, `fgAddCodeRef`). The failed check is one of those that jump
//! there.

use clr_profiler::{CodeRange, IlPlace, IlRange};
use clrscope_agent_base::arch::{LONGEST_CALL, call_starts, ends_in_trap, jumps_to};
use clrscope_agent_base::os::memory::copy_if_there;

/// Most bytes of a method's code that are searched for checks.
const MOST_CODE: usize = 64 << 10;
/// Bytes behind a call that are searched for the trap at the end of such blocks.
const BEHIND: usize = 64;

/// The IL range of all checks whose failure runs the call that returns to `return_address`.
/// `pieces` and `map` belong to the method's code. `None` if the call is not in a block that throws
/// for checks, or if the statement of a check is unknown.
pub(super) fn place_of_checks(pieces: &[CodeRange], map: &[IlRange], return_address: usize) -> Option<IlPlace> {
    let pieces: Vec<(CodeRange, Vec<u8>)> =
        pieces.iter().map(|piece| Some((*piece, code_of(piece)?))).collect::<Option<_>>()?;
    let (piece, code) = pieces.iter().find(|(piece, _)| piece.contains(return_address - 1))?;
    let (before, behind) = code.split_at(return_address - piece.start);
    if !ends_in_trap(&behind[..behind.len().min(BEHIND)]) {
        return None;
    }
    let starts = call_starts(&before[before.len().saturating_sub(LONGEST_CALL)..], return_address);
    let mut checks = Vec::new();
    let mut offset = 0;
    for (piece, code) in &pieces {
        checks.extend(
            jumps_to(code, piece.start, &starts).filter_map(|at| u32::try_from(offset + at - piece.start).ok()),
        );
        offset += piece.bytes;
    }
    IlRange::statement_around_all(map, checks)
}

/// The bytes of a piece; `None` if it is too large or can't be read.
fn code_of(piece: &CodeRange) -> Option<Vec<u8>> {
    let mut code = vec![0; Some(piece.bytes).filter(|bytes| *bytes <= MOST_CODE)?];
    copy_if_there(piece.start, &mut code).then_some(code)
}
