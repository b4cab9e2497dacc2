//! Code to insert.

use crate::instruction::size;
use crate::{Error, Flow, Label, Opcode, Operand, Result};

/// An instruction of [`Code`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) opcode: Opcode,
    pub(crate) operand: Operand,
    /// Numbers of values popped and pushed; `None` if the opcode table has them.
    call: Option<(u16, u16)>,
    /// Which local variable the operand refers to.
    local: LocalOperand,
}

/// The local variable that an operand refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LocalOperand {
    /// None, or a local variable of the method, by its number.
    Settled,
    /// A [new local variable](NewLocal), by its index among the new ones.
    New,
    /// The local variable that holds the method's result.
    Result,
}

/// Instructions of [`Code`] that may throw, and their exception handler. Positions are indices of
/// instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProtectedBlock {
    pub(crate) start: usize,
    /// First instruction of the handler, which follows the protected instructions.
    pub(crate) handler: usize,
    /// First instruction after the handler.
    pub(crate) end: usize,
    /// Token of the exception type that is caught.
    pub(crate) exception: u32,
}

impl ProtectedBlock {
    /// Whether the instruction is one of the two `leave`s of the block.
    fn is_left_at(&self, number: usize) -> bool {
        number + 1 == self.handler || number + 1 == self.end
    }
}

/// A new local variable for inserted code, see [`Edits::new_local`](crate::Edits::new_local).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewLocal(pub(crate) u16);

/// A branch target in inserted code, see [`Code::mark`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mark(u32);

/// Instructions to insert into a method. They may push and pop their own values, but must leave the
/// method's values on the stack unchanged.
///
/// ```
/// use clr_il::{Code, Opcode};
///
/// // Adds one to the number of 8 bytes at an address.
/// let count = Code::new().address(0x7f00_1234_5678).plain(Opcode::Dup).plain(Opcode::LdindI8).plain(Opcode::LdcI4_1)
///     .plain(Opcode::ConvI8).plain(Opcode::Add).plain(Opcode::StindI8);
/// assert_eq!(count, Code::add_one(0x7f00_1234_5678));
/// assert_eq!(count.deepest_stack(), Ok(3));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Code {
    pub(crate) pieces: Vec<Piece>,
    /// For each mark, the index of the instruction after it.
    marks: Vec<Option<u32>>,
    /// Inner blocks first.
    pub(crate) protected: Vec<ProtectedBlock>,
}

impl Code {
    /// Creates code without instructions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one to the 8-byte number at an address in the process's memory. The addition is not
    /// atomic, because an atomic one costs many times as much: threads that run it at the same time
    /// may lose counts.
    #[must_use]
    pub fn add_one(address: u64) -> Self {
        Self::new().address(address).add_one_there()
    }

    /// Pops an address from the stack and adds one to the 8-byte number there, like
    /// [`add_one`](Self::add_one).
    #[must_use]
    pub fn add_one_there(self) -> Self {
        let sum = self.plain(Opcode::Dup).plain(Opcode::LdindI8).plain(Opcode::LdcI4_1).plain(Opcode::ConvI8);
        sum.plain(Opcode::Add).plain(Opcode::StindI8)
    }

    /// Sets the byte at an address in the process's memory to 1.
    #[must_use]
    pub fn set_one(address: u64) -> Self {
        Self::new().address(address).plain(Opcode::LdcI4_1).plain(Opcode::StindI1)
    }

    /// Appends an instruction with an operand. The operand's kind is checked when the code is
    /// inserted.
    #[must_use]
    pub fn with(mut self, opcode: Opcode, operand: Operand) -> Self {
        self.pieces.push(Piece { opcode, operand, call: None, local: LocalOperand::Settled });
        self
    }

    /// Appends an instruction without an operand.
    #[must_use]
    pub fn plain(self, opcode: Opcode) -> Self {
        self.with(opcode, Operand::None)
    }

    /// Pushes an address in the process's memory. An address below 2 GiB takes five bytes instead
    /// of nine, and compiled code can embed it in the instruction that uses it.
    #[must_use]
    pub fn address(self, address: u64) -> Self {
        let constant = match i32::try_from(address) {
            Ok(low) => self.with(Opcode::LdcI4, Operand::Int(low)),
            Err(_) => self.with(Opcode::LdcI8, Operand::Long(address.cast_signed())),
        };
        constant.plain(Opcode::ConvU)
    }

