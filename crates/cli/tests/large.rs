//! Recordings that are larger than the memory there is: views stream, and where memory is not to be
//! had three lines say so.

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clrscope_recording::testing::logs::write_logs;
use clrscope_recording::testing::synthetic::{Shape, write_directory};
use clrscope_testkit::{Finished, run_within};
use common::TestFolder;

/// Bytes of records of each instrument: many times the memory that a view may take.
const LOG: usize = 48 << 20;
/// Address space in KiB that a view may take, program and stacks included: 200 MB.
const MEMORY: u32 = 200_000;
const PATIENCE: Duration = Duration::from_secs(300);

fn limited(place: &TestFolder, memory: u32, line: &str) -> Finished {
    // Another program counts the rows: the test is that none are held.
    let script = format!("ulimit -v {memory}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("bash");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_clrscope")]).args(line.split_whitespace());
    shell.current_dir(place.path()).stdin(Stdio::null());
    run_within(shell, PATIENCE)
}

fn with_logs(bytes: usize) -> TestFolder {
    let place = TestFolder::new();
    write_logs(&place.file("big.clrs.d"), bytes).expect("a recording");
    place
}

#[test]
fn reading_events_takes_a_bounded_amount_of_memory() {
    let place = with_logs(LOG);
    for view in ["events", "events --interleave", "flow", "exceptions --each", "exceptions"] {
        for format in ["text", "csv", "json"] {
            let line = format!("report big.clrs.d --view {view} --format {format} --limit 20");
            let finished = limited(&place, MEMORY, &line);
            assert_eq!((finished.status.code(), finished.stderr_text()), (Some(0), String::new()), "{line}");
            assert!(finished.stdout_text().lines().count() > 1, "{line}: {}", finished.stdout_text());
        }
    }
    // All of it, or what of it a filter leaves.
    let gc = limited(&place, MEMORY, "report big.clrs.d --view events --group gc --format csv");
    assert_eq!(gc.status.code(), Some(0), "{}", gc.stderr_text());
    let rows = gc.stdout_text().lines().count();
    assert!(rows > 5_000, "{rows} rows");
    let groups = limited(&place, MEMORY, "report big.clrs.d --view exceptions --format csv");
    assert_eq!(groups.stdout_text().lines().count(), 2, "{}", groups.stdout_text());
}

#[test]
fn the_first_rows_of_a_large_log_are_there_at_once() {
    let place = with_logs(LOG);
    // Counting goes on for a million steps behind the last row; there are fewer exceptions.
    let views = [
        ("events", "and more after those, not counted"),
        ("flow --depth 1", "and more after those, not counted"),
        ("exceptions --each", "exceptions (--limit shows more)"),
    ];
    for (view, remark) in views {
        let started = Instant::now();
        let finished = limited(&place, MEMORY, &format!("report big.clrs.d --view {view} --limit 20"));
        let took = started.elapsed();
        let text = finished.stdout_text();
        assert!(text.contains(remark), "{view}: {text}");
        // A second here; what walks all rows takes a minute.
        assert!(took < Duration::from_secs(20), "{view} took {took:?}");
    }
}

#[test]
fn memory_that_is_not_to_be_had_is_said_in_three_lines() {
    // A tree is held as a whole, unlike events.
    let place = TestFolder::new();
    let shape = Shape { tree_bytes: 24 << 20, ..Shape::default() };
    write_directory(&place.file("big.clrs.d"), &shape).expect("a recording");
    assert!(place.run("pack big.clrs.d").status.success());
    // Least memory with which the program starts at all.
    let starts = |memory: &u32| limited(&place, *memory, "--version").status.success();
    let least = (8_000..200_000).step_by(1_000).find(starts).expect("memory to start with");
    let mut refused = 0;
    for view in ["summary", "functions", "tree", "losses", "flow"] {
        for more in [1_000, 2_000, 3_000, 4_000, 6_000, 10_000] {
            let finished = limited(&place, least + more, &format!("report big.clrs --view {view} --format json"));
            let said = finished.stderr_text();
            match finished.status.code() {
                Some(0) => {}
                Some(1) => {
                    refused += 1;
                    assert!(said.starts_with("error: ") && said.lines().count() == 3, "{view} with {more}: {said}");
                }
                _ => panic!("{view} with {more} KiB more than {least}: {:?}: {said}", finished.status),
            }
        }
    }
    assert!(refused > 3, "{refused} were refused");
}
