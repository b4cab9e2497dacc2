//! `clrscope attach PID --probe-at` and `clrscope probe PID add --at`: lines are counted in a
//! program that runs.

use std::process::Stdio;

use clrscope_testkit as testkit;
use serde_json::Value;

use crate::common::TestFolder;
use crate::probes::{BATCH, Counter};
use crate::server::{Server, attach, kill, refused, said, some_runtime};

/// Number of the one line of a fixture that holds a text.
fn line(fixture: &str, text: &str) -> usize {
    let path = testkit::workspace_root().join(format!("dotnet/fixtures/{fixture}/{fixture}.cs"));
    let source = std::fs::read_to_string(path).expect("the source");
    let found: Vec<_> = (1..).zip(source.lines()).filter(|(_, line)| line.contains(text)).collect();
    let [(number, _)] = found.as_slice() else { panic!("{text}: {found:?}") };
    *number
}

/// Calls or hits so far by line, with no line for calls, and whether the probes were taken away.
fn listed(place: &TestFolder, pid: u32) -> Vec<(Option<u64>, u64, bool)> {
    let output = place.run(&format!("probe {pid} list --format json"));
    let Ok(list) = serde_json::from_slice::<Value>(&output.stdout) else { return Vec::new() };
    let row = |row: &Value| {
        (row["line"].as_u64(), row["calls"].as_u64().expect("a number"), row["removed"].as_bool().expect("yes or no"))
    };
    let mut rows: Vec<_> = list["rows"].as_array().expect("rows").iter().map(row).collect();
    rows.sort_unstable();
    rows
}

/// A loop that says how often it went around: each round is counted while its line has a probe,
/// with and without one of the method's calls, and none when it has not; then the program is as
/// fast as before.
#[test]
fn a_line_in_a_loop_is_counted_while_it_has_a_probe() {
    testkit::each_runtime(|runtime| {
        let (place, mut counter) = (TestFolder::new(), Counter::spawn("Inlined", runtime));
        let bare = counter.shortest();
        let (pid, of_loop) = (counter.pid(), line("Inlined", "i++) Step();"));
        // The first piece of that line begins the loop; the method of the other is reached each
        // round.
        let (step, begun) = (line("Inlined", "void Step()"), format!("--probe-at Inlined.cs:{of_loop} -o a.clrs"));
        let launcher = attach(&place, pid, &begun).stderr(Stdio::piped()).spawn().expect("the tool starts");
        testkit::wait_until("probes", || !listed(&place, pid).is_empty());
        let command = |words: &str| {
            let output = place.run(&format!("probe {pid} {words}"));
            assert!(output.status.success(), "{words}: {}", said(&output));
            said(&output)
        };
        let said_of = command(&format!("add --at Inlined/Inlined.cs:{step}"));
        assert_eq!(said_of, format!("clrscope: process {pid}: probes at Inlined/Inlined.cs:{step} in 1 method\n"));
        let hits = |line: usize| listed(&place, pid).iter().find(|row| row.0 == Some(line as u64)).map(|row| row.1);
        for beside in [None, Some("Inlined.Program::Step")] {
            beside.into_iter().for_each(|method| _ = command(&format!("add {method}")));
            let before = [hits(of_loop), hits(step)].map(|hits| hits.expect("a row"));
            counter.batch();
            let after = [hits(of_loop), hits(step)].map(|hits| hits.expect("a row"));
            assert_eq!([after[0] - before[0], after[1] - before[1]], [BATCH / 1000, BATCH], "{}", runtime.version);
        }
        let calls = listed(&place, pid)[0];
        assert_eq!((calls.0, calls.1), (None, BATCH), "{}", runtime.version);
        command(&format!("remove Step --at Inlined.cs:{step} --at Inlined.cs:{of_loop}"));
        let counted = listed(&place, pid);
        assert!(counted.iter().all(|row| row.2), "{counted:?}");
        counter.as_fast_as(bare, &format!("without probes on {}", runtime.version));
        assert_eq!(listed(&place, pid), counted, "{}", runtime.version);
        kill(launcher.id(), "INT");
        assert!(launcher.wait_with_output().expect("it ends").status.success());
        counter.assert_asleep(&runtime.version.to_string());
        counter.end();
    });
}