    /// Appends a call (`call`, `calli`, `callvirt`, `newobj`) of a method or signature. `takes` and
    /// `gives` are the numbers of values that the call pops and pushes, including `this` and the
    /// address of a `calli`.
    #[must_use]
    pub fn call(mut self, opcode: Opcode, token: u32, takes: u16, gives: u16) -> Self {
        let call = Some((takes, gives));
        self.pieces.push(Piece { opcode, operand: Operand::Token(token), call, local: LocalOperand::Settled });
        self
    }

    /// Pushes the value of a new local variable.
    #[must_use]
    pub fn load(self, local: NewLocal) -> Self {
        self.new_local(Opcode::Ldloc, local)
    }

    /// Pops a value into a new local variable.
    #[must_use]
    pub fn store(self, local: NewLocal) -> Self {
        self.new_local(Opcode::Stloc, local)
    }

    /// Pushes the address of a new local variable.
    #[must_use]
    pub fn address_of(self, local: NewLocal) -> Self {
        self.new_local(Opcode::Ldloca, local)
    }

    /// Pushes the address of the method's result. Only for code [at
    /// results](crate::Edits::at_results) of a method that returns a value.
    #[must_use]
    pub fn address_of_result(mut self) -> Self {
        let (opcode, operand) = (Opcode::Ldloca, Operand::Word(0));
        self.pieces.push(Piece { opcode, operand, call: None, local: LocalOperand::Result });
        self
    }

    fn new_local(mut self, opcode: Opcode, local: NewLocal) -> Self {
        self.pieces.push(Piece { opcode, operand: Operand::Word(local.0), call: None, local: LocalOperand::New });
        self
    }

    /// Adds `by` to the numbers of new local variables, because another author's variables come
    /// first.
    pub(crate) fn move_locals(&mut self, by: u16) {
        for piece in self.pieces.iter_mut().filter(|piece| piece.local == LocalOperand::New) {
            if let Operand::Word(number) = &mut piece.operand {
                *number = number.saturating_add(by);
            }
        }
    }

    /// Assigns the new local variables the method's numbers from `first` on.
    pub(crate) fn settle_locals(&mut self, first: u16) {
        self.move_locals(first);
        self.settle(LocalOperand::New);
    }

    /// Sets the number of the local variable that holds the method's result.
    pub(crate) fn settle_result(&mut self, local: u16) {
        for piece in self.pieces.iter_mut().filter(|piece| piece.local == LocalOperand::Result) {
            piece.operand = Operand::Word(local);
        }
        self.settle(LocalOperand::Result);
    }

    fn settle(&mut self, which: LocalOperand) {
        let settled = self.pieces.iter_mut().filter(|piece| piece.local == which);
        settled.for_each(|piece| piece.local = LocalOperand::Settled);
    }

    /// Creates a target for [`branch`](Self::branch). [`mark`](Self::mark) sets its position.
    pub fn new_mark(&mut self) -> Mark {
        self.marks.push(None);
        Mark(self.marks.len() as u32 - 1)
    }

    /// Sets the position of the mark to here: in front of the instruction that is appended next, or
    /// at the end of the code.
    #[must_use]
    pub fn mark(mut self, mark: Mark) -> Self {
        let here = self.pieces.len() as u32;
        if let Some(place) = self.marks.get_mut(mark.0 as usize) {
            *place = Some(here);
        }
        self
    }

    /// Appends a branch to a mark of this code.
    #[must_use]
    pub fn branch(self, opcode: Opcode, mark: Mark) -> Self {
        self.with(opcode, Operand::Target(Label(mark.0)))
    }

    /// Appends code that may throw, and a handler for it. An exception of the type with this token,
    /// or of a derived type, ends that code, and execution continues after it.
    ///
    /// The stack must have no values at that point, not even values of the method itself: so at the
    /// method's entry, or at the beginning of a statement. Otherwise the runtime fails to compile
    /// the method.
    #[must_use]
    pub fn catching(mut self, exception: u32, code: Self) -> Self {
        let (first, marks) = (self.pieces.len(), self.marks.len() as u32);
        let Self { mut pieces, marks: inner_marks, protected } = code;
        for target in pieces.iter_mut().flat_map(|piece| piece.operand.targets_mut()) {
            target.0 += marks;
        }
        self.pieces.extend(pieces);
        self.marks.extend(inner_marks.into_iter().map(|place| place.map(|place| place + first as u32)));
        let moved = |inner: ProtectedBlock| ProtectedBlock {
            start: inner.start + first,
            handler: inner.handler + first,
            end: inner.end + first,
            ..inner
        };
        self.protected.extend(protected.into_iter().map(moved));
        let behind = self.new_mark();
        let left = self.branch(Opcode::LeaveS, behind);
        let handler = left.pieces.len();
        let caught = left.plain(Opcode::Pop).branch(Opcode::LeaveS, behind);
        let end = caught.pieces.len();
        let mut code = caught.mark(behind);
        code.protected.push(ProtectedBlock { start: first, handler, end, exception });
        code
    }

