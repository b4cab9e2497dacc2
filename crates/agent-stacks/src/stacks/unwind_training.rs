//! Derives rules from the runtime's own walk of a stack, so that they lead to the same frames.

use clr_profiler::internals::{CurrentStack, NativeFrame, library_of};
use clr_profiler::{FunctionId, NameCache, ProfilerInfo, StackFrame};
use clrscope_agent_base::code_owner::{RunAddress, function_at};

use super::code_locations::{CodeLocation, code_around};
use super::unwind_rules::{CodeKind, MOST, Outcome, Trust, UnwindRule, UnwindRules, end_of_stack};

use crate::unwind::{FrameShape, FrameShapes};

/// The type whose methods the runtime throws with. It is managed code, but not in the stacks that
/// the runtime shows.
const THROWING: &str = "System.Runtime.EH::";
/// Most frames of the runtime that are visited.
const NATIVE_FRAMES: usize = 32;
/// Largest frame of a stub.
const STUB_BYTES: usize = 2 << 10;
/// Maximum size of a frame that took over another one, both together.
const TAKEN_OVER_BYTES: usize = 4 << 10;
/// A rule that led elsewhere this many times is no longer followed.
const FAILURES: u8 = 8;

/// A stack as the runtime walked it.
pub(super) struct RuntimeWalk<'a> {
    /// The frames, each with its location if the address alone determines it.
    pub(super) frames: &'a [(StackFrame, Option<CodeLocation>)],
    /// Whether the limit was reached before the end.
    pub(super) cut: bool,
}

/// What rules are trained with. The runtime is queried without holding the lock on the rules.
pub(super) struct Training<'a> {
    pub(super) info: &'a ProfilerInfo,
    pub(super) names: &'a NameCache,
    pub(super) shapes: &'a FrameShapes,
    pub(super) stack: CurrentStack,
    pub(super) frame: NativeFrame,
}

/// The result of a walk that also uses rules which are not confirmed.
pub(super) struct Trial {
    way: Vec<usize>,
    /// Address and stack pointer of each method.
    walked: Vec<(usize, usize)>,
    outcome: Outcome,
}

/// The runtime's next step after the last correct method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A method, with its address and, if the runtime gives it, its stack pointer.
    Method(usize, Option<usize>),
    Nothing,
    /// Unknown, as the runtime's walk was stopped before.
    Unknown,
}

/// Changes to the unwind rules that are still to be made.
#[derive(Default)]
pub(super) struct RuleUpdate {
    add: Vec<(usize, CodeKind)>,
    resize: Option<(usize, usize)>,
    confirm: Vec<usize>,
    doubt: Option<usize>,
    /// Addresses for which no rule finds the caller.
    odd: Vec<usize>,
    end: Option<u64>,
}

impl RuleUpdate {
    /// Makes the changes in `rules`.
    pub(super) fn apply(self, rules: &mut UnwindRules) {
        if rules.addresses.len() >= MOST || rules.ends.len() >= MOST {
            rules.clear();
        }
        for (address, kind) in self.add {
            rules.addresses.entry(address).or_insert_with(|| UnwindRule::new(kind));
        }
        for address in self.confirm {
            if let Some(rule) = rules.addresses.get_mut(&address) {
                rule.sure = true;
            }
        }
        if let Some(address) = self.doubt {
            doubt(rules, address);
        }
        for address in self.odd {
            rules.addresses.insert(address, UnwindRule::new(CodeKind::Odd));
        }
        if let Some((address, size)) = self.resize
            && let Some(UnwindRule { kind: CodeKind::Method { bytes, .. }, sure: false, .. }) =
                rules.addresses.get_mut(&address)
        {
            *bytes = size;
        }
        rules.ends.extend(self.end);
    }
}

/// A rule led elsewhere. A rule that was right before stays, because the runtime leaves out frames
/// whose block runs.
fn doubt(rules: &mut UnwindRules, address: usize) {
    let Some(rule) = rules.addresses.get_mut(&address).filter(|rule| !rule.sure) else { return };
    rule.failed += 1;
    match rule.kind {
        CodeKind::Method { .. } if rule.failed >= FAILURES => *rule = UnwindRule::new(CodeKind::Odd),
        // Guessed from one stack; the next stack may give a better rule.
        CodeKind::Stub(_) => drop(rules.addresses.remove(&address)),
        _ => {}
    }
}

