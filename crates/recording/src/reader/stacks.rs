//! The stack table.

use super::segment::SegmentBytes;
use crate::layout::{stack, u32_at};
use crate::model::Stacks;

/// Reads the table. The second value describes damage.
pub(super) fn read(bytes: &SegmentBytes) -> (Stacks, Option<String>) {
    let is_written = |node: &[u8]| u32_at(node, stack::KIND) != 0;
    // Space is backed ahead of need. Node 0 is none.
    let nodes = bytes.chunks_exact(stack::BYTES).rposition(is_written).map_or(0, |last| last + 1);
    let mut stacks = Stacks::default();
    let stored = bytes.get(stack::BYTES..nodes * stack::BYTES).unwrap_or(&[]);
    let problem = match stacks.add(1, stored) {
        Ok(0) => None,
        Ok(wrong) => Some(format!("has {wrong} frames with callers that can't be; their stacks end there")),
        Err(what) => Some(what.to_owned()),
    };
    (stacks, problem)
}
