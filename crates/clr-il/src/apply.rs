//! Applies edits to a body.
//!
//! Instructions keep their labels. If code is inserted in front of an instruction, the branches to
//! the instruction are redirected to that code.

use std::collections::{BTreeMap, HashMap};

use crate::clause::{Clause, ClauseKind};
use crate::code::ProtectedBlock;
use crate::edits::Place;
use crate::{Body, Code, Edits, Error, Instruction, Label, Opcode, Operand, Result, ResultPlace};

/// Code to insert, by the indices of instructions.
#[derive(Default)]
struct Plan<'e> {
    entry: Vec<&'e Code>,
    before: HashMap<usize, Vec<&'e Code>>,
    after: HashMap<usize, Vec<&'e Code>>,
    /// Code on branch edges, by the branch's index and the target's number.
    targets: HashMap<usize, BTreeMap<usize, Vec<&'e Code>>>,
    /// In execution order: the last author's code first.
    returns: Vec<&'e Code>,
    results: Vec<&'e Code>,
    exits: Vec<&'e Code>,
    failures: Vec<&'e Code>,
    deepest: u16,
}

impl Plan<'_> {
    /// Whether the method becomes a protected block.
    fn wraps(&self) -> bool {
        !(self.exits.is_empty() && self.failures.is_empty())
    }
}

/// Whether the instruction ends the method normally.
const fn is_return(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Ret | Opcode::Jmp)
}

impl Body {
    /// Applies all edits. On an error the body is unchanged.
    ///
    /// The maximum stack depth grows by the depth of the deepest inserted code.
    ///
    /// # Errors
    /// A place that the method does not have, code that can't be inserted, or
    /// [`Error::NothingAfter`], [`Error::ResultUnknown`], [`Error::LocalsUnknown`],
    /// [`Error::Jumps`], [`Error::TailCalls`].
    pub fn apply(&mut self, edits: &Edits) -> Result<()> {
        if edits.is_empty() {
            return Ok(());
        }
        let mut changed = self.clone();
        let plan = changed.plan(edits)?;
        let parted = changed.parted_tail_calls(&plan);
        if !parted.is_empty() && !edits.drops_tail_calls {
            return Err(Error::TailCalls);
        }
        changed.drop_tail_prefixes(&parted);
        changed.insert(&plan, edits.result)?;
        if edits.lengthens {
            changed.lengthen_branches();
        }
        *self = changed;
        Ok(())
    }

