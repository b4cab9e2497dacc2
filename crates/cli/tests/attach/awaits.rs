//! `attach PID -i awaits`: awaits of a program that runs already.

use std::time::Duration;

use clrscope_testkit as testkit;

use crate::common::TestFolder;
use crate::server::{attach, kill};
use crate::waiting::{Waiting, is_following, rows};

/// Line, count, failures and cancellations of each await that the program has printed.
fn printed(lines: &[String]) -> Vec<[u64; 4]> {
    let parse = |line: &String| {
        let (name, numbers) = line.strip_prefix("AWAIT ")?.split_once(' ')?;
        let numbers: Vec<u64> = numbers.split(' ').filter_map(|number| number.parse().ok()).collect();
        Some([name.split_once(':')?.1.parse().ok()?, numbers[0], numbers[1], numbers[2]])
    };
    lines.iter().filter_map(parse).collect()
}

/// A method that waits when a recording ends goes on in its changed code, whichever recording is
/// under way then.
#[test]
fn awaits_in_a_running_program_are_those_that_it_counts_and_it_goes_on_between_two_recordings() {
    testkit::each_runtime(|runtime| {
        let (place, mut program) = (TestFolder::new(), Waiting::start(runtime, "Waits", &["10", "wait"]));
        let mut known: Vec<[u64; 4]> = Vec::new();
        for (name, last, forgotten) in [("first.clrs", "DONE", 3), ("second.clrs", "", 0)] {
            let options = format!("-q -i awaits -o {name}");
            let mut recorder = attach(&place, program.child.id(), &options).spawn().expect("the tool starts");
            testkit::wait_until("it records", || is_following(&place, name));
            testkit::pause(Duration::from_secs(1));
            let output = program.go_on(last);
            // Of the first, while the program waits for its input; the second ends with the
            // program.
            if !last.is_empty() {
                kill(recorder.id(), "INT");
            }
            assert!(recorder.wait().expect("it ends").success(), "{output:?} on {}", runtime.version);
            let (all, rows) = (printed(&output), rows(&place, name, "awaits"));
            assert_eq!(all.len(), 14, "{output:?}");
            for line in all {
                let before = known.iter().find(|before| before[0] == line[0]).map_or([0; 4], |before| *before);
                let now: Vec<u64> = (1..4).map(|at| line[at] - before[at]).collect();
                let row = rows.iter().find(|row| row["line"].as_u64() == Some(line[0]));
                let found =
                    ["count", "failed", "cancelled"].map(|key| row.map_or(0, |row| row[key].as_u64().unwrap_or(0)));
                assert_eq!(found.as_slice(), now, "{name}, line {}: {output:?} on {}", line[0], runtime.version);
            }
            let pending = rows.iter().filter_map(|row| row["pending"].as_u64()).sum::<u64>();
            // The program's own Main waits, too, unless it reads its input.
            assert!(pending >= forgotten && pending <= forgotten + 1, "{rows:#?}");
            known = printed(&output);
        }
        assert!(program.child.wait().expect("it ends").success(), "on {}", runtime.version);
    });
}
