//! The floors under what hooks and callbacks cost: they are there and do next to nothing.
//!
//! `CLRSCOPE_FLOOR=empty`: every function gets hooks, which return at once. `CLRSCOPE_FLOOR=clocks`: each reads the
//! time stamp counter and returns. `CLRSCOPE_FLOOR=exceptions`: no hooks, but every callback about exceptions is asked
//! for, and returns at once. Anything else is refused, so that a bench cannot measure the wrong thing.

use std::arch::naked_asm;
use std::ffi::c_void;
use std::sync::Arc;

use clr_profiler::{
    ClientId, Error, Events, FunctionId, Hooks, Mapped, Profiler, ProfilerInfo, RawHooks, Result, Setup,
};

clr_profiler::export_profiler!(Floor, "{C15C0BE0-F100-4000-8000-000000000001}");

/// The profiler the runtime makes when it loads this library.
#[derive(Default)]
struct Floor;

impl Profiler for Floor {
    fn initialize(&self, _info: &ProfilerInfo) -> Result<Setup> {
        let hooks = match std::env::var("CLRSCOPE_FLOOR").as_deref() {
            Ok("empty") => RawHooks::empty(),
            Ok("clocks") => clocks(),
            Ok("exceptions") => return Ok(Setup::new(Events::EXCEPTIONS | Events::CLR_EXCEPTIONS)),
            _ => return Err(Error::refused("floors", "CLRSCOPE_FLOOR is none of 'empty', 'clocks', 'exceptions'")),
        };
        let mapper = |function: FunctionId| ClientId::new(function.0).map_or(Mapped::Skip, Mapped::Hook);
        Ok(Setup::new(Events::NONE).with_hooks(Hooks::raw(hooks, Arc::new(mapper))))
    }
}

fn clocks() -> RawHooks {
    let read = read_clock as *const c_void;
    // SAFETY: `read_clock` keeps all that the convention of enter, leave and tail call wants kept: `rax` and `rdx`,
    // which `rdtsc` overwrites, it puts back; `r10` and `r11` are free in all three. Libraries of the framework stay
    // mapped.
    unsafe { RawHooks::new(read, read, read) }
}

/// One bare clock read.
#[unsafe(naked)]
extern "C" fn read_clock() {
    naked_asm!("mov r10, rdx", "mov r11, rax", "rdtsc", "mov rax, r11", "mov rdx, r10", "ret")
}
