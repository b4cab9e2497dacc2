//! Recordings that keep their last time only (`--last`), against what the program says of its own.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use clrscope_recording::layout::{self, chunk};
use clrscope_testkit::{self as testkit, Runtime, each_runtime, each_web_runtime, fixture};
use common::TestFolder;
use common::recent::{alone, throw, thrown};
use serde_json::Value;

/// Time that is kept.
const LAST: Duration = Duration::from_secs(2);
/// Time of the program. What it does after about eight seconds takes no more room.
const RUNS: Duration = Duration::from_secs(16);
const STEADY: Duration = Duration::from_secs(9);

fn run_recent(place: &TestFolder, runtime: &Runtime, options: &str, seconds: u64) -> Child {
    let words = format!("run -o r.clrs {options} --last {}s --", LAST.as_secs());
    let words = words.split_whitespace().map(Into::into);
    let program = runtime.words(&fixture("Recent")).into_iter();
    let mut command = place.clrscope(words.chain(program).chain([seconds.to_string().into()]));
    runtime.prepare(&mut command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

/// Bytes of the largest chunks.
const LARGEST_CHUNK: usize = 64 << 10;

/// Bytes of the chunks of events that a growing recording has, by file. More is made ready ahead of
/// need.
fn bytes_of_events(recording: &Path) -> BTreeMap<String, usize> {
    let folders = fs::read_dir(recording).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let named = files.filter_map(|file| Some((file.file_name().into_string().ok()?, fs::read(file.path()).ok()?)));
    let events = named.filter(|(name, _)| name.starts_with("events-"));
    events.map(|(name, bytes)| (name, bytes_of_chunks(&bytes[layout::HEADER_BYTES..]))).collect()
}

fn bytes_of_chunks(content: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match layout::u32_at(content, at + chunk::BYTES) as usize {
            0 => return at,
            bytes => at += bytes,
        }
    }
}

#[test]
fn what_the_program_did_in_the_last_time_is_kept_and_nothing_older() {
    let _alone = alone();
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let options = "-i cpu -i wall -i exceptions -i locks -i awaits";
        let child = run_recent(&place, runtime, options, RUNS.as_secs());
        let began = Instant::now();
        let folder = place.path().join("r.clrs.d");
        testkit::wait_until("the steady time", || began.elapsed() >= STEADY);
        let steady = bytes_of_events(&folder);
        testkit::wait_until("its end", || began.elapsed() >= RUNS - Duration::from_secs(1));
        let last = bytes_of_events(&folder);
        assert_eq!(steady.len(), 5, "{steady:?}");
        for (file, bytes) in &last {
            // The program does not do the same at all times, and a chunk more may have been begun.
            assert!(*bytes <= steady[file] / 4 * 5 + LARGEST_CHUNK, "{file} grew from {} to {bytes}", steady[file]);
        }
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

        let recording = clrscope_recording::open(&place.path().join("r.clrs")).expect("a recording");
        let process = &recording.processes[0];
        let [part] = process.parts.as_slice() else { panic!("{:?}", process.parts) };
        assert_eq!((part.name.as_str(), part.until_ns - part.since_ns), ("last 2 s", LAST.as_nanos() as u64));
        assert_eq!(process.losses.iter().map(|loss| loss.reason).collect::<Vec<_>>(), []);

        // Each throw of the last time is there, and each one that is there was in the last time.
        let report = place.json("report r.clrs --view exceptions --each --limit 1000000");
        let rows = report["rows"].as_array().expect("rows");
        let seen: BTreeMap<u64, (u64, u64)> = rows
            .iter()
            .map(|row| {
                let (number, at) = throw(row["message"].as_str().expect("a message"));
                (number, (at, row["time_ns"].as_u64().expect("a time")))
            })
            .collect();
        let thrown = thrown(&text);
        assert!(seen.len() > 500 && seen.len() < thrown.len() / 3, "{} of {}", seen.len(), thrown.len());
        // By the same clock, whatever the time at which each began; the stack is walked in between.
        let begin = seen.values().map(|(at, time_ns)| at - time_ns).max().expect("throws");
        let since = begin + part.since_ns;
        let missing: Vec<_> =
            thrown.iter().filter(|(number, at)| **at >= since && !seen.contains_key(number)).collect();
        assert_eq!(missing, [], "on {}", runtime.version);
        let too_old = seen.values().filter(|(_, time_ns)| *time_ns < part.since_ns).count();
        assert_eq!(too_old, 0, "on {}", runtime.version);

        // What took the time before is gone, and what takes it now has all of it.
        let functions = place.json("report r.clrs --view functions --metric cpu --just-my-code");
        let share = |name: &str| {
            let rows = functions["rows"].as_array().expect("rows");
            let row = rows.iter().find(|row| row["name"] == name);
            row.and_then(|row| row["self_samples"].as_u64())
        };
        assert!(share("Recent.Program::Late") > Some(100), "{functions:#}");
        assert_eq!(share("Recent.Program::Early"), None);
        for view in ["locks", "awaits", "summary", "tree --metric wall"] {
            place.json(&format!("report r.clrs --view {view}"));
        }
    });
}

