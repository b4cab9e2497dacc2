//! Comparison of plans with the runtime's own information on a call: the locations of each argument
//! and the result.
//!
//! Only slow hooks may ask for this information, and registering them makes all hooks of the
//! process slow, with three hundred bytes of stack each. So this is for tests: `flow:args=check`
//! records no calls. It records the number of compared functions, and the functions for which the
//! results differ.

use std::sync::atomic::{AtomicU64, Ordering};

use clr_profiler::{ClientId, HookedCall, InfoHooks};
use clrscope_recording::layout::flow;
use clrscope_recording::model::RemarkKind;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use super::arch::StubRegisters;
use super::plan::{ArgumentLocation, Plan, ResultPlan};
use super::plans::{pattern_of, plan_of};

/// Most functions that are named.
const NAMED: u64 = 20;
/// Most functions that are compared.
const FUNCTIONS: usize = 1 << 20;

/// The functions seen so far, one bit each.
struct Met(Box<[AtomicU64]>);

impl Met {
    fn new() -> Self {
        Self((0..FUNCTIONS / 64).map(|_| AtomicU64::new(0)).collect())
    }

    /// Whether a function is seen for the first time.
    fn is_first(&self, function: u32) -> bool {
        let bit = 1 << (function % 64);
        let word = self.0.get(function as usize / 64);
        word.is_some_and(|word| word.fetch_or(bit, Ordering::Relaxed) & bit == 0)
    }
}

/// The comparison, done once for each function's arguments and once for its result.
pub struct Check {
    writer: &'static ProcessWriter,
    entered: Met,
    left: Met,
    functions: AtomicU64,
    results: AtomicU64,
    /// Locations that are unknown according to the plan.
    unknown: AtomicU64,
    wrong: AtomicU64,
}

impl Check {
    /// Creates a comparison without any functions.
    pub fn new(writer: &'static ProcessWriter) -> Self {
        let (functions, results, unknown, wrong) = Default::default();
        Self { writer, entered: Met::new(), left: Met::new(), functions, results, unknown, wrong }
    }

    /// Records how many functions were compared, and which of them differ.
    pub fn report(&self) {
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let text = format!(
            "flow:args=check: {} functions and {} results compared with the runtime, {} places unknown, {} wrong",
            count(&self.functions),
            count(&self.results),
            count(&self.unknown),
            count(&self.wrong),
        );
        self.writer.remark(monotonic_ns(), RemarkKind::Note, &text);
    }

    fn disagree(&self, function: u32, what: &str) {
        if self.wrong.fetch_add(1, Ordering::Relaxed) < NAMED {
            let text = format!("flow:args=check: {}: {what}", pattern_of(function));
            self.writer.remark(monotonic_ns(), RemarkKind::Note, &text);
        }
    }

    fn compare_arguments(&self, function: u32, plan: &Plan, call: &HookedCall<'_>) {
        let (Some(registers), Ok(ranges)) = (registers(call), call.arguments()) else { return };
        self.functions.fetch_add(1, Ordering::Relaxed);
        if ranges.len() != plan.arguments.len() {
            let text = format!("the runtime has {} arguments, the plan {}", ranges.len(), plan.arguments.len());
            return self.disagree(function, &text);
        }
        for (number, (range, argument)) in ranges.iter().zip(&plan.arguments).enumerate() {
            match is_at(registers, argument.location, argument.slot_bytes(), range) {
                None => _ = self.unknown.fetch_add(1, Ordering::Relaxed),
                Some(true) => {}
                Some(false) => {
                    self.disagree(function, &format!("argument {number} is not in {:?}", argument.location));
                }
            }
        }
    }

    fn compare_result(&self, function: u32, plan: &Plan, call: &HookedCall<'_>) {
        let (Some(registers), Ok(range)) = (registers(call), call.result()) else { return };
        let is_right = match plan.returned {
            ResultPlan::Nothing => range.is_empty(),
            ResultPlan::Behind(..) | ResultPlan::Redacted | ResultPlan::Awaited => return,
            ResultPlan::Memory(_) => range.as_ptr().addr() as u64 == registers.rax,
            ResultPlan::At(ArgumentLocation::Unknown, _) => {
                self.unknown.fetch_add(1, Ordering::Relaxed);
                return;
            }
            ResultPlan::At(location, kind) => is_result_at(registers, location, kind.size() as usize, range),
        };
        self.results.fetch_add(1, Ordering::Relaxed);
        if !is_right {
            self.disagree(function, &format!("the result is not in {:?}", plan.returned));
        }
    }
}

