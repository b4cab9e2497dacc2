//! Wishes for changes of a method.

use crate::{Code, Label, NewLocal};

/// Place for code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Entry,
    Before(Label),
    After(Label),
    /// On the way to a target of a branch, by its number.
    Target(Label, usize),
    Returns,
    Results,
    Exits,
    Failures,
}

/// Place of a method's result while code runs at its exits: by then the stack is empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ResultPlace {
    /// The method returns nothing.
    None,
    /// In the local variable with this number, which has the type that the method returns and is
    /// used by nothing else.
    Local(u16),
}

/// Wishes of code to be inserted into a method. Several authors' edits of one method are
/// [merged](Self::merge) into one.
///
/// Code in front of an instruction belongs to the instruction: who branches there, and a block that
/// begins there, begins with the code. Code at the entry does not: a loop back to the first
/// instruction does not run it again.
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
    /// No wishes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs code when the method is called.
    pub fn at_entry(&mut self, code: Code) {
        self.wishes.push((Place::Entry, code));
    }

    /// Runs code before the instruction. A place within an instruction's prefixes means the first
    /// of them.
    pub fn before(&mut self, place: Label, code: Code) {
        self.wishes.push((Place::Before(place), code));
    }

    /// Runs code after the instruction, where it goes on with the next one: not where a condition
    /// branches away, nor where an exception leaves it.
    pub fn after(&mut self, place: Label, code: Code) {
        self.wishes.push((Place::After(place), code));
    }

    /// Runs code on the way from a branch to one of its targets, and on no other way there: where
    /// the branch is taken, or where a `switch` chooses that target. `target` counts the targets
    /// from 0; of several that are one place each has a way of its own. Where a condition is not
    /// met is [`after`](Self::after).
    pub fn on_target(&mut self, branch: Label, target: usize, code: Code) {
        self.wishes.push((Place::Target(branch, target), code));
    }

    /// Runs code before and after the instruction.
    pub fn around(&mut self, place: Label, before: Code, after: Code) {
        self.before(place, before);
        self.after(place, after);
    }

    /// Runs code before each return, with the result on the stack: not where an exception leaves
    /// the method. Needs no local variable.
    pub fn at_returns(&mut self, code: Code) {
        self.wishes.push((Place::Returns, code));
    }

    /// Runs code before each return of a method that has code [at exits](Self::at_exits) or [at
    /// failures](Self::at_failures), once the result lies where [`set_result`](Self::set_result)
    /// says: [`Code::address_of_result`].
    pub fn at_results(&mut self, code: Code) {
        self.wishes.push((Place::Results, code));
    }

    /// Runs code at each exit, by return or by exception: the method becomes a protected block with
    /// a `finally`, and each return a jump out of it. [`set_result`](Self::set_result) says where
    /// the result lies meanwhile.
    ///
    /// Out of a protected block the runtime makes no tail calls, nor of its own accord: a recursion
    /// that relies on its compiler's good will needs more stack.
    pub fn at_exits(&mut self, code: Code) {
        self.wishes.push((Place::Exits, code));
    }

    /// Runs code where an exception leaves the method, and not where the method returns: it becomes
    /// a protected block with a `fault`, and each return a jump out of the block.
    /// [`set_result`](Self::set_result) says where the result lies meanwhile. As with
    /// [`at_exits`](Self::at_exits) nothing in the block becomes a tail call.
    pub fn at_failures(&mut self, code: Code) {
        self.wishes.push((Place::Failures, code));
    }

    /// A new local variable of a type (as signatures write types), for the code of these edits:
    /// [`Code::load`], [`Code::store`]. [`set_first_local`](Self::set_first_local) says later which
    /// number it has got.
    pub fn new_local(&mut self, ty: &[u8]) -> NewLocal {
        self.locals.push(ty.to_vec());
        NewLocal((self.locals.len() - 1) as u16)
    }

    /// Types of the new local variables, in the order of their numbers.
    #[must_use]
    pub fn new_locals(&self) -> &[Vec<u8>] {
        &self.locals
    }

    /// Says which number the first of the new local variables has got in the method; the others
    /// follow. To be said once, when all authors are [merged](Self::merge).
    pub fn set_first_local(&mut self, first: u16) {
        self.wishes.iter_mut().for_each(|(_, code)| code.settle_locals(first));
        self.locals.clear();
    }

    /// Says where the method's result lies while code runs [at exits](Self::at_exits) or [at
    /// failures](Self::at_failures).
    pub fn set_result(&mut self, place: ResultPlace) {
        self.result = Some(place);
        if let ResultPlace::Local(local) = place {
            let at_results = self.wishes.iter_mut().filter(|(place, _)| *place == Place::Results);
            at_results.for_each(|(_, code)| code.settle_result(local));
        }
    }

    /// Gives each branch its form with a distance of four bytes, needed or not: for tests of what
    /// is made of bodies.
    pub fn lengthen_branches(&mut self) {
        self.lengthens = true;
    }

    /// Lets tail calls (the prefix `tail.`) become plain ones where code is put between them and
    /// their return. Without this word such edits are refused: a recursion through tail calls would
    /// need a stack without end.
    pub fn drop_tail_calls(&mut self) {
        self.drops_tail_calls = true;
    }

    /// Whether nothing is wished.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.wishes.is_empty() && !self.lengthens
    }

    /// Whether something is to run at exits or at failures, so that
    /// [`set_result`](Self::set_result) must be said.
    #[must_use]
    pub fn wraps(&self) -> bool {
        self.wishes.iter().any(|(place, _)| matches!(place, Place::Exits | Place::Failures))
    }

    /// Adds the wishes of another author, permissions among them, who is nested within this one:
    /// where both want something at one place, this one's code runs first before and last after.
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