/// Rows have the file and the line, and nothing that only calls have.
#[test]
fn a_line_stands_in_the_report_with_its_file_and_without_times() {
    let (place, server) = (TestFolder::new(), Server::start(some_runtime()));
    let number = line("Server", "Interlocked.Increment(ref requests);");
    let line = format!("--probe-at Server.cs:{number} --duration 500ms -o a.clrs");
    let output = attach(&place, server.pid, &line).output().expect("the tool starts");
    assert!(output.status.success(), "{}", said(&output));
    let report = place.run("report a.clrs --view probes --format json");
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let row = &report["rows"][0];
    assert_eq!((&row["name"], &row["line"]), (&"Server.Program::Request".into(), &number.into()), "{report:#}");
    assert!(row["file"].as_str().is_some_and(|file| file.ends_with("/Server/Server.cs")), "{row:#}");
    assert!(row["calls"].as_u64() > Some(0), "{row:#}");
    for key in ["failed", "total_ns", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns", "active"] {
        assert_eq!(row[key], Value::Null, "{key} of {row:#}");
    }
    let text = String::from_utf8_lossy(&place.run("report a.clrs --view probes").stdout).into_owned();
    assert!(
        text.contains(&format!("Server.cs:{number}"))
            && text.contains("For a line, 'calls' is")
            && !text.contains("active"),
        "{text}"
    );
    server.end();
}

#[test]
fn lines_without_code_and_files_that_are_none_are_refused_with_what_is_near() {
    let (place, server) = (TestFolder::new(), Server::start(some_runtime()));
    let number = line("Server", "Interlocked.Increment(ref requests);");
    let at = |line: &str| refused(&place, server.pid, &format!("--probe-at {line}"));
    let near = at(&format!("Server.cs:{}", number - 1));
    let why = format!("Server.cs has no code at line {}; nearest: ", number - 1);
    assert!(near.contains(&why) && near.contains(&format!(", {number}\n")), "{near}");
    let like = at(&format!("Servr.cs:{number}"));
    assert!(like.contains("did you mean '/_/fixtures/Server/Server.cs'?"), "{like}");
    assert!(at("Server.cs").contains("is not a line of a source file such as Cart.cs:42"));
    let launcher = attach(&place, server.pid, &format!("--probe-at Server.cs:{number} -o a.clrs --quiet")).spawn();
    let launcher = launcher.expect("the tool starts");
    testkit::wait_until("probes", || !listed(&place, server.pid).is_empty());
    for (words, code, reasons) in [
        (format!("add --at Server.cs:{}", number - 1), 1, ["has no code at line", "nearest: "]),
        (
            format!("add --at Servr.cs:{number}"),
            1,
            ["ends with 'Servr.cs'", "did you mean '/_/fixtures/Server/Server.cs'?"],
        ),
        ("add --at Basket.cs:1".to_owned(), 1, ["ends with 'Basket.cs'", "by the end of its path"]),
        ("remove --at Server.cs:1".to_owned(), 1, ["no probe is at 'Server.cs:1'", "list"]),
        ("add --at Server.cs".to_owned(), 2, ["'--at' does not take 'Server.cs'", "write --at Cart.cs:42"]),
        ("remove Parse --watch".to_owned(), 2, ["takes no --watch", "leave --watch out"]),
    ] {
        let output = place.run(&format!("probe {} {words}", server.pid));
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(reasons.iter().all(|reason| said.contains(reason)), "{reasons:?} in {said}");
    }
    kill(launcher.id(), "INT");
    assert!(launcher.wait_with_output().expect("it ends").status.success());
    server.end();
}

/// Rows come once a second in pipes too, and end with the recording.
#[test]
fn the_watched_list_goes_on_until_the_recording_is_over() {
    let (place, server) = (TestFolder::new(), Server::start(some_runtime()));
    let launcher = attach(&place, server.pid, "--probe Parse --duration 4s -o a.clrs --quiet").spawn();
    let mut launcher = launcher.expect("the tool starts");
    testkit::wait_until("calls", || listed(&place, server.pid).iter().any(|row| row.1 > 0));
    let output = place.run(&format!("probe {} list --watch", server.pid));
    assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let calls = |row: &&str| row.ends_with("Server.Program.Parse(string)");
    let rows: Vec<u64> = text
        .lines()
        .filter(calls)
        .map(|row| row.split_whitespace().next().expect("calls").replace(',', "").parse().expect("a number"))
        .collect();
    assert!(rows.len() >= 2 && rows.is_sorted() && rows[0] < rows[rows.len() - 1], "{text}");
    assert!(text.lines().any(|line| line.trim_start().starts_with("calls") && line.ends_with("method")), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(launcher.wait().expect("it ends").success());
    server.end();
}
