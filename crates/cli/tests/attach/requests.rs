//! `attach PID -i requests`: requests of a program that runs already.

use std::collections::BTreeMap;
use std::time::Duration;

use clrscope_testkit as testkit;

use crate::common::TestFolder;
use crate::server::{attach, kill};
use crate::waiting::{Waiting, is_following, rows};

/// Count, failures and abortions of requests, by direction and name.
type Counts = BTreeMap<(String, String), [u64; 3]>;

fn printed(lines: &[String]) -> Counts {
    let parse = |line: &String| {
        let mut parts = line.split('|');
        let (direction, name) = parts.next()?.split_once(' ')?;
        let numbers: Vec<u64> = parts.filter_map(|number| number.parse().ok()).collect();
        let counts = <[u64; 3]>::try_from(numbers.get(..3)?).ok()?;
        Some(((direction.to_lowercase(), name.to_owned()), counts))
    };
    lines.iter().filter_map(parse).collect()
}

/// The second recording finds the methods in their changed code. What was under way when the first
/// one began is apart.
#[test]
fn requests_of_a_running_program_are_those_that_it_counts_and_one_that_was_under_way_is_partial() {
    testkit::each_web_runtime(|runtime| {
        let (place, mut program) = (TestFolder::new(), Waiting::start(runtime, "Serves", &["5", "wait", "listens"]));
        let mut before = Counts::new();
        let mut lines = Vec::new();
        for (name, last, partial) in [("first.clrs", "DONE", 2), ("second.clrs", "", 0)] {
            let options = format!("-q -i requests -o {name}");
            let mut recorder = attach(&place, program.child.id(), &options).spawn().expect("the tool starts");
            testkit::wait_until("it records", || is_following(&place, name));
            testkit::pause(Duration::from_secs(1));
            let output = program.go_on(last);
            if !last.is_empty() {
                kill(recorder.id(), "INT");
            }
            assert!(recorder.wait().expect("it ends").success(), "{output:?} on {}", runtime.version);
            let (all, rows) = (printed(&output), rows(&place, name, "requests"));
            assert_eq!(all.len(), 15, "{output:?}");
            for (key, counted) in &all {
                let known = before.get(key).copied().unwrap_or_default();
                let row = rows.iter().find(|row| row["direction"] == *key.0 && row["route"] == *key.1);
                let row = row.unwrap_or_else(|| panic!("no {key:?} in {rows:#?}"));
                let found = ["count", "failed", "aborted"].map(|column| row[column].as_u64().expect("a number"));
                let now: Vec<u64> = (0..3).map(|at| counted[at] - known[at]).collect();
                assert_eq!(found.as_slice(), now, "{name}, {key:?} on {}", runtime.version);
            }
            let found: u64 = rows.iter().filter_map(|row| row["partial"].as_u64()).sum();
            assert_eq!(found, partial, "{rows:#?}");
            before = all;
            lines = output;
        }
        assert!(program.child.wait().expect("it ends").success(), "on {}", runtime.version);

        // The program sees what it sees when nobody attaches.
        let mut alone = Waiting::start(runtime, "Serves", &["5", "wait", "listens"]);
        alone.go_on("DONE");
        let bare = alone.go_on("");
        let seen =
            |lines: &[String]| lines.iter().filter(|line| line.starts_with("SEEN ")).cloned().collect::<Vec<_>>();
        assert!(!seen(&bare).is_empty());
        assert_eq!(seen(&lines), seen(&bare), "on {}", runtime.version);
    });
}
