//! The arguments of a call that begins, from the registers and the stack.

use std::sync::atomic::{AtomicU32, Ordering};

use clrscope_recording::layout::value;

use super::kinds::Kind;
use super::plan::{Argument, Passing, Place, Plan};
use super::read::Writer;

/// Objects are opened this deep.
static DEPTH: AtomicU32 = AtomicU32::new(1);

/// How deep objects are opened. For hooks.
pub(crate) fn depth() -> u32 {
    DEPTH.load(Ordering::Relaxed)
}

/// Sets how deep objects are opened. Called before any hook.
pub(crate) fn open_objects(depth: u32) {
    DEPTH.store(depth, Ordering::Release);
}

/// The registers at enter, as the stub saves them.
#[repr(C)]
pub(crate) struct Entered {
    vectors: [[u8; 16]; 8],
    _padding: u64,
    r9: u64,
    r8: u64,
    rdi: u64,
    rsi: u64,
    rdx: u64,
    rcx: u64,
}

impl Entered {
    /// Writes the arguments of a function that was just entered, as far as there is room; how many bytes.
    ///
    /// # Safety
    /// The plan must be that of the function whose registers these are, `sp` its caller's stack pointer.
    pub(crate) unsafe fn write(&self, plan: &Plan, sp: usize, buffer: &mut [u8], types_only: bool) -> usize {
        let mut writer = Writer::new(buffer, types_only);
        for argument in plan.arguments.iter().filter(|argument| argument.passing != Passing::Out) {
            // SAFETY: the caller's promise.
            unsafe { take_argument(&mut writer, argument, sp, self) };
        }
        writer.used()
    }

    fn general(&self, number: u8) -> *const u64 {
        match number {
            0 => &raw const self.rdi,
            1 => &raw const self.rsi,
            2 => &raw const self.rdx,
            3 => &raw const self.rcx,
            4 => &raw const self.r8,
            _ => &raw const self.r9,
        }
    }

    fn half(&self, (number, is_vector): (u8, bool)) -> [u8; 8] {
        let from = if is_vector { self.vectors[usize::from(number)].as_ptr() } else { self.general(number).cast() };
        // SAFETY: eight bytes of a saved register.
        unsafe { from.cast::<[u8; 8]>().read_unaligned() }
    }

    /// Where the value in a place lies; one in two registers is put together in `both`.
    pub(crate) fn address(&self, place: Place, sp: usize, both: &mut [u8; 16]) -> Option<*const u8> {
        Some(match place {
            Place::Unknown => return None,
            Place::Stack(offset) => std::ptr::with_exposed_provenance(sp + offset as usize),
            Place::General(number) => self.general(number).cast::<u8>(),
            Place::Vector(number) => self.vectors[usize::from(number)].as_ptr(),
            Place::Behind(number, offset) => {
                // SAFETY: a saved register; what it points to is `this` of the function.
                let object = unsafe { self.general(number).cast::<*const u8>().read() };
                object.wrapping_add(offset as usize)
            }
            Place::Pair(first, second) => {
                both[..8].copy_from_slice(&self.half(first));
                both[8..].copy_from_slice(&self.half(second));
                both.as_ptr()
            }
        })
    }

    /// The word at a place.
    pub(crate) fn word(&self, place: Place, sp: usize) -> usize {
        match place {
            // SAFETY: a saved register, or an argument on the stack of the call that was just entered.
            Place::General(number) => unsafe { self.general(number).read() as usize },
            // SAFETY: as above.
            Place::Stack(offset) => unsafe {
                std::ptr::with_exposed_provenance::<usize>(sp + offset as usize).read_unaligned()
            },
            _ => 0,
        }
    }
}

/// # Safety
/// The argument must belong to the function whose registers these are.
unsafe fn take_argument(writer: &mut Writer<'_>, argument: &Argument, sp: usize, registers: &Entered) {
    let mut both = [0; 16];
    let Some(at) = registers.address(argument.place, sp, &mut both) else { return writer.word(value::UNKNOWN) };
    // SAFETY: the value, or its address, lies there.
    unsafe {
        if argument.passing == Passing::Value || matches!(argument.kind, Kind::Redacted) {
            return writer.value(argument.kind, at, depth());
        }
        let target = at.cast::<*const u8>().read_unaligned();
        if target.is_null() {
            writer.word(value::NULL);
        } else {
            writer.value(argument.kind, target, depth());
        }
    }
}