/// The plan of a function, unless the code is shown as another method.
fn plan_to_compare(id: ClientId) -> Option<(u32, &'static Plan)> {
    let function = id.get() as u32 & flow::FUNCTION;
    plan_of(function).filter(|plan| !plan.is_of_machine).map(|plan| (function, plan))
}

impl InfoHooks for Check {
    fn enter(&self, id: ClientId, call: &HookedCall<'_>) {
        if let Some((function, plan)) = plan_to_compare(id).filter(|(function, _)| self.entered.is_first(*function)) {
            self.compare_arguments(function, plan, call);
        }
    }

    fn leave(&self, id: ClientId, call: &HookedCall<'_>) {
        if let Some((function, plan)) = plan_to_compare(id).filter(|(function, _)| self.left.is_first(*function)) {
            self.compare_result(function, plan, call);
        }
    }
}

/// The registers of a call, if the runtime's handle leads to them.
fn registers<'h>(call: &HookedCall<'h>) -> Option<&'h StubRegisters> {
    let handle = std::ptr::with_exposed_provenance::<*const StubRegisters>(call.handle());
    // SAFETY: the handle is the address of a structure that begins with the address of the
    // registers, as in the runtime's sources of 8 to 10, both on the stack while the hook runs.
    unsafe { handle.read().as_ref() }
}

/// Whether the range is at that location; `None` if the location is unknown according to the plan.
fn is_at(registers: &StubRegisters, location: ArgumentLocation, bytes: usize, range: &[u8]) -> Option<bool> {
    let start = range.as_ptr().addr();
    let register = |words: &[u64], at: u8| {
        words.get(usize::from(at)).is_some_and(|word| {
            // A structure in one register may have been copied.
            start == std::ptr::from_ref(word).addr() || begins_with(range, &word.to_ne_bytes(), bytes)
        })
    };
    Some(match location {
        ArgumentLocation::Unknown => return None,
        ArgumentLocation::General(at) => register(&registers.general, at),
        ArgumentLocation::Vector(at) => register(&registers.vectors, at),
        ArgumentLocation::Stack(offset) => start == registers.stack_pointer + offset as usize,
        ArgumentLocation::Pair(first, second) => {
            let half = |(at, is_vector): (u8, bool)| {
                let words: &[u64] = if is_vector { &registers.vectors } else { &registers.general };
                words.get(usize::from(at)).copied().unwrap_or(0).to_ne_bytes()
            };
            begins_with(range, &[half(first), half(second)].concat(), bytes)
        }
        ArgumentLocation::Behind(..) => false,
    })
}

/// The equivalent of [`is_at`] for results: the first two registers of each kind hold them.
fn is_result_at(registers: &StubRegisters, location: ArgumentLocation, bytes: usize, range: &[u8]) -> bool {
    let start = range.as_ptr().addr();
    let general = [&registers.rax, registers.rdx()];
    let word = |(at, is_vector): (u8, bool)| {
        let at = usize::from(at).min(1);
        if is_vector { &registers.vectors[at] } else { general[at] }
    };
    let one =
        |half| start == std::ptr::from_ref(word(half)).addr() || begins_with(range, &word(half).to_ne_bytes(), bytes);
    match location {
        ArgumentLocation::General(at) => one((at, false)),
        ArgumentLocation::Vector(at) => one((at, true)),
        ArgumentLocation::Pair(a, b) => {
            begins_with(range, &[word(a).to_ne_bytes(), word(b).to_ne_bytes()].concat(), bytes)
        }
        ArgumentLocation::Stack(_) | ArgumentLocation::Behind(..) | ArgumentLocation::Unknown => false,
    }
}

/// Whether a copy holds the first `bytes` bytes of `truth`.
fn begins_with(range: &[u8], truth: &[u8], bytes: usize) -> bool {
    truth.get(..bytes).is_some_and(|truth| range.get(..bytes) == Some(truth))
}
