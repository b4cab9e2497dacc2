//! Sets of hooks: the work that instruments need from hooks, and the entry points that do this
//! work.

use std::ffi::c_void;

/// Parts of the work that hooks do at enter, leave and tail call. An instrument may need any of
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HookParts(u8);

impl HookParts {
    /// No work: no hooks are needed.
    pub(crate) const NONE: Self = Self(0);
    /// Count calls in the calling-context tree.
    pub(crate) const TREE_SAMPLED: Self = Self(1);
    /// Count calls in the calling-context tree, and charge ticks to its edges.
    pub(crate) const TREE_TSC: Self = Self(2);
    /// Append every event.
    pub(crate) const EVENTS: Self = Self(4);
    /// Keep the arguments of calls that have not ended.
    pub(crate) const ARGUMENTS: Self = Self(8);

    /// Whether the hooks keep a calling-context tree for each thread.
    pub(crate) const fn has_tree(self) -> bool {
        self.0 & (Self::TREE_SAMPLED.0 | Self::TREE_TSC.0) != 0
    }

    /// All parts of `self` and of `other`.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One set of hooks and the parts of work that it does.
pub(crate) struct HookSet {
    pub(crate) does: HookParts,
    pub(crate) entry_points: fn() -> EntryPoints,
}

/// The three entry points of one set of hooks.
#[derive(Clone, Copy)]
pub(crate) struct EntryPoints {
    pub(crate) enter: *const c_void,
    pub(crate) leave: *const c_void,
    pub(crate) tailcall: *const c_void,
}