    fn plan<'e>(&self, edits: &'e Edits) -> Result<Plan<'e>> {
        let mut plan = Plan::default();
        let index = self.index();
        for (place, code) in &edits.wishes {
            plan.deepest = plan.deepest.max(code.deepest_stack()?);
            let number = |label| index.get(label).map(|number| number as usize).ok_or(Error::NoSuchPlace(label));
            match *place {
                Place::Entry => plan.entry.push(code),
                Place::Returns => plan.returns.insert(0, code),
                Place::Results => plan.results.insert(0, code),
                Place::Exits => plan.exits.insert(0, code),
                Place::Failures => plan.failures.insert(0, code),
                Place::Before(label) => {
                    plan.before.entry(self.group_start(number(label)?)).or_default().push(code);
                }
                Place::After(label) => {
                    let last = self.group_end(number(label)?);
                    if !self.instructions[last].opcode.flow().goes_on() {
                        return Err(Error::NothingAfter(label));
                    }
                    plan.after.entry(last).or_default().insert(0, code);
                }
                Place::Target(label, target) => {
                    let branch = number(label)?;
                    let instruction = &self.instructions[branch];
                    // The edge of a `leave` is outside of its block.
                    if instruction.opcode.is_leave() || instruction.operand.targets().len() <= target {
                        return Err(Error::NoSuchTarget(label));
                    }
                    plan.targets.entry(branch).or_default().entry(target).or_default().push(code);
                }
            }
        }
        Ok(plan)
    }

    fn with_opcode(&self, is_wanted: impl Fn(Opcode) -> bool) -> impl Iterator<Item = (usize, &Instruction)> {
        self.instructions.iter().enumerate().filter(move |(_, instruction)| is_wanted(instruction.opcode))
    }

    /// Index of an instruction's first prefix, or of the instruction if it has none.
    fn group_start(&self, number: usize) -> usize {
        let before = self.instructions[..number].iter().rev();
        number - before.take_while(|instruction| instruction.opcode.is_prefix()).count()
    }

    /// Index of the instruction that a prefix belongs to.
    fn group_end(&self, number: usize) -> usize {
        let prefixes = self.instructions[number..].iter().take_while(|instruction| instruction.opcode.is_prefix());
        (number + prefixes.count()).min(self.instructions.len() - 1)
    }

    /// Indices of the `tail.` prefixes of calls that would no longer have the required `ret`
    /// immediately after them.
    fn parted_tail_calls(&self, plan: &Plan<'_>) -> Vec<usize> {
        let is_parted = |number: usize| {
            let call = self.group_end(number);
            let has_end = !plan.returns.is_empty() || plan.wraps();
            has_end || plan.after.contains_key(&call) || plan.before.contains_key(&(call + 1))
        };
        let tails = self.with_opcode(|opcode| opcode == Opcode::Tail).map(|(number, _)| number);
        tails.filter(|number| is_parted(*number)).collect()
    }

    /// Replaces each `tail.` prefix by a `nop` in front of the call's other prefixes. No label is
    /// lost.
    fn drop_tail_prefixes(&mut self, parted: &[usize]) {
        for &number in parted {
            let start = self.group_start(number);
            for at in (start..number).rev() {
                let (opcode, operand) = (self.instructions[at].opcode, self.instructions[at].operand.clone());
                self.instructions[at + 1].opcode = opcode;
                self.instructions[at + 1].operand = operand;
            }
            self.instructions[start].opcode = Opcode::Nop;
            self.instructions[start].operand = Operand::None;
        }
    }

    /// Replaces references to labels: `instead` maps the old label to the new one.
    fn redirect(&mut self, instead: &HashMap<Label, Label>) {
        if instead.is_empty() {
            return;
        }
        for label in self.references_mut() {
            if let Some(other) = instead.get(label) {
                *label = *other;
            }
        }
    }

    fn insert(&mut self, plan: &Plan<'_>, result: Option<ResultPlace>) -> Result<()> {
        let wraps = plan.wraps();
        let result = match (wraps, result) {
            (false, _) if !plan.results.is_empty() => return Err(Error::ResultUnknown),
            (false, _) => None,
            (true, None) => return Err(Error::ResultUnknown),
            (true, Some(place)) => Some(place),
        };
        if wraps && self.with_opcode(|opcode| opcode == Opcode::Jmp).next().is_some() {
            return Err(Error::Jumps);
        }
        let epilogue = self.new_label();
        let old = std::mem::take(&mut self.instructions);
        let labels: Vec<Label> = old.iter().map(|instruction| instruction.label).collect();
        let mut inner = Vec::with_capacity(old.len());
        let mut instead = HashMap::new();
        for (number, instruction) in old.into_iter().enumerate() {
            let (label, start) = (instruction.label, inner.len());
            let returns = if is_return(instruction.opcode) { plan.returns.as_slice() } else { &[] };
            for code in plan.before.get(&number).into_iter().flatten().chain(returns) {
                self.emit(code, &mut inner)?;
            }
            if let Some(first) = inner.get(start) {
                instead.insert(label, first.label);
            }
            let goes_on = instruction.opcode.flow().goes_on();
            let branch = inner.len();
            match (result, instruction.opcode) {
                (Some(place), Opcode::Ret) => self.leave(label, place, &plan.results, epilogue, &mut inner)?,
                _ => inner.push(instruction),
            }
            for code in plan.after.get(&number).into_iter().flatten() {
                self.emit(code, &mut inner)?;
            }
            if let Some(ways) = plan.targets.get(&number) {
                let next = if goes_on { Some(labels.get(number + 1).ok_or(Error::NothingAfter(label))?) } else { None };
                self.lay_ways(ways, branch, next.copied(), &mut inner)?;
            }
        }
        let mut all = Vec::with_capacity(inner.len());
        for code in &plan.entry {
            self.emit(code, &mut all)?;
        }
        let first = inner.first().map_or(Label::END, |instruction| instruction.label);
        let has_epilogue = inner.iter().any(|instruction| instruction.operand.targets().contains(&epilogue));
        self.redirect_all(&instead, &mut inner);
        all.append(&mut inner);
        self.header.max_stack = self.header.max_stack.saturating_add(plan.deepest);
        if let Some(place) = result {
            let end = has_epilogue.then_some(epilogue);
            self.wrap(first, plan, place, end, &mut all)?;
        }
        self.instructions = all;
        Ok(())
    }

    /// Adds the code on the edges of the branch at `branch`. For each target with code, emits the
    /// code and a jump to the target after the branch, and redirects the branch to the code. If
    /// execution can continue at `next`, a jump skips the emitted code.
    fn lay_ways(
        &mut self,
        ways: &BTreeMap<usize, Vec<&Code>>,
        branch: usize,
        next: Option<Label>,
        to: &mut Vec<Instruction>,
    ) -> Result<()> {
        let jump = |label, target| Instruction { label, opcode: Opcode::BrS, operand: Operand::Target(target) };
        if let Some(next) = next {
            let label = self.new_label();
            to.push(jump(label, next));
        }
        for (target, codes) in ways {
            let (start, end) = (to.len(), to[branch].operand.targets()[*target]);
            for code in codes {
                self.emit(code, to)?;
            }
            let label = self.new_label();
            to.push(jump(label, end));
            let first = to[start].label;
            to[branch].operand.targets_mut()[*target] = first;
        }
        Ok(())
    }

    /// Like [`redirect`](Self::redirect), also for `instructions`, which are not in the body at
    /// this point. Inserted code refers only to its own instructions, which are never redirected.
    fn redirect_all(&mut self, instead: &HashMap<Label, Label>, instructions: &mut Vec<Instruction>) {
        std::mem::swap(&mut self.instructions, instructions);
        self.redirect(instead);
        std::mem::swap(&mut self.instructions, instructions);
    }

    /// Emits the replacement of a `ret`: stores the result, runs `codes` and leaves the protected
    /// block.
    fn leave(
        &mut self,
        label: Label,
        place: ResultPlace,
        codes: &[&Code],
        epilogue: Label,
        to: &mut Vec<Instruction>,
    ) -> Result<()> {
        let (opcode, operand) = match place {
            ResultPlace::Local(local) => (Opcode::Stloc, Operand::Word(local)),
            ResultPlace::None if codes.is_empty() => {
                to.push(Instruction { label, opcode: Opcode::LeaveS, operand: Operand::Target(epilogue) });
                return Ok(());
            }
            // Takes the label of the `ret`, so that branches to it reach the code.
            ResultPlace::None => (Opcode::Nop, Operand::None),
        };
        to.push(Instruction { label, opcode, operand });
        for code in codes {
            self.emit(code, to)?;
        }
        let label = self.new_label();
        to.push(Instruction { label, opcode: Opcode::LeaveS, operand: Operand::Target(epilogue) });
        Ok(())
    }

    /// Turns the code from `first` on into a protected block, and adds its handlers and the end of
    /// the method. The handler of failures is nested in the handler of all exits.
    fn wrap(
        &mut self,
        first: Label,
        plan: &Plan<'_>,
        place: ResultPlace,
        epilogue: Option<Label>,
        all: &mut Vec<Instruction>,
    ) -> Result<()> {
        let handlers = [(ClauseKind::Fault, &plan.failures), (ClauseKind::Finally, &plan.exits)];
        let mut handlers = handlers.into_iter().filter(|(_, codes)| !codes.is_empty()).peekable();
        let mut handler = self.new_label();
        // Blocks that ended at the end of the method now end where the first handler begins.
        for label in self.clauses.iter_mut().flat_map(Clause::labels_mut).filter(|label| **label == Label::END) {
            *label = handler;
        }
        while let Some((kind, codes)) = handlers.next() {
            // The handler needs a first instruction even if the code is empty.
            all.push(Instruction { label: handler, opcode: Opcode::Nop, operand: Operand::None });
            for code in codes {
                self.emit(code, all)?;
            }
            let last = self.new_label();
            all.push(Instruction { label: last, opcode: Opcode::Endfinally, operand: Operand::None });
            let next = handlers.peek().map(|_| self.new_label());
            let end = next.or(epilogue).unwrap_or(Label::END);
            self.clauses.push(Clause { kind, try_start: first, try_end: handler, start: handler, end, unused: 0 });
            handler = end;
        }
        let Some(epilogue) = epilogue else { return Ok(()) };
        let mut label = epilogue;
        if let ResultPlace::Local(local) = place {
            all.push(Instruction { label, opcode: Opcode::Ldloc, operand: Operand::Word(local) });
            label = self.new_label();
            self.header.max_stack = self.header.max_stack.max(1);
        }
        all.push(Instruction { label, opcode: Opcode::Ret, operand: Operand::None });
        Ok(())
    }

    /// Appends a copy of the code with new labels.
    fn emit(&mut self, code: &Code, to: &mut Vec<Instruction>) -> Result<()> {
        let labels: Vec<Label> = code.pieces.iter().map(|_| self.new_label()).collect();
        let mut reaches_end = false;
        let base = to.len();
        for (piece, label) in code.pieces.iter().zip(&labels) {
            to.push(Instruction::new(*label, piece.opcode, piece.operand.clone())?);
        }
        let end = Label(self.next_new);
        let place = |number: usize| labels.get(number).copied().unwrap_or(end);
        for instruction in &mut to[base..] {
            for target in instruction.operand.targets_mut() {
                let number = code.target(*target)? as usize;
                reaches_end |= number == labels.len();
                *target = place(number);
            }
        }
        // Clauses of inserted code come before the method's clauses, because the code may be inside
        // the method's blocks.
        let protect = |protected: &ProtectedBlock| Clause {
            kind: ClauseKind::Catch(protected.exception),
            try_start: place(protected.start),
            try_end: place(protected.handler),
            start: place(protected.handler),
            end: place(protected.end),
            unused: 0,
        };
        self.clauses.splice(0..0, code.protected.iter().map(protect));
        if reaches_end {
            let label = self.new_label();
            to.push(Instruction { label, opcode: Opcode::Nop, operand: Operand::None });
        }
        Ok(())
    }
}
