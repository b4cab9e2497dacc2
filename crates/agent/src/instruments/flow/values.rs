//! Records arguments and results, in the hooks of functions that have a plan.

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use clrscope_recording::layout::{flow, value};
use clrscope_agent_base::boundary::guard;
use clrscope_agent_base::hooks::own;
use clrscope_agent_values::arch::ResultRegisters;
use clrscope_agent_values::arguments::{ArgumentRegisters, depth};
use clrscope_agent_values::kinds::{Kind, Task};
use clrscope_agent_values::memory::{At, Ground};
use clrscope_agent_values::plan::{ArgumentLocation, Plan, ResultPlan};
use clrscope_agent_values::plans::{plan_of, sample};
use clrscope_agent_values::evidence::RESULT;
use clrscope_agent_values::read::Writer;

use super::by_reference::{self, RecalledAddresses};
use super::results;
use super::ring::{MOST_VALUES, here};
use crate::instruments::calls;

/// The bit of a client identifier that says that the function has a plan.
const HAS_PLAN: usize = 1 << 31;
/// The bit that says that all values of the function are numbers in registers, which the assembly
/// stores by itself.
const IN_REGISTERS: usize = 1 << 63;
/// The lowest of three bits for pairs of general registers to be stored; four for vector registers
/// follow.
const PAIRS: u32 = 32;

/// The bits that tell a function's plan in the function's client identifier, which also holds the
/// index.
pub(super) fn client_bits(plan: &Plan) -> usize {
    let Some((general, vector)) = plan.registers else { return HAS_PLAN };
    let pairs = ((1_usize << general) - 1) | ((1_usize << vector) - 1) << 3;
    HAS_PLAN | IN_REGISTERS | pairs << PAIRS | usize::from(general + vector) << flow::REGISTERS
}

static TYPES_ONLY: AtomicBool = AtomicBool::new(false);

/// Sets how values are read. Called before any hook.
pub(super) fn configure(types_only: bool) {
    TYPES_ONLY.store(types_only, Ordering::Release);
}

/// Whether no values are wanted.
fn types_only() -> bool {
    TYPES_ONLY.load(Ordering::Relaxed)
}

pub(super) extern "C" fn enter(client: u32, sp: usize, registers: *const ArgumentRegisters) {
    let function = client & flow::FUNCTION;
    if let Some(completion) = plan_of(function).and_then(|plan| plan.completes) {
        if !types_only() {
            // SAFETY: the stub's own stack.
            guard(|| results::completed(completion, sp, unsafe { &*registers }));
        }
        if completion.is_silent {
            return;
        }
    }
    // Does nothing where `calls` does not run.
    calls::slow::enter(function, sp);
    // SAFETY: the stub's own stack.
    guard(|| entered(function, sp, unsafe { &*registers }));
}

pub(super) extern "C" fn leave(client: u32, sp: usize, registers: *const ResultRegisters) {
    let function = client & flow::FUNCTION;
    if is_silent(function) {
        return;
    }
    // Does nothing where `calls` does not run.
    calls::slow::leave(sp);
    // SAFETY: the stub's own stack.
    guard(|| left(function, sp, unsafe { &*registers }));
}

pub(super) extern "C" fn tailcall(client: u32, sp: usize, _registers: *const ResultRegisters) {
    if is_silent(client & flow::FUNCTION) {
        return;
    }
    // Does nothing where `calls` does not run.
    calls::slow::tailcall(sp);
    guard(|| super::slow::append(flow::TAILCALL | client & flow::FUNCTION, sp));
}

/// Whether only the arguments of a function are wanted, but no event.
fn is_silent(function: u32) -> bool {
    plan_of(function).and_then(|plan| plan.completes).is_some_and(|completion| completion.is_silent)
}

fn entered(function: u32, sp: usize, registers: &ArgumentRegisters) {
    let Some((ring, record)) = here() else { return };
    let plan = plan_of(function);
    let chunk = record.u64(own::FLOW_CHUNK).load(Ordering::Relaxed);
    ring.append_with(record, flow::ENTER | function, sp, MOST_VALUES, |buffer| {
        // SAFETY: the plan of the function that was just entered, with its registers.
        plan.map_or(0, |plan| unsafe { registers.write(plan, sp, buffer, types_only()) })
    });
    if chunk != record.u64(own::FLOW_CHUNK).load(Ordering::Relaxed) {
        // One in as many bytes as a chunk has.
        sample(function);
    }
    if let Some(plan) = plan.filter(|plan| plan.by_reference) {
        let mut addresses = [0; by_reference::MOST];
        for (address, place) in addresses.iter_mut().zip(looked_at_again(plan)) {
            *address = registers.word(place, sp);
        }
        by_reference::remember(function, sp, addresses);
    }
}

