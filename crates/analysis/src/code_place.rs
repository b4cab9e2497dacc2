//! Places in the code of methods, as exactly as stacks say.

/// Place of a frame in the code of its method: what a line is looked up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CodePlace<'a> {
    /// Offset in the method's IL, if the runtime could say.
    pub il_offset: Option<u32>,
    /// Bytes of IL from the offset on that are in question: 0 where it is exact, the largest number for all that are left.
    pub il_span: u16,
    /// The code was not optimised, so that the offset is right.
    pub is_unoptimised: bool,
    /// Raw name of the method that the frame has called, where the stack says it: of state machines `MoveNext`, as the code names it.
    pub callee: Option<&'a str>,
}
