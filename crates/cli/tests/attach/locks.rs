//! `attach PID -i locks`: contended locks of a program that runs already.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use clrscope_testkit as testkit;
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::{attach, said};

/// Whether the session of events is open: the agent's thread that opens it has ended. The thread
/// `clrscope-locks` starts after that one.
fn is_listening(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives").flatten();
    let names: Vec<String> = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok()).collect();
    let has = |name: &str| names.iter().any(|comm| comm.trim_end() == name);
    has("clrscope-locks") && !has("clrscope-events")
}

#[test]
fn waits_in_a_running_program_are_those_that_it_counts_itself_and_it_goes_on() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut command = runtime.command(&testkit::fixture("Contended"));
        command.args(["monitor", "4", "60"]).arg(place.file("go")).stdout(Stdio::piped());
        let mut program = command.spawn().expect("the program starts");
        let mut output = BufReader::new(program.stdout.take().expect("a pipe"));
        let mut printed = String::new();
        output.read_line(&mut printed).expect("it writes");
        let mut recorder = attach(&place, program.id(), "-q -i locks -o waits.clrs").spawn().expect("the tool starts");
        testkit::wait_until("the events come", || is_listening(program.id()));
        std::fs::write(place.file("go"), "").expect("a file");
        output.read_to_string(&mut printed).expect("it writes");
        let (ended, recorded) = (program.wait().expect("it ends"), recorder.wait().expect("it ends"));
        assert!(ended.success() && recorded.success(), "{printed} on {}", runtime.version);

        let report = place.run("report waits.clrs --view locks --format json");
        assert!(report.status.success(), "{}", said(&report));
        let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
        let row = &report["rows"][0];
        let count = printed.lines().find_map(|line| line.strip_prefix("CONTENDED ")?.parse::<u64>().ok());
        assert_eq!(
            (row["kind"].as_str(), row["type"].as_str()),
            (Some("Monitor"), Some("Contended.Ledger")),
            "{report:#}"
        );
        assert_eq!(row["exact"].as_bool(), Some(true), "{report:#}");
        // The framework's own locks may be waited for while the program counts, and at other times.
        let rows = report["rows"].as_array().expect("rows");
        let waits = |rows: &[Value]| rows.iter().filter_map(|row| row["count"].as_u64()).sum::<u64>();
        let (own, all) = (waits(&rows[..1]), waits(rows));
        assert!(count.is_some_and(|count| own <= count && count <= all), "{count:?} {report:#}");
        let own =
            row["waiters"][0]["frames"].as_array().expect("frames").iter().find(|frame| frame["module"] == "Contended");
        let own = own.unwrap_or_else(|| panic!("{report:#}"));
        assert_eq!(own["name"], "Contended.Program::BookShared", "{report:#}");
        assert!(own["line"].as_u64().is_some_and(|line| line > 0), "{report:#}");
        let text = place.run("report waits.clrs --view locks");
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(text.contains("Contended.Program::BookShared (Contended.cs:"), "{text}");
    });
}
