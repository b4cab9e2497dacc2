//! `attach PID`: parts that the code of a program begins and ends which ran already.

use clrscope_testkit as testkit;
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::{attach, kill};
use crate::waiting::{Waiting, is_following};

/// Twice in a row; nothing listens to the program's events before, between and after.
#[test]
fn a_running_program_marks_parts_and_is_left_as_it_was() {
    const UNHEARD: &str = "LISTENED TO False";
    testkit::each_runtime(|runtime| {
        let on = format!("on {}", runtime.version);
        let place = TestFolder::new();
        let mut program = Waiting::start(runtime, "Marked", &["parts", "wait"]);
        for (name, options) in [("first.clrs", "-i exceptions"), ("second.clrs", "-i exceptions -i gc -i cpu")] {
            let more = format!("-q {options} -o {name}");
            let mut recorder = attach(&place, program.child.id(), &more).spawn().expect("the tool starts");
            testkit::wait_until("it records", || is_following(&place, name));
            // The program waits until it has a listener.
            let output = program.go_on("DONE");
            kill(recorder.id(), "INT");
            assert!(recorder.wait().expect("it ends").success(), "{output:?} {on}");
            assert_eq!(program.read_to("READY"), [UNHEARD, "READY"], "{on}");
            let said = output.iter().filter_map(|line| line.strip_prefix("PART ")?.rsplit_once(' '));
            let said: Vec<(&str, &str)> =
                said.filter_map(|(rest, exceptions)| Some((rest.rsplit_once(' ')?.0, exceptions))).collect();
            assert_eq!(said.len(), 10, "{output:?} {on}");
            for (part, exceptions) in said {
                let words = ["report", name, "--format", "json", "--view", "exceptions", "--part", part];
                let report = place.clrscope(words).output().expect("the tool starts");
                assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
                let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
                let counts = report["rows"].as_array().expect("rows").iter().filter_map(|row| row["count"].as_u64());
                assert_eq!(counts.sum::<u64>().to_string(), exceptions, "part {part} {on}");
            }
        }
    });
}