impl Training<'_> {
    /// The rules that are missing in `known` to find the innermost method and its callers.
    pub(super) fn missing(&self, seen: &RuntimeWalk<'_>, known: impl Fn(usize) -> Option<CodeKind>) -> RuleUpdate {
        let mut lesson = RuleUpdate::default();
        for (frame, location) in seen.frames {
            if let Some(location) = location
                && known(frame.address).is_none()
            {
                lesson.add.push((frame.address, self.method(*frame, *location)));
            }
        }
        if let Some((first, _)) = seen.frames.first() {
            self.way_to(first.address, &known, &mut lesson);
        }
        lesson
    }

    /// The method with a call that returns to an address; `None` for an address outside of methods
    /// or that is not a return address.
    fn method_of_call(&self, return_address: usize) -> Option<FunctionId> {
        function_at(self.info, RunAddress::before_return(return_address)?).map(|(method, _)| method)
    }

    fn method(&self, frame: StackFrame, location: CodeLocation) -> CodeKind {
        let shape = || {
            let (_, rejit) = function_at(self.info, RunAddress::of_frame(&frame)?)?;
            let (_, pieces) = code_around(self.info, frame.function, rejit, frame.address - 1)?;
            self.shapes.at_return(self.info, (frame.function, frame.address), &pieces)
        };
        match shape() {
            Some(FrameShape { bytes, keeps_frame_pointer }) => {
                CodeKind::Method { bytes, keeps_frame_pointer, location }
            }
            None => CodeKind::Odd,
        }
    }

    /// The runtime's frames between us and the innermost method.
    fn way_to(&self, innermost: usize, known: &impl Fn(usize) -> Option<CodeKind>, lesson: &mut RuleUpdate) {
        let mut frame = self.frame.address();
        let mut before = None;
        for _ in 0..NATIVE_FRAMES {
            let address = frame.checked_add(8).and_then(|at| self.stack.word(at));
            let Some(address) = address.filter(|&address| address != 0) else { break };
            if address == innermost || matches!(known(address), Some(CodeKind::Stub(_) | CodeKind::Odd)) {
                return;
            }
            let runtime = known(address) == Some(CodeKind::Runtime) || self.is_runtime(address);
            if !runtime {
                break;
            }
            lesson.add.push((address, CodeKind::Runtime));
            before = Some((address, frame));
            match self.stack.word(frame) {
                Some(up) if up > frame => frame = up,
                _ => break,
            }
        }
        // The last of the runtime's frames belongs to a stub, whose own frame the chain skips.
        if let Some((address, frame)) = before
            && let Some(bytes) =
                (16..STUB_BYTES).step_by(8).find(|bytes| self.stack.word(frame + 8 + bytes) == Some(innermost))
        {
            lesson.add.retain(|(known, _)| *known != address);
            lesson.add.push((address, CodeKind::Stub(bytes)));
        }
    }

    /// Whether the code at `address` is not the program's.
    fn is_runtime(&self, address: usize) -> bool {
        self.method_of_call(address).is_none_or(|method| self.is_throwing(method))
    }

    fn is_throwing(&self, function: FunctionId) -> bool {
        self.names.function(self.info, function).name.starts_with(THROWING)
    }

    /// Walks with all rules, confirmed or not.
    pub(super) fn trial(&self, seen: &RuntimeWalk<'_>, rules: &UnwindRules) -> Trial {
        let (mut way, mut walked) = (Vec::new(), Vec::new());
        let outcome = rules.walk(
            self.stack,
            self.frame,
            seen.frames.len(),
            Trust::All,
            |address| way.push(address),
            |address, sp, _| walked.push((address, sp)),
        );
        Trial { way, walked, outcome }
    }

    /// Compares the walk with the runtime's walk. Rules that led to the same frames are trusted
    /// from now on. `is_end` says whether a position is a known end of a stack.
    pub(super) fn compare(&self, seen: &RuntimeWalk<'_>, trial: &Trial, is_end: impl Fn(u64) -> bool) -> RuleUpdate {
        let mut lesson = RuleUpdate::default();
        if let (Some(&(address, sp)), Some((first, _))) = (trial.walked.first(), seen.frames.first())
            && address == first.address
            && !is_at(first, sp)
        {
            // A fault: the word with the address is in the runtime's copy of the registers, not
            // pushed by a call. Its distance from the method's frame is arbitrary.
            lesson.odd.extend(trial.way.last().filter(|last| **last != address));
            return lesson;
        }
        let pairs = trial.walked.iter().zip(seen.frames);
        let same = pairs.take_while(|((address, sp), (seen, _))| *address == seen.address && is_at(seen, *sp)).count();
        // Walked correctly, to a place that the address does not determine.
        let untold = seen.frames[..same].iter().filter(|(_, location)| location.is_none());
        lesson.odd.extend(untold.map(|(frame, _)| frame.address));
        // A single method may be a coincidence.
        if same >= 2 {
            lesson.confirm.extend(&trial.way);
        }
        let Some((last, sure)) = trial.walked[..same].split_last() else {
            lesson.doubt = trial.way.last().copied();
            return lesson;
        };
        lesson.confirm.extend(sure.iter().map(|(address, _)| *address));
        let (last, last_sp) = *last;
        let next = match seen.frames.get(same) {
            Some((frame, _)) => Next::Method(frame.address, frame.stack_pointer),
            None if seen.cut => Next::Unknown,
            None => Next::Nothing,
        };
        match trial.outcome {
            _ if same < trial.walked.len() => lesson.doubt = Some(last),
            Outcome::Whole if next == Next::Nothing => lesson.confirm.push(last),
            Outcome::Lost(Some((address, sp))) => {
                let function = seen.frames[same - 1].0.function;
                self.beyond((last, last_sp, function), (address, sp), next, trial, is_end, &mut lesson);
            }
            Outcome::Lost(None) => lesson.doubt = Some(last),
            _ => {}
        }
        lesson
    }

    /// The walk ended after the method `last`, at an address outside of known methods.
    fn beyond(
        &self,
        (last, last_sp, function): (usize, usize, FunctionId),
        (address, sp): (usize, usize),
        next: Next,
        trial: &Trial,
        is_end: impl Fn(u64) -> bool,
        lesson: &mut RuleUpdate,
    ) {
        if matches!(next, Next::Method(next, next_sp) if next == address && next_sp.is_none_or(|next_sp| next_sp == sp))
        {
            lesson.confirm.push(last);
            return;
        }
        let owner = self.method_of_call(address);
        if owner.is_some_and(|owner| owner != function) {
            // In the program's code, but not where the runtime went on: in a block, or an IL stub.
            lesson.add.push((address, CodeKind::Odd));
        } else if owner.is_none() && library_of(address).is_some() {
            // Called by native code. If no code of the program is beyond, this is the end.
            lesson.end = end_of_stack(&mut { self.stack }, address, sp).filter(|_| next == Next::Nothing);
            lesson.confirm.extend(lesson.end.map(|_| last));
        } else {
            let end = self.end_of_larger(trial, sp, next, is_end);
            lesson.resize = end.map(|end| (last, end - last_sp));
            lesson.doubt = Some(last);
        }
    }

    /// The end of the last method's frame if the frame is larger than its prolog says, as for code
    /// that took over a running frame of the same method (OSR). `sp` is the end according to the
    /// prolog.
    fn end_of_larger(&self, trial: &Trial, sp: usize, next: Next, is_end: impl Fn(u64) -> bool) -> Option<usize> {
        let library = trial.way.first().and_then(|address| library_of(*address));
        let leads_on = |sp: usize| match (next, self.stack.word(sp - 8)) {
            (Next::Method(next, next_sp), Some(address)) => {
                address == next && next_sp.is_none_or(|next_sp| next_sp == sp)
            }
            (Next::Nothing, Some(address)) => {
                let end = end_of_stack(&mut { self.stack }, address, sp);
                end.is_some_and(|end| is_end(end) || (library.is_some() && library_of(address) == library))
            }
            _ => false,
        };
        (16..TAKEN_OVER_BYTES).step_by(16).map(|more| sp + more).find(|&sp| leads_on(sp))
    }
}

/// Whether the runtime found a frame with this stack pointer, if it gives stack pointers.
fn is_at(frame: &StackFrame, sp: usize) -> bool {
    frame.stack_pointer.is_none_or(|seen| seen == sp)
}