#[test]
fn the_last_time_is_written_out_when_something_happens_and_by_command() {
    let _alone = alone();
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let child = run_recent(&place, runtime, "-i exceptions --on exception:Numbered", 7);
        let first = place.path().join("r-1.clrs");
        testkit::wait_until("the first copy", || first.is_file());
        let pid = place.json("report r.clrs.d")["recording"]["processes"][0]["pid"].as_u64().expect("a process");
        let output = place.run(&format!("record {pid} write"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && said.contains("written to 'r-2.clrs'"), "{said}");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let written: Vec<&str> = said.lines().filter(|line| line.contains("Recent.Numbered was thrown")).collect();
        // At once, and then not before the time that is kept has passed.
        assert!((3..=4).contains(&written.len()), "{said}");
        assert!(written[0].ends_with("written to 'r-1.clrs'"), "{said}");
        assert!(
            written[1].contains("more since the last time that it was written out): written to 'r-3.clrs'"),
            "{said}"
        );
        for name in ["r-1.clrs", "r-2.clrs", "r-3.clrs", "r.clrs"] {
            let report = place.json(&format!("report {name} --view exceptions"));
            assert!(report["rows"][0]["count"].as_u64() > Some(0), "{name}: {report:#}");
        }
        let report = place.run("report r-3.clrs");
        let text = String::from_utf8_lossy(&report.stdout);
        assert!(text.contains("Recent.Numbered was thrown"), "{text}");
    });
}

/// The event source's own `level` is 42.5, and the meter's is 7.25.
#[test]
fn the_last_time_is_written_out_when_a_counter_is_above_its_bound() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let options = "run -o r.clrs -i counters --last 60s --on counter:level>42.5 --on counter:Counts.Shop/level>7";
        let words = options.split_whitespace().map(Into::into).chain([String::from("--").into()]);
        let program = runtime.words(&fixture("Counts")).into_iter().chain(["20".into()]);
        let mut command = place.clrscope(words.chain(program));
        runtime.prepare(&mut command);
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let why = "Counts.Shop/level was 7.25 (--on counter:Counts.Shop/level>7): written to 'r-1.clrs'";
        let written: Vec<&str> = said.lines().filter(|line| line.contains("written to")).collect();
        assert!(matches!(written.as_slice(), [one] if one.contains(why)), "{said} on {}", runtime.version);
        let report = place.json("report r-1.clrs --view counters --name Counts.Shop/level");
        assert_eq!(report["rows"][0]["value"], 7.25, "{report:#} on {}", runtime.version);
    });
}

/// Requests with what is under way, by direction, name and number of whole and other ones.
fn requests(place: &TestFolder, name: &str) -> Vec<(String, String, u64, u64)> {
    let report = place.json(&format!("report {name} --view requests"));
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let number = |row: &Value, key: &str| row[key].as_u64().unwrap_or_default();
    let rows = report["rows"].as_array().expect("rows");
    let held = rows.iter().filter(|row| text(row, "route").starts_with("GET ") && number(row, "partial") > 0);
    let mut held: Vec<_> = held
        .map(|row| (text(row, "direction"), text(row, "route"), number(row, "count"), number(row, "partial")))
        .collect();
    held.sort();
    held
}

#[test]
fn copies_have_the_requests_under_way_and_the_recording_has_their_ends() {
    each_web_runtime(|runtime| {
        let place = TestFolder::new();
        let words = "run -o r.clrs -i requests --last 60s --".split_whitespace().map(Into::into);
        let program = runtime.words(&fixture("Serves")).into_iter().chain(["1".into(), "wait".into()]);
        let mut command = place.clrscope(words.chain(program));
        runtime.prepare(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut input = child.stdin.take().expect("its input");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut read_to = |wanted: &str| lines.by_ref().map(|line| line.expect("text")).find(|line| line == wanted);
        // A request that the program makes of itself is under way.
        assert!(read_to("READY").is_some());
        let pid = place.json("report r.clrs.d")["recording"]["processes"][0]["pid"].as_u64().expect("a process");
        for copy in ["r-1.clrs", "r-2.clrs"] {
            let output = place.run(&format!("record {pid} write"));
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let held = requests(&place, copy);
            let [(made, target, 0, 1), (served, route, 0, 1)] = held.as_slice() else { panic!("{copy}: {held:?}") };
            assert_eq!((made.as_str(), served.as_str(), route.as_str()), ("made", "served", "GET /held"));
            assert!(target.starts_with("GET 127.0.0.1:"), "{target}");
        }
        writeln!(input, "go on").expect("it reads");
        assert!(read_to("DONE").is_some());
        writeln!(input, "end").expect("it reads");
        drop(input);
        assert!(read_to("").is_none() && child.wait().expect("it ends").success(), "on {}", runtime.version);
        assert_eq!(requests(&place, "r.clrs"), [], "on {}", runtime.version);
        let report = place.json("report r.clrs --view requests");
        let rows = report["rows"].as_array().expect("rows");
        let held = rows.iter().find(|row| row["direction"] == "served" && row["route"] == "GET /held");
        assert_eq!(held.map(|row| row["count"].as_u64()), Some(Some(1)), "{report:#} on {}", runtime.version);
    });
}

#[test]
fn what_can_t_be_kept_or_seen_is_refused_by_name() {
    let place = TestFolder::new();
    let refused = |words: &str| {
        let output = place.run(&format!("run {words} -- true"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{words}: {said}");
        said
    };
    assert!(refused("--last 10ms").contains("'10ms' is not between 1s and 24h"));
    assert!(refused("--last soon").contains("hint: write --last 60s"));
    assert!(refused("-i calls --last 60s").contains("'calls' covers the whole recording"));
    assert!(refused("-i requests --on request>2s").contains("hint: say how much to keep: --last 60s"));
    assert!(refused("--last 60s --on request>2s").contains("hint: add it: -i requests"));
    assert!(refused("--last 60s --on counter:cpu-usage>90").contains("hint: add it: -i counters"));
    assert!(refused("-i counters --last 60s --on counter:cpu-usage").contains("counter:NAME>NUMBER"));
    assert!(refused("--last 60s --on gc").contains("hint: write --on 'request>2s'"));
    let output = place.run("env -i exceptions --last 60s --on exception:IOException");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("hint: attach to the program"), "{said}");
}
