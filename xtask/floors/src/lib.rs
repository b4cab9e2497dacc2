//! The floors under what hooks and callbacks cost: they are there and do next to nothing.
//!
//! `CLRSCOPE_FLOOR=empty`: every function gets hooks, which return at once.
//! `CLRSCOPE_FLOOR=clocks`: each reads the time stamp counter and returns.
//! `CLRSCOPE_FLOOR=exceptions`: no hooks, but every callback about exceptions is asked for, and
//! returns at once. `CLRSCOPE_FLOOR=allocations`: as that, of the callback about each allocation.
//! `CLRSCOPE_FLOOR=safe`, `stacks`, `info`, `arguments`: what the framework's own kinds of hooks do
//! for an observer that does nothing: `CallHooks`, `CallStacks`, `InfoHooks`, and these asking for
//! the arguments at each enter. Anything else is refused, so that a bench cannot measure the wrong
//! thing.

use std::arch::naked_asm;
use std::ffi::c_void;
use std::sync::Arc;

use clr_profiler::{
    CallHooks, CallStacks, Callbacks, CallerSp, ClientId, Error, Events, FunctionId, FunctionMapper, HookedCall, Hooks,
    InfoHooks, Mapped, Profiler, ProfilerInfo, RawHooks, Result, Setup,
};

clr_profiler::export_profiler!(Floor, "{C15C0BE0-F100-4000-8000-000000000001}");

/// The profiler the runtime makes when it loads this library.
struct Floor;

impl Profiler for Floor {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let every: Arc<dyn FunctionMapper> =
            Arc::new(|function: FunctionId| ClientId::new(function.as_raw()).map_or(Mapped::Skip, Mapped::Hook));
        let hooks = match std::env::var("CLRSCOPE_FLOOR").as_deref() {
            Ok("empty") => Hooks::raw(RawHooks::empty(), every),
            Ok("clocks") => Hooks::raw(clocks(), every),
            Ok("safe") => Hooks::safe(Arc::new(Nothing), every),
            Ok("stacks") => return Ok((Self, Setup::default().with_call_stacks(CallStacks::new(info, ())?, every))),
            Ok("info") => Hooks::with_info(Arc::new(Nothing), every),
            Ok("arguments") => Hooks::with_info(Arc::new(Arguments), every),
            Ok("exceptions") => return Ok((Self, Setup::new(Events::EXCEPTIONS | Events::CLR_EXCEPTIONS))),
            Ok("allocations") => {
                return Ok((Self, Setup::new(Events::OBJECT_ALLOCATED | Events::ENABLE_OBJECT_ALLOCATED)));
            }
            _ => return Err(Error::refused("floors", "CLRSCOPE_FLOOR is none of those it knows")),
        };
        Ok((Self, Setup::default().with_hooks(hooks)))
    }
}

impl Callbacks for Floor {}

struct Nothing;

impl CallHooks for Nothing {
    fn enter(&self, _id: ClientId, _sp: CallerSp) {}
    fn leave(&self, _id: ClientId, _sp: CallerSp) {}
    fn tailcall(&self, _id: ClientId, _sp: CallerSp) {}
}

impl InfoHooks for Nothing {}

struct Arguments;

impl InfoHooks for Arguments {
    fn enter(&self, _id: ClientId, call: &HookedCall<'_>) {
        drop(std::hint::black_box(call.arguments()));
    }
}

fn clocks() -> RawHooks {
    let read = read_clock as *const c_void;
    // SAFETY: `read_clock` keeps all that the convention of enter, leave and tail call wants kept:
    // `rax` and `rdx`, which `rdtsc` overwrites, it puts back; `r10` and `r11` are free in all
    // three. Libraries of the framework stay mapped.
    unsafe { RawHooks::new(read, read, read) }
}

/// One bare clock read.
#[unsafe(naked)]
extern "C" fn read_clock() {
    naked_asm!("mov r10, rdx", "mov r11, rax", "rdtsc", "mov rax, r11", "mov rdx, r10", "ret")
}
