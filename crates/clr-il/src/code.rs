//! Code that is to be inserted.

use crate::instruction::size;
use crate::{Error, Flow, Label, Opcode, Operand, Result};

/// An instruction of [`Code`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) opcode: Opcode,
    pub(crate) operand: Operand,
    /// Values that the instruction takes and gives, where the table does not say it.
    call: Option<(u16, u16)>,
    /// Meaning of the operand of an instruction that names a local variable.
    local: LocalOperand,
}

/// Local variable that an operand means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LocalOperand {
    /// None, or one of the method's, by its number.
    Settled,
    /// One of the [new local variables](NewLocal), by its number among these.
    New,
    /// Local variable of the method's result.
    Result,
}

/// Instructions of [`Code`] that may throw, and what becomes of an exception; places are numbers of
/// instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProtectedBlock {
    pub(crate) start: usize,
    /// First instruction of the handler, and the first behind the protected ones.
    pub(crate) handler: usize,
    /// First instruction behind the handler.
    pub(crate) end: usize,
    /// Token of the type whose exceptions are caught.
    pub(crate) exception: u32,
}

impl ProtectedBlock {
    /// Whether the instruction is one of the two that leave.
    fn is_left_at(&self, number: usize) -> bool {
        number + 1 == self.handler || number + 1 == self.end
    }
}

/// A local variable that inserted code gets for itself, see
/// [`Edits::new_local`](crate::Edits::new_local).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewLocal(pub(crate) u16);

/// A place within code that is to be inserted, see [`Code::mark`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mark(u32);

/// Instructions that are to be inserted into a method. They may use the stack, and must leave it as
/// they found it: what lies on it belongs to the method.
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
    /// Numbers of the instructions that marks stand in front of.
    marks: Vec<Option<u32>>,
    /// Inner ones first.
    pub(crate) protected: Vec<ProtectedBlock>,
}

impl Code {
    /// Without any instruction.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one to the number of 8 bytes at an address of the process's memory. Threads that do it
    /// at the same time may lose counts, as an atomic addition would cost many times as much.
    #[must_use]
    pub fn add_one(address: u64) -> Self {
        Self::new().address(address).add_one_there()
    }

    /// Adds one to the number of 8 bytes whose address is on the stack, and takes the address away;
    /// as [`add_one`](Self::add_one).
    #[must_use]
    pub fn add_one_there(self) -> Self {
        let sum = self.plain(Opcode::Dup).plain(Opcode::LdindI8).plain(Opcode::LdcI4_1).plain(Opcode::ConvI8);
        sum.plain(Opcode::Add).plain(Opcode::StindI8)
    }

    /// Sets the byte at an address of the process's memory to 1.
    #[must_use]
    pub fn set_one(address: u64) -> Self {
        Self::new().address(address).plain(Opcode::LdcI4_1).plain(Opcode::StindI1)
    }

    /// An instruction with an operand. Whether it fits shows when the code is inserted.
    #[must_use]
    pub fn with(mut self, opcode: Opcode, operand: Operand) -> Self {
        self.pieces.push(Piece { opcode, operand, call: None, local: LocalOperand::Settled });
        self
    }

    /// An instruction without an operand.
    #[must_use]
    pub fn plain(self, opcode: Opcode) -> Self {
        self.with(opcode, Operand::None)
    }

    /// Puts an address of the process's memory on the stack. One below 2 GiB takes five bytes
    /// instead of nine, and compiled code names it in the instruction that uses it.
    #[must_use]
    pub fn address(self, address: u64) -> Self {
        let constant = match i32::try_from(address) {
            Ok(low) => self.with(Opcode::LdcI4, Operand::Int(low)),
            Err(_) => self.with(Opcode::LdcI8, Operand::Long(address.cast_signed())),
        };
        constant.plain(Opcode::ConvU)
    }

    /// A call (`call`, `calli`, `callvirt`, `newobj`) of a method or signature, which takes and
    /// gives that many values; `this` and the address of a `calli` are among them.
    #[must_use]
    pub fn call(mut self, opcode: Opcode, token: u32, takes: u16, gives: u16) -> Self {
        let call = Some((takes, gives));
        self.pieces.push(Piece { opcode, operand: Operand::Token(token), call, local: LocalOperand::Settled });
        self
    }

