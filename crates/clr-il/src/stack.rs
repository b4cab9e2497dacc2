//! Depth of the stack.

use crate::clause::ClauseKind;
use crate::{Body, Error, Instruction, Label, Result};

impl Body {
    /// Computes the maximum stack depth of the instructions. For a call, `amounts` returns the
    /// numbers of values popped and pushed, including `this` and the address of a `calli`; for
    /// `ret` it returns the number of values popped. For other instructions the opcode table has
    /// the numbers.
    ///
    /// # Errors
    /// [`Error::Depth`] if a value is missing, an instruction is reached with different depths, or
    /// `amounts` returns `None`.
    pub fn deepest_stack(&self, amounts: impl Fn(&Instruction) -> Option<(u16, u16)>) -> Result<u32> {
        Ok(self.walk_stack(amounts)?.0)
    }

    /// Computes the stack depth before each instruction, in code order. `amounts` is the same as
    /// for [`deepest_stack`](Self::deepest_stack).
    ///
    /// # Errors
    /// As for [`deepest_stack`](Self::deepest_stack).
    pub fn stack_depths(&self, amounts: impl Fn(&Instruction) -> Option<(u16, u16)>) -> Result<Vec<u32>> {
        Ok(self.walk_stack(amounts)?.1)
    }

    /// Computes the maximum depth, and the depth before each instruction.
    fn walk_stack(&self, amounts: impl Fn(&Instruction) -> Option<(u16, u16)>) -> Result<(u32, Vec<u32>)> {
        let mut walk = Walk { body: self, amounts, depths: vec![None; self.instructions.len()], todo: Vec::new() };
        let index = self.index();
        let number = |label| index.get(label).ok_or(Error::NoSuchPlace(label));
        walk.reach(0, 0)?;
        for clause in &self.clauses {
            let depth = match clause.kind {
                ClauseKind::Catch(_) => 1,
                ClauseKind::Filter(start) => {
                    walk.reach(number(start)?, 1)?;
                    1
                }
                ClauseKind::Finally | ClauseKind::Fault => 0,
            };
            walk.reach(number(clause.start)?, depth)?;
        }
        let mut deepest = 0;
        // If only a backward branch reaches an instruction, the stack is empty before it. The
        // linear walk starts there with depth 0.
        for start in 0..self.instructions.len() as u32 {
            if walk.depths[start as usize].is_none() {
                walk.reach(start, 0)?;
            }
            while let Some(at) = walk.todo.pop() {
                deepest = deepest.max(walk.step(at, &number)?);
            }
        }
        // The walk has visited all instructions.
        Ok((deepest, walk.depths.into_iter().map(Option::unwrap_or_default).collect()))
    }
}

struct Walk<'b, A> {
    body: &'b Body,
    amounts: A,
    depths: Vec<Option<u32>>,
    todo: Vec<u32>,
}

impl<A: Fn(&Instruction) -> Option<(u16, u16)>> Walk<'_, A> {
    fn reach(&mut self, number: u32, depth: u32) -> Result<()> {
        let known = self.depths.get_mut(number as usize).ok_or(Error::Depth { index: number })?;
        match known {
            Some(other) if *other == depth => {}
            Some(_) => return Err(Error::Depth { index: number }),
            None => {
                *known = Some(depth);
                self.todo.push(number);
            }
        }
        Ok(())
    }

    /// Processes an instruction. Returns the larger of the depths before and after it.
    fn step(&mut self, at: u32, number: &impl Fn(Label) -> Result<u32>) -> Result<u32> {
        let wrong = Error::Depth { index: at };
        let instruction = &self.body.instructions[at as usize];
        let opcode = instruction.opcode;
        let before = self.depths[at as usize].ok_or(wrong)?;
        let told = opcode.pops().zip(opcode.pushes()).map(|(pops, pushes)| (u16::from(pops), u16::from(pushes)));
        let (takes, gives) = told.or_else(|| (self.amounts)(instruction)).ok_or(wrong)?;
        let after = before.checked_sub(takes.into()).ok_or(wrong)? + u32::from(gives);
        // Leaving a block empties the stack.
        let at_target = if opcode.is_leave() { 0 } else { after };
        for target in instruction.operand.targets() {
            self.reach(number(*target)?, at_target)?;
        }
        if opcode.flow().goes_on() && at as usize + 1 < self.body.instructions.len() {
            self.reach(at + 1, after)?;
        }
        Ok(before.max(after))
    }
}
