//! The log of what a fake runtime plays: no .NET needed, and sequences that a real one shows
//! rarely.

use clr_profiler::{Events, HResult};
use clr_profiler_fake::Event::*;
use clr_profiler_fake::{FakeRuntime, on};

use super::Logging;

#[test]
fn what_happens_is_logged_by_name_and_nesting_also_in_odd_orders() {
    let folder = clrscope_testkit::scratch();
    // Where the log goes by default; this is the only test in its process.
    std::env::set_current_dir(folder.path()).expect("a folder");

    let mut runtime = FakeRuntime::new().module("Shop").class("Shop.Checkout").method("Pay").class("Shop.NoMoney");
    let (module, class, pay) =
        (runtime.module_id("Shop"), runtime.class_id("Shop.Checkout"), runtime.function("Shop.Checkout::Pay"));
    let exception = runtime.object("Shop.NoMoney", 64);
    let mut program = runtime.load::<Logging>().expect("it loads");
    assert!(program.events().contains(Events::EXCEPTIONS | Events::GC));
    program.play(&[
        on(1, ModuleLoadStarted(module)),
        on(2, JITCompilationStarted(pay)),
        on(1, ClassLoadFinished(class, HResult::OK)),
        on(1, ModuleLoadFinished(module, HResult::OK)),
        on(2, JITCompilationFinished(pay, HResult::DATA_INCOMPLETE)),
        on(1, ExceptionThrown(exception)),
        on(0, Shutdown()),
        on(2, ClassLoadStarted(class)),
        // An end without a start.
        on(1, RuntimeResumeFinished()),
    ]);
    let expected = [
        "1\tinitialize".to_owned(),
        format!("2\tmodule_load_started module={:#x}", module.as_raw()),
        "3\tjit_compilation_started function=Shop.Checkout.Pay() is_safe_to_block=true".to_owned(),
        "2\t  class_load_finished class=Shop.Checkout status=ok".to_owned(),
        "2\tmodule_load_finished module=/fake/Shop.dll status=ok".to_owned(),
        "3\tjit_compilation_finished function=Shop.Checkout.Pay() status=failed: compilation: CORPROF_E_DATAINCOMPLETE (0x80131351) is_safe_to_block=true"
            .to_owned(),
        "2\texception_thrown exception=Shop.NoMoney".to_owned(),
        "1\tshutdown".to_owned(),
        "3\tclass_load_started class=Shop.Checkout".to_owned(),
        "2\truntime_resume_finished".to_owned(),
    ];
    let log = std::fs::read_to_string(folder.path().join("log.txt")).expect("the profiler wrote");
    assert_eq!(log.lines().collect::<Vec<_>>(), expected);
    assert_eq!(program.unanswered(), []);
}
