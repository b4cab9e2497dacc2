//! A method's body.

use crate::clause::{Clause, ClauseKind};
use crate::format::{INIT_LOCALS, MORE_SECTIONS};
use crate::{Instruction, Label, Opcode, Operand};

/// Content and kind of a header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) is_tiny: bool,
    pub(crate) flags: u16,
    pub(crate) max_stack: u16,
    pub(crate) locals: u32,
}

impl Header {
    pub(crate) const fn has_sections(&self) -> bool {
        self.flags & MORE_SECTIONS != 0
    }
}

/// Form of a section, kept so that an unchanged section is written as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SectionForm {
    /// All flags except that another section follows.
    pub(crate) flags: u8,
    /// Number of clauses in the section, `None` for a section of another kind.
    pub(crate) clauses: Option<usize>,
    /// Whether the section's length includes its header.
    pub(crate) counts_header: bool,
    /// Reserved bytes in a small section's header.
    pub(crate) reserved: [u8; 2],
    /// Padding bytes in front of the section.
    pub(crate) padding: Vec<u8>,
    /// Bytes after the clauses, or instead of them.
    pub(crate) rest: Vec<u8>,
}

/// A method's body: header, instructions and exception clauses.
///
/// [`Body::read`] parses bytes, [`Body::apply`] changes the body, [`Body::write`] returns its
/// bytes. An unchanged body is written as the bytes that were read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Body {
    pub(crate) header: Header,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) clauses: Vec<Clause>,
    pub(crate) sections: Vec<SectionForm>,
    /// Label for the next inserted instruction.
    pub(crate) next_new: u32,
}

impl Body {
    /// The instructions, in order.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The exception clauses, in table order: inner clauses first.
    #[must_use]
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// Token of the local variables' signature; 0 if there are none.
    #[must_use]
    pub const fn locals(&self) -> u32 {
        self.header.locals
    }

    /// Sets the token of the local variables' signature. [`append_local`](crate::append_local)
    /// makes such a signature.
    pub fn set_locals(&mut self, token: u32) {
        self.header.locals = token;
    }

    /// Maximum stack depth in values; 8 for a tiny header, which does not state it.
    #[must_use]
    pub const fn max_stack(&self) -> u16 {
        self.header.max_stack
    }

    /// Whether local variables are initialized to zero.
    #[must_use]
    pub const fn inits_locals(&self) -> bool {
        self.header.flags & INIT_LOCALS != 0
    }

    /// Labels before which code can be inserted without changing the existing instructions. Not
    /// among them: labels between a prefix and its instruction, and between a `tail.` call and its
    /// `ret`.
    pub fn places(&self) -> impl Iterator<Item = Label> {
        let mut group_has_tail = false;
        let mut is_after_prefix = false;
        let mut is_after_tail_call = false;
        self.instructions.iter().filter_map(move |instruction| {
            let is_bound = is_after_prefix || is_after_tail_call;
            let is_prefix = instruction.opcode.is_prefix();
            group_has_tail = (group_has_tail && is_after_prefix) || instruction.opcode == Opcode::Tail;
            is_after_tail_call = group_has_tail && !is_prefix;
            is_after_prefix = is_prefix;
            (!is_bound).then_some(instruction.label)
        })
    }

    /// Gives each branch its long form, with a four-byte distance.
    pub(crate) fn lengthen_branches(&mut self) {
        for instruction in &mut self.instructions {
            instruction.opcode = instruction.opcode.long_form();
        }
    }

    /// Returns a new label.
    pub(crate) fn new_label(&mut self) -> Label {
        let label = Label(self.next_new);
        self.next_new += 1;
        label
    }

    /// Indices of the instructions by their labels.
    pub(crate) fn index(&self) -> Index {
        let mut index = Index::default();
        for (number, instruction) in self.instructions.iter().enumerate() {
            index.insert(instruction.label, number as u32);
        }
        index
    }

    /// All labels in branches and clauses.
    pub(crate) fn references_mut(&mut self) -> impl Iterator<Item = &mut Label> {
        let targets = self.instructions.iter_mut().flat_map(|instruction| instruction.operand.targets_mut());
        targets.chain(self.clauses.iter_mut().flat_map(Clause::labels_mut))
    }

    /// Whether the bodies have the same meaning: their instructions and clauses are equal except
    /// for `nop`s and the lengths of branches.
    #[must_use]
    pub fn means(&self, other: &Self) -> bool {
        let header = |body: &Self| (body.header.flags & INIT_LOCALS, body.header.locals);
        header(self) == header(other) && self.meaning() == other.meaning()
    }

    /// Instructions without `nop`s, and clauses. Labels are replaced by indices of these
    /// instructions.
    fn meaning(&self) -> Meaning<'_> {
        let mut numbers = Index::default();
        let mut count = 0;
        for instruction in &self.instructions {
            numbers.insert(instruction.label, count);
            count += u32::from(instruction.opcode != Opcode::Nop);
        }
        let number = |label: &Label| numbers.get(*label).unwrap_or(count);
        let real = self.instructions.iter().filter(|instruction| instruction.opcode != Opcode::Nop);
        let instructions = real.map(|instruction| {
            let operand = match &instruction.operand {
                Operand::Target(_) | Operand::Targets(_) => None,
                operand => Some(operand),
            };
            let targets = instruction.operand.targets().iter().map(number).collect();
            (instruction.opcode.long_form(), operand, targets)
        });
        let clauses = self.clauses.iter().map(|clause| {
            let (kind, filter) = match clause.kind {
                ClauseKind::Filter(start) => (ClauseKind::Filter(Label::END), number(&start)),
                kind => (kind, 0),
            };
            let bounds = [clause.try_start, clause.try_end, clause.start, clause.end].map(|label| number(&label));
            (kind, filter, bounds)
        });
        Meaning { instructions: instructions.collect(), clauses: clauses.collect() }
    }
}

#[derive(PartialEq)]
struct Meaning<'b> {
    instructions: Vec<(Opcode, Option<&'b Operand>, Vec<u32>)>,
    clauses: Vec<(ClauseKind, u32, [u32; 4])>,
}

/// Indices by label, in two tables: for read and for inserted instructions.
#[derive(Default)]
pub(crate) struct Index {
    read: Vec<u32>,
    new: Vec<u32>,
}

impl Index {
    const NONE: u32 = u32::MAX;

    pub(crate) fn insert(&mut self, label: Label, number: u32) {
        let (table, at) = match label.offset() {
            Some(offset) => (&mut self.read, offset as usize),
            None => (&mut self.new, (label.0 - Label::FIRST_NEW) as usize),
        };
        if table.len() <= at {
            table.resize(at + 1, Self::NONE);
        }
        table[at] = number;
    }

    pub(crate) fn get(&self, label: Label) -> Option<u32> {
        let found = match label.offset() {
            Some(offset) => self.read.get(offset as usize),
            None => self.new.get((label.0 - Label::FIRST_NEW) as usize),
        };
        found.copied().filter(|number| *number != Self::NONE)
    }
}
