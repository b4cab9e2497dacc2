//! The plan of one method.

use clrscope_recording::model::{PlannedBranch, PlannedPoint};

/// Lines and branches of a method. Hits are listed for the points, in their order, then for the
/// branches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MethodPlan {
    /// Metadata token.
    pub token: u32,
    /// Positions where a piece of source begins, sorted by offset. A point is counted whenever its
    /// instruction is reached. File numbers index [`Module::documents`](crate::Module::documents).
    pub points: Vec<PlannedPoint>,
    /// Outgoing edges of conditions, sorted by offset and path. An edge is counted whenever control
    /// takes it, not when control reaches its target in another way.
    pub branches: Vec<PlannedBranch>,
}

impl MethodPlan {
    /// A number that differs if the plan differs: FNV-1a of everything in the plan except the
    /// method's token.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let points = self.points.iter().flat_map(|point| {
            let PlannedPoint { il_offset, file, start_line, start_column, end_line, end_column } = *point;
            [il_offset, file, start_line, start_column, end_line, end_column]
        });
        let branches = self.branches.iter().flat_map(|branch| {
            let PlannedBranch { il_offset, path, target_offset, file, line } = *branch;
            [il_offset, path, target_offset, file, line]
        });
        let numbers = [self.points.len() as u32, self.branches.len() as u32].into_iter().chain(points).chain(branches);
        let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        numbers.flat_map(u32::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, add)
    }
}