    /// Puts the value of a new local variable on the stack.
    #[must_use]
    pub fn load(self, local: NewLocal) -> Self {
        self.new_local(Opcode::Ldloc, local)
    }

    /// Takes the value of a new local variable from the stack.
    #[must_use]
    pub fn store(self, local: NewLocal) -> Self {
        self.new_local(Opcode::Stloc, local)
    }

    /// Puts the address of a new local variable on the stack.
    #[must_use]
    pub fn address_of(self, local: NewLocal) -> Self {
        self.new_local(Opcode::Ldloca, local)
    }

    /// Puts the address of the method's result on the stack: in code [at
    /// results](crate::Edits::at_results) of a method that returns something.
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

    /// New local variables have numbers that are `by` higher: those of another author come first.
    pub(crate) fn move_locals(&mut self, by: u16) {
        for piece in self.pieces.iter_mut().filter(|piece| piece.local == LocalOperand::New) {
            if let Operand::Word(number) = &mut piece.operand {
                *number = number.saturating_add(by);
            }
        }
    }

    /// New local variables are local variables of the method from `first` on.
    pub(crate) fn settle_locals(&mut self, first: u16) {
        self.move_locals(first);
        self.settle(LocalOperand::New);
    }

    /// The method's result lies in the local variable with this number.
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

    /// A place for [`branch`](Self::branch), which is put somewhere by [`mark`](Self::mark).
    pub fn new_mark(&mut self) -> Mark {
        self.marks.push(None);
        Mark(self.marks.len() as u32 - 1)
    }

    /// The mark stands here, in front of the next instruction or at the end.
    #[must_use]
    pub fn mark(mut self, mark: Mark) -> Self {
        let here = self.pieces.len() as u32;
        if let Some(place) = self.marks.get_mut(mark.0 as usize) {
            *place = Some(here);
        }
        self
    }

    /// A branch to a mark of this code.
    #[must_use]
    pub fn branch(self, opcode: Opcode, mark: Mark) -> Self {
        self.with(opcode, Operand::Target(Label(mark.0)))
    }

    /// Runs code that may throw. An exception of the type with this token, or of one derived from
    /// it, ends that code, and what stands behind it goes on.
    ///
    /// The stack must be empty there, that of the method as well: at its entry, or where one of its
    /// statements begins. The runtime compiles no method where it is not.
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

    /// Instructions that do nothing, as many bytes of them: what stands behind them stays where it
    /// is.
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

    /// Number of the instruction that a branch leads to; that behind the last is the end.
    pub(crate) fn target(&self, label: Label) -> Result<u32> {
        self.marks.get(label.0 as usize).copied().flatten().ok_or(Error::NoSuchMark)
    }

    /// Most values that the code has on the stack at a time.
    ///
    /// # Errors
    /// Why it can't be inserted: [`Error::Unbalanced`], [`Error::Leaves`], [`Error::WrongOperand`],
    /// [`Error::NoSuchMark`], [`Error::LocalsUnknown`], [`Error::ResultUnknown`].
    pub fn deepest_stack(&self) -> Result<u16> {
        let end = self.pieces.len() as u32;
        let mut depths = Depths(vec![None; self.pieces.len() + 1]);
        // The handler has the exception.
        for protected in &self.protected {
            depths.meet(protected.start as u32, 0)?;
            depths.meet(protected.handler as u32, 1)?;
        }
        // Nothing behind a branch that is always taken.
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

/// Depth of the stack in front of each instruction and at the end.
struct Depths(Vec<Option<u32>>);

impl Depths {
    fn known(&self, place: u32) -> Option<u32> {
        self.0[place as usize]
    }

    /// A place is reached with a depth, the only one.
    fn meet(&mut self, place: u32, depth: u32) -> Result<u32> {
        match self.0[place as usize].replace(depth) {
            Some(other) if other != depth => Err(Error::Unbalanced),
            _ => Ok(depth),
        }
    }
}

impl Piece {
    /// Values taken and given by an instruction that may be inserted.
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
