//! Soundness: what safe code could do to the program, and what it gets instead, without a runtime
//! that would crash.

use std::sync::{Arc, OnceLock};

use clr_profiler::{Callbacks, Error, Events, HResult, Profiler, ProfilerInfo, Result, Setup};
use clr_profiler_fake::Event::*;
use clr_profiler_fake::on;

use super::{Wants, shop};

fn is_detached(error: &Error) -> bool {
    error.name() == Some("CORPROF_E_PROFILER_DETACHING")
        && error.reason().is_some_and(|reason| reason.contains("detached"))
}

#[test]
fn after_a_detach_every_query_is_refused_by_name_and_nothing_reaches_the_runtime() {
    let runtime = shop();
    let (pay, module) = (runtime.function("Shop.Checkout::Pay"), runtime.module_id("Shop"));
    let mut program = runtime.load_with(Wants::events(Events::EXCEPTIONS)).unwrap();
    let info = program.profiler().info();
    assert!(info.function_info(pay).is_ok() && info.events().is_ok());
    program.play(&[on(0, ProfilerDetachSucceeded())]);
    assert!(is_detached(&info.function_info(pay).unwrap_err()));
    assert!(is_detached(&info.module_metadata(module).err().unwrap()));
    assert!(is_detached(&info.events().unwrap_err()), "a call of a later interface level");
    assert!(is_detached(&info.suspend().err().unwrap()));
    assert!(is_detached(&info.request_detach(0).unwrap_err()));
    assert_eq!(program.unanswered(), [], "nothing was asked");
}

#[test]
fn a_profiler_with_immutable_events_is_never_detached_and_asks_on() {
    let mut program = shop().load_with(Wants::events(Events::EXCEPTIONS | Events::DISABLE_INLINING)).unwrap();
    let info = program.profiler().info();
    assert_eq!(info.request_detach(0).unwrap_err().name(), Some("CORPROF_E_IMMUTABLE_FLAGS_SET"));
    assert!(info.events().is_ok() && info.runtime_version().is_ok());
    // No runtime says so; if one did, nothing would be asked any more.
    program.play(&[on(0, ProfilerDetachSucceeded())]);
    assert!(is_detached(&info.events().unwrap_err()));
}

#[test]
fn a_refused_profiler_s_threads_find_no_runtime() {
    static INFO: OnceLock<ProfilerInfo> = OnceLock::new();

    struct Refuses;

    impl Profiler for Refuses {
        fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
            let _ = INFO.set(info.clone());
            Err(Error::refused("initialize", "not today"))
        }
    }

    impl Callbacks for Refuses {}

    let refused = shop().load::<Refuses>().err();
    assert_eq!(refused.map(|error| error.hresult()), Some(HResult::CANCEL_ACTIVATION));
    let asked = INFO.get().unwrap().runtime_version();
    assert!(is_detached(&asked.unwrap_err()));
}

#[test]
fn queries_under_way_on_other_threads_end_before_the_detach_does() {
    let mut program = shop().load_with(Wants::events(Events::EXCEPTIONS)).unwrap();
    let info = program.profiler().info().clone();
    let started = Arc::new(OnceLock::new());
    let asking = {
        let started = Arc::clone(&started);
        std::thread::spawn(move || {
            let mut answers = 0_u64;
            loop {
                match info.events() {
                    Ok(_) => answers += 1,
                    Err(error) => break (answers, error),
                }
                let _ = started.set(());
            }
        })
    };
    started.wait();
    program.play(&[on(0, ProfilerDetachSucceeded())]);
    let (answers, error) = asking.join().unwrap();
    assert!(answers > 0 && is_detached(&error));
}