    /// Returns `nop`s of the same total size. Instructions after the code keep their offsets if it
    /// is replaced by these `nop`s.
    #[must_use]
    pub fn blanked(&self) -> Self {
        let size: usize = self.pieces.iter().map(|piece| size(piece.opcode, &piece.operand)).sum();
        (0..size).fold(Self::new(), |code, _| code.plain(Opcode::Nop))
    }

    /// Whether there is no instruction.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Index of the instruction that a branch leads to. The index after the last instruction is the
    /// end.
    pub(crate) fn target(&self, label: Label) -> Result<u32> {
        self.marks.get(label.0 as usize).copied().flatten().ok_or(Error::NoSuchMark)
    }

    /// Maximum number of values that the code has on the stack at the same time.
    ///
    /// # Errors
    /// The reason why the code can't be inserted: [`Error::Unbalanced`], [`Error::Leaves`],
    /// [`Error::WrongOperand`], [`Error::NoSuchMark`], [`Error::LocalsUnknown`],
    /// [`Error::ResultUnknown`].
    pub fn deepest_stack(&self) -> Result<u16> {
        let end = self.pieces.len() as u32;
        let mut depths = Depths(vec![None; self.pieces.len() + 1]);
        // The handler starts with the exception on the stack.
        for protected in &self.protected {
            depths.meet(protected.start as u32, 0)?;
            depths.meet(protected.handler as u32, 1)?;
        }
        // `None` after an unconditional branch.
        let mut running = Some(0);
        let mut deepest = 0;
        for (number, piece) in (0..).zip(&self.pieces) {
            let before = depths.meet(number, running.or(depths.known(number)).unwrap_or(0))?;
            let leaves_own = || self.protected.iter().any(|protected| protected.is_left_at(number as usize));
            let (takes, gives) = if piece.opcode.is_leave() && leaves_own() { (0, 0) } else { piece.check()? };
            let after = before.checked_sub(takes.into()).ok_or(Error::Unbalanced)? + u32::from(gives);
            deepest = deepest.max(after);
            for label in piece.operand.targets() {
                depths.meet(self.target(*label)?, after)?;
            }
            running = piece.opcode.flow().goes_on().then_some(after);
        }
        if let Some(depth) = running {
            depths.meet(end, depth)?;
        }
        match (depths.known(end), self.pieces.last()) {
            (Some(0), Some(last)) if last.opcode.is_prefix() => Err(Error::Leaves(last.opcode)),
            (Some(0), _) => u16::try_from(deepest).map_err(|_| Error::Unbalanced),
            (None, Some(last)) => Err(Error::Leaves(last.opcode)),
            _ => Err(Error::Unbalanced),
        }
    }
}

/// Stack depth in front of each instruction and at the end.
struct Depths(Vec<Option<u32>>);

impl Depths {
    fn known(&self, place: u32) -> Option<u32> {
        self.0[place as usize]
    }

    /// Records the depth at a position. All paths must reach it with the same depth.
    fn meet(&mut self, place: u32, depth: u32) -> Result<u32> {
        match self.0[place as usize].replace(depth) {
            Some(other) if other != depth => Err(Error::Unbalanced),
            _ => Ok(depth),
        }
    }
}

