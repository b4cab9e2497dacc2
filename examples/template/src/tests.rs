//! The profiler without .NET: a fake runtime loads it and plays a program.

use clr_profiler_fake::Event::{Enter, JITCompilationStarted, Leave, Shutdown, Tailcall};
use clr_profiler_fake::{FakeRuntime, on};

use super::CallCounter;

#[test]
fn calls_of_all_threads_are_counted_by_name() {
    let runtime =
        FakeRuntime::new().module("Shop").class("Shop.Checkout").method("Pay").method("Print").method("Never");
    let [pay, print, never] = ["Pay", "Print", "Never"].map(|name| runtime.function(&format!("Shop.Checkout::{name}")));
    let mut program = runtime.load::<CallCounter>().expect("the runtime takes the profiler");
    program.play(&[
        on(1, JITCompilationStarted(never)),
        on(1, Enter(pay)),
        on(1, Enter(print)),
        on(1, Leave(print)),
        on(2, Enter(pay)),
        on(2, Tailcall(pay)),
        on(2, Enter(print)),
        on(1, Enter(print)),
        on(0, Shutdown()),
    ]);
    let expected = "3\tShop.Checkout.Print()\n2\tShop.Checkout.Pay()\n0\tShop.Checkout.Never()\n";
    assert_eq!(program.profiler().0.report(), expected);
}
