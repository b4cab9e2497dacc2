//! The profiler without .NET: a fake runtime loads it and plays a program.

use clr_profiler_fake::Event::{
    Enter, ExceptionCatcherEnter, ExceptionSearchCatcherFound, ExceptionThrown, ExceptionUnwindFinallyEnter, Shutdown,
};
use clr_profiler_fake::{FakeRuntime, on};

use super::Exceptions;

#[test]
fn an_exception_is_told_with_its_stack() {
    let path = std::env::temp_dir().join(format!("exceptions-{}.txt", std::process::id()));
    let mut runtime =
        FakeRuntime::new().module("Shop").class("Shop.Checkout").method("Main").method("Pay").class("Shop.NoMoney");
    let [main, pay] = ["Main", "Pay"].map(|name| runtime.function(&format!("Shop.Checkout::{name}")));
    let exception = runtime.object("Shop.NoMoney", 64);
    let output = path.clone();
    let mut program = runtime.load_with(move |info| Exceptions::start(info, &output)).expect("the runtime takes it");
    program.play(&[
        on(1, Enter(main)),
        on(1, Enter(pay)),
        on(1, ExceptionThrown(exception)),
        on(1, ExceptionSearchCatcherFound(main)),
        on(1, ExceptionUnwindFinallyEnter(pay)),
        on(1, ExceptionCatcherEnter(main, exception)),
        on(0, Shutdown()),
    ]);
    let written = std::fs::read_to_string(&path).expect("the profiler writes at once");
    drop(std::fs::remove_file(&path));
    let expected = [
        "Shop.NoMoney",
        "    at Shop.Checkout::Pay",
        "    at Shop.Checkout::Main",
        "  will be caught by Shop.Checkout::Main",
        "  finally of Shop.Checkout::Pay",
        "  caught by Shop.Checkout::Main",
    ];
    let lines: Vec<&str> = written.lines().filter_map(|line| Some(line.split_once('\t')?.1)).collect();
    assert_eq!(lines, expected);
}
