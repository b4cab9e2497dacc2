//! Processes by the name of their program, and what `ps` says of them.

use std::fs;
use std::time::Duration;

use clrscope_testkit as testkit;

use crate::common::TestFolder;
use crate::server::said;
use crate::waiting::Waiting;

#[test]
fn a_program_is_meant_by_its_name_where_one_process_alone_has_it() {
    // No other test of these runs the program.
    let runtime = testkit::runtimes().last().expect("a runtime");
    let start = || Waiting::start(runtime, "Troubles", &["cpu", "60000"]);
    let (place, first) = (TestFolder::new(), start());
    let report = place.json("counters Trou* --once");
    assert_eq!(report["recording"]["processes"][0]["pid"], first.child.id(), "{report:#}");

    let listed = place.json("ps");
    let row = listed["rows"].as_array().and_then(|rows| rows.iter().find(|row| row["pid"] == first.child.id()));
    let row = row.expect("it is listed");
    // By the system's own account, a moment later.
    let status = fs::read_to_string(format!("/proc/{}/status", first.child.id())).expect("it lives");
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok());
    let resident: u64 = resident.map(|kilobytes: u64| kilobytes << 10).expect("its memory");
    let said_bytes = row["rss_bytes"].as_u64().expect("bytes");
    assert!(said_bytes.abs_diff(resident) < 8 << 20, "{said_bytes} of {resident}");
    // It computes all the time, and a busy machine may give it less.
    let busy = || {
        let listed = place.json("ps");
        let rows = listed["rows"].as_array().cloned().unwrap_or_default();
        rows.iter().find(|row| row["pid"] == first.child.id()).and_then(|row| row["cpu_percent"].as_f64())
    };
    testkit::wait_until("it is busy", || busy().is_some_and(|percent| (50.0..150.0).contains(&percent)));

    let second = start();
    testkit::pause(Duration::from_millis(200));
    let output = place.run("attach Troubles --duration 1s");
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let both = [first.child.id(), second.child.id()].map(|pid| format!("Troubles ({pid})"));
    assert!(text.contains("'Troubles' is not one process") && both.iter().all(|one| text.contains(one)), "{text}");
}
