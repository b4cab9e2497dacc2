//! `attach PID -i memory`: where the memory of a program is that runs already.

use std::time::Duration;

use clrscope_testkit as testkit;
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::{attach, said};
use crate::waiting::{Waiting, is_following, rows};

const MEGA: u64 = 1 << 20;

fn find<'r>(rows: &'r [Value], part: &str) -> &'r Value {
    rows.iter().find(|row| row["part"] == part && row["file"] == "").unwrap_or_else(|| panic!("{part}: {rows:#?}"))
}

fn bytes(rows: &[Value], part: &str, key: &str) -> u64 {
    find(rows, part)[key].as_u64().unwrap_or_else(|| panic!("{key} of {part}: {rows:#?}"))
}

/// The numbers behind a word that the program prints.
fn printed(output: &[String], word: &str) -> Vec<Vec<u64>> {
    let lines = output.iter().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    lines.map(|line| line.split(' ').map(|number| number.parse().expect("a number")).collect()).collect()
}

fn mapped(place: &TestFolder) -> String {
    place.file("mapped").to_str().expect("a path").to_owned()
}

/// A collection while it is recorded makes everything known, though the heap was there before.
#[test]
fn the_memory_of_a_running_program_is_where_it_put_it() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut program = Waiting::start(runtime, "Memory", &[&mapped(&place)]);
        let pid = program.child.id();
        let recorder = attach(&place, pid, "-q -i memory -o r.clrs --duration 6s").spawn().expect("the tool starts");
        testkit::wait_until("it records", || is_following(&place, "r.clrs"));
        // The agent has asked the runtime for events by the second one at the latest.
        let collect = |_| {
            testkit::pause(Duration::from_secs(1));
            program.go_on("DONE")
        };
        let output = (0..3).map(collect).last().expect("three times");
        let recorder = recorder.wait_with_output().expect("it ends");
        assert!(recorder.status.success(), "{} on {}", said(&recorder), runtime.version);
        let rows = rows(&place, "r.clrs", "memory");
        let said = printed(&output, "RESIDENT")[0][0];
        let whole = bytes(&rows, "resident", "resident_bytes");
        assert!(whole.abs_diff(said) < 12 * MEGA, "{whole} and {said} on {}: {rows:#?}", runtime.version);
        assert!((24 * MEGA..28 * MEGA).contains(&bytes(&rows, "stacks", "resident_bytes")), "{rows:#?}");
        assert!((32 * MEGA..36 * MEGA).contains(&bytes(&rows, "files", "resident_bytes")), "{rows:#?}");
        let heap = bytes(&rows, "managed-heap", "committed_bytes");
        let committed = printed(&output, "COMMITTED")[0][0];
        assert!(heap.abs_diff(committed) < 16 * MEGA, "{heap} and {committed} on {}: {rows:#?}", runtime.version);
        let names = ["generation-0", "generation-1", "generation-2", "large-objects", "pinned-objects"];
        for (name, line) in names.into_iter().zip(printed(&output, "GENERATION")) {
            let ours = [bytes(&rows, name, "object_bytes"), bytes(&rows, name, "free_bytes")];
            assert_eq!(ours, [line[1] - line[2], line[2]], "{name} on {}: {output:?}", runtime.version);
        }
    });
}

/// What is not known is not guessed; the table fits 80 columns.
#[test]
fn without_a_collection_the_generations_are_not_known() {
    let (place, newest) = (TestFolder::new(), testkit::runtimes().last().expect("a runtime"));
    let program = Waiting::start(newest, "Memory", &[&mapped(&place)]);
    let output = attach(&place, program.child.id(), "-i memory -o r.clrs --duration 1s").output().expect("it runs");
    assert!(output.status.success(), "{}", said(&output));
    let all = rows(&place, "r.clrs", "memory");
    assert!(all.iter().all(|row| row["part"] != "generation-2"), "{all:#?}");
    let text = place.clrscope(["report", "r.clrs", "--view", "memory"]).env("COLUMNS", "80").output().expect("it runs");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("No collection was recorded by then"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("stacks of threads") && !text.contains("libcoreclr.so"), "{text}");
    let verbose = place.run("report r.clrs --view memory --verbose");
    assert!(String::from_utf8_lossy(&verbose.stdout).contains("libcoreclr.so"), "{}", said(&verbose));
}
