//! Exception clauses.

use crate::Label;

/// Kind of an exception clause.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ClauseKind {
    /// Catches exceptions of the type with this token.
    Catch(u32),
    /// Catches the exceptions that a filter accepts. The filter begins at this label and ends where
    /// the handler begins.
    Filter(Label),
    /// Runs at each exit from the protected block.
    Finally,
    /// Runs when an exception leaves the protected block.
    Fault,
}

/// A protected block and its handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clause {
    pub(crate) kind: ClauseKind,
    pub(crate) try_start: Label,
    pub(crate) try_end: Label,
    pub(crate) start: Label,
    pub(crate) end: Label,
    /// The word that only other kinds of clauses use.
    pub(crate) unused: u32,
}

impl Clause {
    /// Kind of the clause.
    #[must_use]
    pub const fn kind(&self) -> ClauseKind {
        self.kind
    }

    /// First instruction of the protected block, and the first instruction after the block.
    #[must_use]
    pub const fn protected(&self) -> (Label, Label) {
        (self.try_start, self.try_end)
    }

    /// First instruction of the handler, and the first instruction after it.
    #[must_use]
    pub const fn handler(&self) -> (Label, Label) {
        (self.start, self.end)
    }

    /// All labels in the clause.
    pub(crate) fn labels_mut(&mut self) -> impl Iterator<Item = &mut Label> {
        let filter = match &mut self.kind {
            ClauseKind::Filter(start) => Some(start),
            _ => None,
        };
        [&mut self.try_start, &mut self.try_end, &mut self.start, &mut self.end].into_iter().chain(filter)
    }
}
