//! Who awaits a method that throws, in a program that runs already: nothing told of its methods when they were
//! compiled.

use std::process::Stdio;
use std::time::Duration;

use clrscope_testkit::{each_runtime, fixture, wait_for_work};
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::said;

/// The greatest amount of a column among the rows of a function.
fn total_of(rows: &[Value], name: &str, column: &str) -> u64 {
    let named = rows.iter().filter(|row| row["name"] == name);
    named.filter_map(|row| row[column].as_u64()).max().unwrap_or(0)
}

#[test]
fn throws_have_who_awaits_them_in_a_program_that_runs_already() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut command = runtime.command(&fixture("Awaited"));
        let mut program = command.arg("100000").stdout(Stdio::null()).spawn().expect("the program starts");
        wait_for_work(program.id(), Duration::from_millis(500));
        let attached = place.run(&format!("attach {} -q --duration 3s -i exceptions -o a.clrs", program.id()));
        let goes_on = program.try_wait().expect("a state").is_none();
        program.kill().expect("it can be ended");
        program.wait().expect("it ends");
        assert!(attached.status.success() && goes_on, "{}", said(&attached));

        let shown = place.run("report a.clrs --view functions --metric exceptions --json");
        assert!(shown.status.success(), "{}", said(&shown));
        let document: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
        let rows = document["rows"].as_array().expect("rows");
        let total = |name| total_of(rows, name, "total_exceptions");
        let (thrown, main) = (total("Awaited.Shop::Refuse"), total("Awaited.Program::Main"));
        // Before the agent's thread has looked the methods up their awaiters are unknown, and called so.
        assert_eq!(main + total("[unknown awaiter]"), thrown, "{}: {rows:#?}", runtime.version);
        assert!(main * 2 > thrown && thrown > 10, "{}: {main} of {thrown}", runtime.version);
    });
}

/// Timers copy who awaits a method at once, in each recording anew.
#[test]
fn samples_have_who_awaits_them_each_time_that_a_program_is_attached_to() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut command = runtime.command(&fixture("Burning"));
        let mut program =
            command.args(["100000", "20", "rapid"]).stdout(Stdio::null()).spawn().expect("the program starts");
        wait_for_work(program.id(), Duration::from_millis(500));
        let attached = ["a", "b"]
            .map(|name| place.run(&format!("attach {} -q --force --duration 2s -i cpu -o {name}.clrs", program.id())));
        let goes_on = program.try_wait().expect("a state").is_none();
        program.kill().expect("it can be ended");
        program.wait().expect("it ends");
        for (attached, name) in attached.iter().zip(["a", "b"]) {
            assert!(attached.status.success() && goes_on, "{}", said(attached));
            let shown = place.run(&format!("report {name}.clrs --view functions --metric cpu --json"));
            let document: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
            let rows = document["rows"].as_array().expect("rows");
            let total = |name| total_of(rows, name, "total_cpu_ns");
            let (main, unknown) = (total("Burning.Program::Main"), total("[unknown awaiter]"));
            assert!(main > 3 * unknown && main > 0, "{} {name}: {main}, {unknown}: {rows:#?}", runtime.version);
        }
    });
}
