//! Panics of the agent, in a real program: the program is as without the agent, and the recording
//! says what happened.

use clrscope_contract::request::{AGENT_CLSID, AGENT_VARIABLE};
use clrscope_recording::model::LossReason;
use clrscope_testkit::{each_runtime, fixture, hooked_agent, load_profiler, run, scratch};

#[test]
fn a_panic_in_a_callback_a_hook_or_the_helper_thread_is_a_loss_with_place_and_text() {
    each_runtime(|runtime| {
        let command = || {
            let mut command = runtime.command(&fixture("Ends"));
            command.args(["return", "7"]);
            command
        };
        let bare = run(command());
        assert_eq!(bare.code(), 7);
        for (place, file) in [("callback", "startup.rs"), ("hook", "slow.rs"), ("helper", "panic_on_demand.rs")] {
            let folder = scratch();
            let out = folder.path().join("run.clrs.d");
            let mut command = command();
            load_profiler(&mut command, hooked_agent(), AGENT_CLSID);
            command.env(AGENT_VARIABLE, format!("calls;trust-writable;out={}", out.display()));
            command.env("CLRSCOPE_TEST_PANIC", place);
            let with = run(command);
            let place_and_runtime = format!("a panic in the {place} on {}", runtime.version);
            assert_eq!(with.stdout_text(), bare.stdout_text(), "{place_and_runtime}: stdout");
            assert_eq!(with.stderr_text(), bare.stderr_text(), "{place_and_runtime}: stderr");
            assert_eq!(with.status, bare.status, "{place_and_runtime}: exit");
            let recording = clrscope_recording::open(&out).expect("a recording");
            let [process] = recording.processes.as_slice() else { panic!("{:?}", recording.processes) };
            let caught = process.losses.iter().find(|loss| loss.reason == LossReason::PanicCaught);
            let caught = caught.unwrap_or_else(|| panic!("{place_and_runtime}: {:?}", process.losses));
            assert!(caught.count > 0, "{place_and_runtime}: {caught:?}");
            let [detail] = caught.details.as_slice() else { panic!("{place_and_runtime}: {caught:?}") };
            let text = format!("a test asked for a panic in the {place}");
            assert!(detail.contains(file) && detail.ends_with(&text), "{place_and_runtime}: {detail}");
        }
    });
}