/// Whether finding the result needs `this`.
fn needs_this(plan: &Plan) -> bool {
    plan.awaited.is_some() || matches!(plan.returned, ResultPlan::Behind(..))
}

/// Places of the addresses whose targets are read when the call ends.
fn looked_at_again(plan: &Plan) -> impl Iterator<Item = ArgumentLocation> {
    let this = needs_this(plan).then_some(ArgumentLocation::General(0));
    this.into_iter().chain(plan.referenced().map(|argument| argument.location))
}

fn left(function: u32, sp: usize, registers: &ResultRegisters) {
    let Some((ring, record)) = here() else { return };
    let plan = plan_of(function);
    let again = plan.filter(|plan| plan.by_reference).and_then(|_| by_reference::recall(sp));
    ring.append_with(record, flow::LEAVE | function, sp, MOST_VALUES, |buffer| {
        let mut writer = Writer::new(buffer, types_only());
        if let Some(plan) = plan {
            take_results(&mut writer, plan, again, registers);
        }
        writer.used()
    });
}

/// Writes the results of a call; the registers are those of the function with this plan.
fn take_results(writer: &mut Writer<'_>, plan: &Plan, again: Option<RecalledAddresses>, registers: &ResultRegisters) {
    let of_result = usize::from(needs_this(plan));
    for (number, argument) in plan.referenced().enumerate() {
        take_again(writer, argument.kind, again, number + of_result, 0);
    }
    let half = |(number, is_vector): (u8, bool)| -> [u8; 8] {
        let mut low = registers.general(number).to_ne_bytes();
        if is_vector {
            low.copy_from_slice(&registers.vector(number)[..8]);
        }
        low
    };
    let mut both = [0; 16];
    let (from, kind) = match plan.returned {
        ResultPlan::Nothing => return,
        ResultPlan::Memory(kind) => {
            let at = At::somewhere(*registers.general(0) as usize, kind.size() as usize);
            return writer.value(kind, at, depth());
        }
        ResultPlan::Behind(offset, kind) => return take_again(writer, kind, again, 0, offset as usize),
        ResultPlan::Redacted => return writer.word(value::REDACTED),
        ResultPlan::Awaited => return take_state(writer, plan, again),
        ResultPlan::At(ArgumentLocation::Pair(first, second), kind) => {
            both[..8].copy_from_slice(&half(first));
            both[8..].copy_from_slice(&half(second));
            (both.as_ptr(), kind)
        }
        ResultPlan::At(ArgumentLocation::Vector(_), kind) => (registers.vector(0).as_ptr(), kind),
        ResultPlan::At(ArgumentLocation::General(_), kind) => (ptr::from_ref(registers.general(0)).cast(), kind),
        ResultPlan::At(..) => return writer.word(value::UNKNOWN),
    };
    // SAFETY: saved registers, or our copy of two.
    let at = unsafe { At::on(Ground::Held, from) };
    let is_proved = writer.proves(&plan.evidence, RESULT, kind, at);
    let ground = if is_proved { Ground::Alive } else { Ground::Held };
    // SAFETY: as above; objects were seen in this place, so the referenced object is alive.
    writer.value(kind, unsafe { At::on(ground, from) }, depth());
}

/// Writes that an `async` method continues later; if the method has ended, its result was noted.
fn take_state(writer: &mut Writer<'_>, plan: &Plan, again: Option<RecalledAddresses>) {
    match (plan.awaited, again) {
        _ if types_only() => writer.word(value::HIDDEN),
        (Some(awaited), Some(again)) if !again.is_complete && !again.has_moved => {
            writer.task_in_state(awaited, Task::WAITING, false);
        }
        _ => writer.word(value::UNKNOWN),
    }
}

/// Reads the target of an address argument again at the end of the call.
fn take_again(writer: &mut Writer<'_>, kind: Kind, again: Option<RecalledAddresses>, number: usize, offset: usize) {
    let mut copy = [0; by_reference::MOST_BYTES];
    let bytes = kind.size() as usize;
    let found = again.and_then(|again| again.value(number, offset, copy.get_mut(..bytes)?));
    match found {
        // SAFETY: our copy.
        Some(()) => writer.value(kind, unsafe { At::on(Ground::Held, copy.as_ptr()) }, depth()),
        None if types_only() => writer.word(value::HIDDEN),
        None => writer.word(value::UNKNOWN),
    }
}
