//! The plan of one method.

/// Lines and branches of a method. Its hits are those of the points, in their order, then those of the branches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MethodPlan {
    /// Metadata token.
    pub token: u32,
    /// Places where a piece of source begins, by offset.
    pub points: Vec<Point>,
    /// Ways on from conditions, by offset and path.
    pub branches: Vec<Branch>,
}

/// Place where a piece of source begins: counted whenever the instruction is reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Point {
    /// Offset of the instruction.
    pub il_offset: u32,
    /// Number of the file in [`Module::documents`](crate::Module::documents).
    pub file: u32,
    /// First line, from 1.
    pub start_line: u32,
    /// First column, from 1.
    pub start_column: u32,
    /// Last line.
    pub end_line: u32,
    /// Column behind the last one.
    pub end_column: u32,
}

/// Way on from a condition: counted whenever it is gone, and not when its target is reached otherwise.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Branch {
    /// Offset of the conditional jump or `switch`.
    pub il_offset: u32,
    /// Number of the way: 0 goes on with the next instruction, others are the targets from 1.
    pub path: u32,
    /// Offset of the instruction that is reached in the end, through jumps that lead on.
    pub target_offset: u32,
    /// Number of the file in [`Module::documents`](crate::Module::documents).
    pub file: u32,
    /// Line of the condition, from 1.
    pub line: u32,
}

impl MethodPlan {
    /// Number that differs where the plan does: FNV-1a of all that the plan says of the method but its token.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let points = self.points.iter().flat_map(|point| {
            let Point { il_offset, file, start_line, start_column, end_line, end_column } = *point;
            [il_offset, file, start_line, start_column, end_line, end_column]
        });
        let branches = self.branches.iter().flat_map(|branch| {
            let Branch { il_offset, path, target_offset, file, line } = *branch;
            [il_offset, path, target_offset, file, line]
        });
        let numbers = [self.points.len() as u32, self.branches.len() as u32].into_iter().chain(points).chain(branches);
        let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        numbers.flat_map(u32::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, add)
    }
}
