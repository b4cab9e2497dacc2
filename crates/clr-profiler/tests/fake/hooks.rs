//! Hooks of each kind, called as compiled code calls them.

use std::sync::{Arc, Mutex};

use clr_profiler::{CallHooks, CallerSp, ClientId, FunctionId, HResult, Hooks, Mapped, Setup};
use clr_profiler_fake::Event::*;
use clr_profiler_fake::on;

use super::{Wants, shop};

/// Enter, leave and tail call with the caller's stack pointer.
#[derive(Default, Clone)]
pub(super) struct HookCalls(Arc<Mutex<Vec<(char, usize, usize)>>>);

impl HookCalls {
    fn note(&self, what: char, id: ClientId, sp: CallerSp) {
        self.0.lock().unwrap().push((what, id.get(), sp.address()));
    }
}

impl CallHooks for HookCalls {
    fn enter(&self, id: ClientId, sp: CallerSp) {
        self.note('+', id, sp);
    }
    fn leave(&self, id: ClientId, sp: CallerSp) {
        self.note('-', id, sp);
    }
    fn tailcall(&self, id: ClientId, sp: CallerSp) {
        self.note('>', id, sp);
    }
}

/// Hooks every function, by its own identifier.
pub(super) fn hooked(seen: HookCalls) -> Setup {
    let mapper = |function: FunctionId| ClientId::new(function.as_raw()).map_or(Mapped::Skip, Mapped::Hook);
    Setup::default().with_hooks(Hooks::safe(Arc::new(seen), Arc::new(mapper)))
}

#[test]
fn hooks_are_called_as_compiled_code_calls_them_each_profilers_own() {
    let runtime = shop();
    let (main, pay) = (runtime.function("Shop.Program::Main"), runtime.function("Shop.Checkout::Pay"));
    let (ours, others) = (HookCalls::default(), HookCalls::default());
    let _other = shop().load_with(Wants::setup(hooked(others.clone()))).unwrap();
    let mut program = runtime.load_with(Wants::setup(hooked(ours.clone()))).unwrap();
    program.play(&[
        on(1, Enter(main)),
        on(1, Enter(pay)),
        on(1, Tailcall(pay)),
        on(1, Enter(main)),
        on(1, Leave(main)),
    ]);
    let seen = ours.0.lock().unwrap().clone();
    let what: Vec<_> = seen.iter().map(|(what, id, _)| (*what, *id)).collect();
    assert_eq!(
        what,
        [('+', main.as_raw()), ('+', pay.as_raw()), ('>', pay.as_raw()), ('+', main.as_raw()), ('-', main.as_raw())]
    );
    assert!(seen[1].2 < seen[0].2 && seen[1].2 == seen[2].2 && seen[2].2 == seen[3].2, "{seen:?}");
    assert_eq!(others.0.lock().unwrap().len(), 0);
}

#[test]
fn hooks_with_information_know_their_function_and_say_what_the_fake_can_not() {
    #[derive(Default)]
    struct Knows(Mutex<Vec<(FunctionId, usize, HResult)>>);
    impl clr_profiler::InfoHooks for Knows {
        fn enter(&self, id: ClientId, call: &clr_profiler::HookedCall<'_>) {
            let arguments = call.arguments().unwrap_err().hresult();
            self.0.lock().unwrap().push((call.function(), id.get(), arguments));
        }
        fn leave(&self, id: ClientId, call: &clr_profiler::HookedCall<'_>) {
            let arguments = call.arguments().unwrap_err().hresult();
            self.0.lock().unwrap().push((call.function(), id.get(), arguments));
        }
    }
    let runtime = shop();
    let main = runtime.function("Shop.Program::Main");
    let hooks = Arc::new(Knows::default());
    let mapper = |_: FunctionId| ClientId::new(7).map_or(Mapped::Skip, Mapped::Hook);
    let setup = Setup::default().with_hooks(Hooks::with_info(hooks.clone(), Arc::new(mapper)));
    let mut program = runtime.load_with(Wants::setup(setup)).unwrap();
    program.play(&[on(1, Enter(main)), on(1, Leave(main)), on(1, Tailcall(main))]);
    let expected = [(main, 7, HResult::NOT_IMPLEMENTED), (main, 7, HResult::UNSUPPORTED_CALL_SEQUENCE)];
    assert_eq!(*hooks.0.lock().unwrap(), expected);
    assert_eq!(program.unanswered(), [("GetFunctionEnter3Info", 1)]);
}

#[cfg(target_arch = "x86_64")]
#[test]
#[should_panic(expected = "the Enter hook changed rdx, xmm3")]
fn a_hook_that_loses_an_argument_is_found_out() {
    #[unsafe(naked)]
    extern "C" fn careless() {
        std::arch::naked_asm!("xor edx, edx", "xorps xmm3, xmm3", "ret")
    }
    let entry = careless as *const std::ffi::c_void;
    // SAFETY: code that stays mapped; that it breaks the convention is what the test is about.
    let hooks = unsafe { clr_profiler::RawHooks::new(entry, std::ptr::null(), std::ptr::null()) };
    let mapper = |function: FunctionId| ClientId::new(function.as_raw()).map_or(Mapped::Skip, Mapped::Hook);
    let runtime = shop();
    let main = runtime.function("Shop.Program::Main");
    let setup = Setup::default().with_hooks(Hooks::raw(hooks, Arc::new(mapper)));
    runtime.load_with(Wants::setup(setup)).unwrap().play(&[on(1, Enter(main))]);
}
