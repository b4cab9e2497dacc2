//! A method's counters, and the code that adds to them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use clr_profiler::il::{Body, Code, Edits, Label, Opcode};
use clrscope_coverage::{CounterPlace, CounterPlan};
use clrscope_recording::writer::MethodCounters;

/// A method with counters: the counters, and their places in the method's code.
pub(super) struct InstrumentedMethod {
    /// Places in the method's own code, by the counter's number.
    places: Box<[CounterPlace]>,
    /// Whether the method has values on the stack at each place.
    has_values: Box<[bool]>,
    counters: MethodCounters,
    counts_hits: bool,
    /// Whether the method is never inlined; known once its body was first written.
    is_alone: OnceLock<bool>,
    is_compiled: AtomicBool,
    /// Number of counters that the method's body leaves out.
    left_out: AtomicUsize,
}

impl InstrumentedMethod {
    pub(super) fn new(plan: CounterPlan, counters: MethodCounters, counts_hits: bool) -> Self {
        Self {
            places: plan.places.into(),
            has_values: plan.has_values.into(),
            counters,
            counts_hits,
            is_alone: OnceLock::new(),
            is_compiled: AtomicBool::new(false),
            left_out: AtomicUsize::new(0),
        }
    }

    /// The edits that the method needs now. `body` is its original body.
    pub(super) fn edits(&self, body: &Body) -> Edits {
        if !self.counts_hits {
            self.is_alone.get_or_init(|| is_compiled_alone(body));
        }
        let mut edits = Edits::new();
        for (number, place) in self.places.iter().enumerate() {
            let code = self.counter_code(number);
            match *place {
                CounterPlace::Before(offset) => edits.before(Label::at(offset), code),
                CounterPlace::Way { branch, path: 0 } => edits.after(Label::at(branch), code),
                CounterPlace::Way { branch, path } => edits.on_target(Label::at(branch), path as usize - 1, code),
            }
        }
        edits
    }

    /// Code for a counter. Where hits are not counted, the code of a counter that has fired is
    /// replaced by code of the same length that does nothing, so that all bodies of a method have
    /// the same instruction offsets. Small methods keep the counter's code: the compiler may inline
    /// them, and decides that by their instructions, `nop`s included.
    fn counter_code(&self, number: usize) -> Code {
        let address = self.counters.address(number);
        let has_values = self.has_values.get(number).is_some_and(|has_values| *has_values);
        let code = match (self.counts_hits, has_values) {
            (true, false) => return Code::add_one(address),
            (true, true) => return add_one_with_a_note(address),
            (false, false) => set_one_without_a_note(address),
            (false, true) => Code::set_one(address),
        };
        if self.is_alone() && self.counters.has_fired(number) { code.blanked() } else { code }
    }

    fn is_alone(&self) -> bool {
        self.is_alone.get().is_some_and(|is_alone| *is_alone)
    }

    /// Whether the method is compiled for the first time.
    pub(super) fn is_compiled_first(&self) -> bool {
        !self.is_compiled.swap(true, Ordering::Relaxed)
    }

    /// Whether the method's body could leave out more counters than it does.
    pub(super) fn can_leave_out_more(&self) -> bool {
        if self.counts_hits || !self.is_alone() || self.left_out.load(Ordering::Relaxed) == self.counters.len() {
            return false;
        }
        let fired = (0..self.counters.len()).filter(|number| self.counters.has_fired(*number)).count();
        self.left_out.swap(fired, Ordering::Relaxed) < fired
    }

    /// Withdraws the method's record.
    pub(super) fn withdraw(&self) {
        self.counters.withdraw();
    }
}

/// Adds one to a counter where the method has values on the stack.
///
/// The optimising compiler maps an IL offset to native code where the stack is empty, and behind
/// calls; stack traces find lines by this mapping. The first statement that the compiler makes
/// after such an offset takes the mapping entry. Where the stack is empty, the instruction behind
/// the counter has an entry of its own, so an entry for the counter would be an extra one. A `dup`
/// of a constant is a statement that takes the entry and is then dropped, so [`Code::add_one`]
/// leaves none. Behind a call, with values on the stack, the next instruction has no entry of its
/// own, so the counter must keep the one that it takes.
fn add_one_with_a_note(address: u64) -> Code {
    let number = Code::new().address(address).address(address).plain(Opcode::LdindI8);
    number.plain(Opcode::LdcI4_1).plain(Opcode::ConvI8).plain(Opcode::Add).plain(Opcode::StindI8)
}

/// Sets a byte where the stack is empty, see [`add_one_with_a_note`].
fn set_one_without_a_note(address: u64) -> Code {
    let twice = Code::new().address(address).plain(Opcode::Dup);
    twice.plain(Opcode::LdcI4_1).plain(Opcode::StindI1).plain(Opcode::Pop)
}

/// Bytes of code of the longest method that the compiler may inline, by its own limits.
const LONGEST_INLINED: u32 = 128;

/// Whether the compiler never inlines a method: it is long, or has a loop.
fn is_compiled_alone(body: &Body) -> bool {
    let instructions = body.instructions();
    let end = instructions.last().and_then(|last| last.label().offset()).unwrap_or(0);
    let loops = instructions.iter().any(|instruction| {
        instruction.operand().targets().iter().any(|target| *target <= instruction.label())
    });
    loops || end >= LONGEST_INLINED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_with_loops_and_long_ones_are_compiled_alone() {
        let tiny = |code: &[u8]| Body::read(&[&[(code.len() as u8) << 2 | 2], code].concat()).expect("a body");
        // 0: ldarg.0, 1: brtrue.s 3, 3: ret
        assert!(!is_compiled_alone(&tiny(&[0x02, 0x2d, 0x00, 0x2a])));
        // 0: ldarg.0, 1: brtrue.s 0, 3: ret
        assert!(is_compiled_alone(&tiny(&[0x02, 0x2d, 0xfd, 0x2a])));
        let mut long = vec![0x03, 0x30, 8, 0, 200, 0, 0, 0, 0, 0, 0, 0];
        long.resize(12 + 199, 0);
        long.push(0x2a);
        assert!(is_compiled_alone(&Body::read(&long).expect("a body")));
    }
}
