//! Reads the arguments of a call when it begins, from the registers and the stack.

use std::sync::atomic::{AtomicU32, Ordering};

use clrscope_recording::layout::value;

pub use super::arch::ArgumentRegisters;

use super::evidence::{Evidence, Verdict, judge};
use super::kinds::Kind;
use super::memory::{At, Ground, MemoryReader};
use super::plan::{Argument, ArgumentLocation, Passing, Plan};
use super::read::Writer;

/// The depth to which objects are opened.
static DEPTH: AtomicU32 = AtomicU32::new(1);

/// How many levels deep objects are opened. For hooks.
#[inline]
pub fn depth() -> u32 {
    DEPTH.load(Ordering::Relaxed)
}

/// Sets how many levels deep objects are opened. Call it before any hook.
pub fn open_objects(depth: u32) {
    DEPTH.store(depth, Ordering::Release);
}

impl ArgumentRegisters {
    /// Writes the arguments of a function that was just entered, until the buffer is full. Returns
    /// the number of bytes.
    ///
    /// # Safety
    /// The registers must be those of a call of the plan's function, and `sp` the caller's stack
    /// pointer.
    pub unsafe fn write(&self, plan: &Plan, sp: usize, buffer: &mut [u8], types_only: bool) -> usize {
        if !plan.evidence.is_refuted() {
            let mut writer = Writer::new(buffer, types_only);
            let mut all = plan.arguments.iter().enumerate().filter(|(_, argument)| argument.passing != Passing::Out);
            let is_right = all.all(|(number, argument)| {
                let mut both = [0; 16];
                let slot = self.slot(argument.location, argument.slot_bytes(), sp, &mut both);
                // SAFETY: guaranteed by the caller; the slot is this argument's.
                match unsafe { found(argument, number, slot, &plan.evidence, &mut writer) } {
                    Ok(at) => writer.value(argument.kind, at, depth()),
                    Err(Missing::Nothing(tag)) => writer.word(tag),
                    Err(Missing::Wrong) => return false,
                }
                true
            });
            if is_right {
                if writer.memory.was_refused() {
                    plan.evidence.leave_unread();
                }
                return writer.used();
            }
            plan.evidence.refute();
        }
        plan.evidence.leave_unread();
        let mut writer = Writer::new(buffer, types_only);
        plan.arguments.iter().filter(|argument| argument.passing != Passing::Out).for_each(|_| {
            writer.word(value::UNKNOWN);
        });
        writer.used()
    }

    fn half(&self, (number, is_vector): (u8, bool)) -> [u8; 8] {
        let from = if is_vector { self.vector(number).as_ptr() } else { self.general(number).cast() };
        // SAFETY: eight bytes of a saved register.
        unsafe { from.cast::<[u8; 8]>().read_unaligned() }
    }

    /// Address of the value at a location. A value in two registers is put together in `both`.
    pub fn slot(&self, location: ArgumentLocation, bytes: usize, sp: usize, both: &mut [u8; 16]) -> Option<At> {
        let held = |address: *const u8| {
            // SAFETY: a saved register, or our copy of two.
            Some(unsafe { At::on(Ground::Held, address) })
        };
        match location {
            ArgumentLocation::Unknown => None,
            ArgumentLocation::Stack(offset) => Some(At::somewhere(sp + offset as usize, bytes)),
            ArgumentLocation::General(number) => held(self.general(number).cast()),
            ArgumentLocation::Vector(number) => held(self.vector(number).as_ptr()),
            ArgumentLocation::Behind(number, offset) => {
                let object = self.word(ArgumentLocation::General(number), sp);
                (object != 0).then(|| At::somewhere(object.wrapping_add(offset as usize), bytes))
            }
            ArgumentLocation::Pair(first, second) => {
                both[..8].copy_from_slice(&self.half(first));
                both[8..].copy_from_slice(&self.half(second));
                held(both.as_ptr())
            }
        }
    }

    /// The word at a location; 0 if it can't be read.
    pub fn word(&self, location: ArgumentLocation, sp: usize) -> usize {
        match location {
            // SAFETY: a saved register.
            ArgumentLocation::General(number) => unsafe { self.general(number).read() as usize },
            ArgumentLocation::Stack(offset) => {
                MemoryReader::new().word(At::somewhere(sp + offset as usize, 8)).unwrap_or(0)
            }
            _ => 0,
        }
    }
}

/// The reason why no value can be read.
enum Missing {
    /// This value code is written instead of the value.
    Nothing(u8),
    /// The plan is wrong.
    Wrong,
}

/// Address of an argument's value, with its ground.
///
/// # Safety
/// The slot must be that of the argument with this number, in a function that was just entered.
unsafe fn found(
    argument: &Argument,
    number: usize,
    slot: Option<At>,
    evidence: &Evidence,
    writer: &mut Writer<'_>,
) -> Result<At, Missing> {
    if matches!(argument.kind, Kind::Redacted) {
        return Err(Missing::Nothing(value::REDACTED));
    }
    let slot = slot.ok_or(Missing::Nothing(value::UNKNOWN))?;
    if argument.passing != Passing::Value {
        return match writer.memory.word(slot) {
            Some(0) => Err(Missing::Nothing(value::NULL)),
            Some(target) => Ok(At::somewhere(target, argument.kind.size() as usize)),
            None => Err(Missing::Nothing(value::UNKNOWN)),
        };
    }
    if !evidence.holds(number) {
        match judge(&mut writer.memory, argument.kind, slot) {
            Verdict::Right => evidence.found(number),
            Verdict::Wrong if argument.is_reference_in_place() => return Err(Missing::Wrong),
            Verdict::Open | Verdict::Wrong => return Ok(slot),
        }
    }
    // SAFETY: an object was seen at this location before, so the plan is right: the runtime keeps
    // the object there alive.
    Ok(unsafe { At::on(Ground::Alive, std::ptr::with_exposed_provenance(slot.address())) })
}
