//! Edits of a method.

use crate::{Code, Label, NewLocal};

/// Position for inserted code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Entry,
    Before(Label),
    After(Label),
    /// On the edge to a target of a branch, by the target's number.
    Target(Label, usize),
    Returns,
    Results,
    Exits,
    Failures,
}

/// Location of a method's result while code runs at its exits. The stack is empty then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ResultPlace {
    /// The method returns nothing.
    None,
    /// In the local variable with this number. The variable has the method's return type and has no
    /// other use.
    Local(u16),
}

/// Edits of a method: code to insert, with its positions. The edits of several authors for one
/// method are [merged](Self::merge).
///
/// Code in front of an instruction belongs to the instruction: branches to the instruction run the
/// code, and a block that begins there begins with the code. Code at the entry does not belong to
/// the first instruction: a loop back to it does not run the code again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Edits {
    pub(crate) wishes: Vec<(Place, Code)>,
    pub(crate) result: Option<ResultPlace>,
    /// Types of the new local variables.
    pub(crate) locals: Vec<Vec<u8>>,
    pub(crate) lengthens: bool,
    pub(crate) drops_tail_calls: bool,
}

impl Edits {
    /// Creates an empty set of edits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs code when the method is called.
    pub fn at_entry(&mut self, code: Code) {
        self.wishes.push((Place::Entry, code));
    }

    /// Runs code before the instruction. If the instruction has prefixes, the code goes before the
    /// first prefix.
    pub fn before(&mut self, place: Label, code: Code) {
        self.wishes.push((Place::Before(place), code));
    }

    /// Runs code after the instruction if execution continues with the next one. The code does not
    /// run if a conditional branch is taken or the instruction throws.
    pub fn after(&mut self, place: Label, code: Code) {
        self.wishes.push((Place::After(place), code));
    }

    /// Runs code on the edge from a branch to one of its targets: if the branch is taken, or if a
    /// `switch` selects that target. Other paths to the target do not run the code. `target` counts
    /// the targets from 0; two targets at the same position have separate edges. Use
    /// [`after`](Self::after) for the case that the branch is not taken.
    pub fn on_target(&mut self, branch: Label, target: usize, code: Code) {
        self.wishes.push((Place::Target(branch, target), code));
    }

    /// Runs code before and after the instruction.
    pub fn around(&mut self, place: Label, before: Code, after: Code) {
        self.before(place, before);
        self.after(place, after);
    }

    /// Runs code before each return, with the result on the stack, but not if an exception leaves
    /// the method. Needs no local variable.
    pub fn at_returns(&mut self, code: Code) {
        self.wishes.push((Place::Returns, code));
    }

    /// Runs code before each return of a method that has code [at exits](Self::at_exits) or [at
    /// failures](Self::at_failures). The result is then at the location given by
    /// [`set_result`](Self::set_result); [`Code::address_of_result`] accesses it.
    pub fn at_results(&mut self, code: Code) {
        self.wishes.push((Place::Results, code));
    }

    /// Runs code at each exit, by return or by exception. The method becomes a protected block with
    /// a `finally`, and each return becomes a jump out of the block.
    /// [`set_result`](Self::set_result) gives the location of the result while the code runs.
    ///
    /// The runtime makes no tail calls in a protected block, not even implicit ones. A recursion
    /// that relies on implicit tail calls then needs more stack.
    pub fn at_exits(&mut self, code: Code) {
        self.wishes.push((Place::Exits, code));
    }

    /// Runs code if an exception leaves the method, but not if the method returns. The method
    /// becomes a protected block with a `fault`, and each return becomes a jump out of the block.
    /// [`set_result`](Self::set_result) gives the location of the result while the code runs. As
    /// with [`at_exits`](Self::at_exits), no call in the block becomes a tail call.
    pub fn at_failures(&mut self, code: Code) {
        self.wishes.push((Place::Failures, code));
    }

    /// Creates a new local variable for the code of these edits ([`Code::load`], [`Code::store`]).
    /// `ty` is its type, encoded as in signatures. [`set_first_local`](Self::set_first_local) later
    /// sets its number.
    pub fn new_local(&mut self, ty: &[u8]) -> NewLocal {
        self.locals.push(ty.to_vec());
        NewLocal((self.locals.len() - 1) as u16)
    }

    /// Types of the new local variables, in the order of their numbers.
    #[must_use]
    pub fn new_locals(&self) -> &[Vec<u8>] {
        &self.locals
    }

    /// Sets the number of the first new local variable in the method; the others follow. Call it
    /// once, after all authors' edits are [merged](Self::merge).
    pub fn set_first_local(&mut self, first: u16) {
        self.wishes.iter_mut().for_each(|(_, code)| code.settle_locals(first));
        self.locals.clear();
    }

    /// Sets the location of the method's result while code runs [at exits](Self::at_exits) or [at
    /// failures](Self::at_failures).
    pub fn set_result(&mut self, place: ResultPlace) {
        self.result = Some(place);
        if let ResultPlace::Local(local) = place {
            let at_results = self.wishes.iter_mut().filter(|(place, _)| *place == Place::Results);
            at_results.for_each(|(_, code)| code.settle_result(local));
        }
    }

    /// Gives each branch its long form with a four-byte distance, even if the short form suffices.
    /// This is for tests of code that processes bodies.
    pub fn lengthen_branches(&mut self) {
        self.lengthens = true;
    }

    /// Allows tail calls (the prefix `tail.`) to become plain calls if code is inserted between
    /// them and their return. Without this permission such edits are an error: a recursion through
    /// tail calls would need unlimited stack.
    pub fn drop_tail_calls(&mut self) {
        self.drops_tail_calls = true;
    }

    /// Whether there are no edits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.wishes.is_empty() && !self.lengthens
    }

    /// Whether there is code at exits or at failures, so that [`set_result`](Self::set_result) must
    /// be called.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.wishes.iter().any(|(place, _)| matches!(place, Place::Exits | Place::Failures))
    }

    /// Adds the edits and permissions of another author. The other author's code is nested inside
    /// this author's: at the same position, this author's code runs first before an instruction and
    /// last after it.
    pub fn merge(&mut self, mut other: Self) {
        let own = self.locals.len() as u16;
        other.wishes.iter_mut().for_each(|(_, code)| code.move_locals(own));
        self.locals.extend(other.locals);
        self.wishes.extend(other.wishes);
        self.result = self.result.or(other.result);
        self.lengthens |= other.lengthens;
        self.drops_tail_calls |= other.drops_tail_calls;
    }
}