impl Piece {
    /// Checks that the instruction may be inserted. Returns the numbers of values that it pops and
    /// pushes.
    fn check(&self) -> Result<(u16, u16)> {
        let leaves = self.opcode.is_leave() || self.opcode.flow() == Flow::Leave;
        if leaves {
            return Err(Error::Leaves(self.opcode));
        }
        if !self.operand.is_of(self.opcode.operand()) {
            return Err(Error::WrongOperand(self.opcode));
        }
        match self.local {
            LocalOperand::New => return Err(Error::LocalsUnknown),
            LocalOperand::Result => return Err(Error::ResultUnknown),
            LocalOperand::Settled => {}
        }
        let told = self.opcode.pops().zip(self.opcode.pushes()).map(|(pops, pushes)| (pops.into(), pushes.into()));
        told.or(self.call).ok_or(Error::Unbalanced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_leaves_the_stack_as_it_was_may_be_inserted() {
        assert_eq!(Code::new().deepest_stack(), Ok(0));
        assert_eq!(Code::set_one(1).deepest_stack(), Ok(2));
        let call = Code::new().plain(Opcode::Ldarg0).plain(Opcode::LdcI4_1).call(Opcode::Call, 0x0a00_0001, 2, 1);
        assert_eq!(call.clone().plain(Opcode::Pop).deepest_stack(), Ok(2));
        assert_eq!(call.deepest_stack(), Err(Error::Unbalanced));
    }

    #[test]
    fn blanked_code_is_as_long_and_does_nothing() {
        for (address, bytes) in [(1 << 40, 9), (i32::MAX as u64 + 1, 9), (i32::MAX as u64, 5), (7, 5)] {
            let code = Code::set_one(address).blanked();
            assert_eq!(code.pieces.len(), bytes + 1 + 1 + 1);
            assert!(code.pieces.iter().all(|piece| piece.opcode == Opcode::Nop));
        }
    }

    #[test]
    fn branches_within_inserted_code_agree_about_the_stack() {
        let mut code = Code::new();
        let (skip, end) = (code.new_mark(), code.new_mark());
        let code = code.plain(Opcode::Ldarg0).branch(Opcode::BrtrueS, skip).plain(Opcode::LdcI4_1);
        let code = code.branch(Opcode::BrS, end).mark(skip).plain(Opcode::LdcI4_2).mark(end).plain(Opcode::Pop);
        assert_eq!(code.deepest_stack(), Ok(1));

        let mut uneven = Code::new();
        let end = uneven.new_mark();
        let uneven = uneven.plain(Opcode::Ldarg0).branch(Opcode::BrtrueS, end).plain(Opcode::LdcI4_1).mark(end);
        assert_eq!(uneven.deepest_stack(), Err(Error::Unbalanced));
    }

    #[test]
    fn code_that_may_throw_leaves_the_stack_as_it_was() {
        let mut inner = Code::new();
        let end = inner.new_mark();
        let inner = inner.plain(Opcode::Ldarg0).branch(Opcode::BrtrueS, end).plain(Opcode::Ldarg1).plain(Opcode::Pop);
        let inner = inner.mark(end).catching(7, Code::set_one(9));
        let mut code = Code::set_one(5);
        let unused = code.new_mark();
        let code = code.mark(unused).catching(3, inner).plain(Opcode::Nop);
        assert_eq!(code.deepest_stack(), Ok(2));
        // `set_one` is 4 instructions; leave, pop, leave are 3.
        assert_eq!(
            code.protected,
            [
                ProtectedBlock { start: 8, handler: 13, end: 15, exception: 7 },
                ProtectedBlock { start: 4, handler: 16, end: 18, exception: 3 }
            ]
        );
        assert_eq!(
            Code::new().plain(Opcode::Ldarg0).catching(3, Code::new()).plain(Opcode::Pop).deepest_stack(),
            Err(Error::Unbalanced)
        );
        assert_eq!(Code::new().catching(3, Code::new().plain(Opcode::Ldarg0)).deepest_stack(), Err(Error::Unbalanced));
    }

    #[test]
    fn code_that_can_not_be_inserted_says_why() {
        let wrong = |code: Code| code.deepest_stack().unwrap_err();
        assert_eq!(wrong(Code::new().plain(Opcode::Pop)), Error::Unbalanced);
        assert_eq!(wrong(Code::new().plain(Opcode::Ret)), Error::Leaves(Opcode::Ret));
        assert_eq!(wrong(Code::new().plain(Opcode::Volatile)), Error::Leaves(Opcode::Volatile));
        assert_eq!(wrong(Code::new().plain(Opcode::LdcI4)), Error::WrongOperand(Opcode::LdcI4));
        assert_eq!(wrong(Code::new().with(Opcode::Call, Operand::Token(1))), Error::Unbalanced);
        let mut nowhere = Code::new();
        let mark = nowhere.new_mark();
        assert_eq!(wrong(nowhere.branch(Opcode::Br, mark)), Error::NoSuchMark);
        let mut endless = Code::new();
        let mark = endless.new_mark();
        assert_eq!(wrong(endless.mark(mark).branch(Opcode::Br, mark)), Error::Leaves(Opcode::Br));
    }
}
