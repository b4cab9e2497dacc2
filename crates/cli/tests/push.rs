//! Pushing to real receivers, which are written from the public definitions (`receivers/`): they
//! accept, refuse, are slow, die, and answer 413 and 429. What they decode has the sums of the
//! reports.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use clrscope_recording::model::{Recording, ThreadRole};
use clrscope_recording::testing::samples::{HandSampled, STEP_NS};
use clrscope_recording::testing::synthetic::{Shape, write_directory};
use clrscope_testkit::{self as testkit, from_pypi, not_run, wait_for, wait_until};
use common::{TestFolder, write_packed};
use serde_json::Value;

const RECEIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/receivers/receiver.py");
const ABSENT: &str = "pushing to receivers: pip can't install gRPC and OpenTelemetry's classes here";

/// A receiver, which ends with the value.
struct Receiver {
    child: Child,
    folder: PathBuf,
    http: u16,
    grpc: u16,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Receiver {
    /// Starts a receiver that answers by a plan; more words are a port and a certificate.
    fn start(place: &TestFolder, name: &str, plan: &str, more: &[&str]) -> Option<Self> {
        let packages = from_pypi("grpcio==1.85.1 opentelemetry-proto==1.45.2", Path::new(env!("CARGO_TARGET_TMPDIR")))?;
        let folder = place.file(name);
        fs::create_dir_all(&folder).expect("a folder");
        let mut command = Command::new("python3");
        command.arg(RECEIVER).arg(&folder).arg(plan).args(more).env("PYTHONPATH", packages);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("Python starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("ports");
        let mut ports = line.split_whitespace().map(|port| port.parse().expect("a port"));
        let (http, grpc) = (ports.next().expect("a port"), ports.next().expect("a port"));
        Some(Self { child, folder, http, grpc })
    }

    /// All that it speaks.
    fn targets(&self) -> [String; 4] {
        let Self { http, grpc, .. } = self;
        [
            format!("pyroscope=http://127.0.0.1:{http}"),
            format!("pyroscope=http://127.0.0.1:{http}/ingest"),
            format!("otlp=http://127.0.0.1:{http}"),
            format!("otlp=grpc://127.0.0.1:{grpc}"),
        ]
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// The profiles that it accepted.
    fn accepted(&self) -> Vec<Value> {
        self.lines("accepted")
    }

    /// The requests that came, and how each was answered.
    fn steps(&self) -> Vec<String> {
        self.lines("requests").iter().map(|line| line["step"].as_str().expect("text").to_owned()).collect()
    }
}

/// A process with two threads: samples of the clock of the processor, of which each stands for a
/// millisecond, and a label.
fn sampled() -> Recording {
    let mut taken = HandSampled::default();
    let (main, mailer) = (taken.thread("", ThreadRole::Main), taken.thread("mailer", ThreadRole::User));
    for step in 0..40 {
        taken.cpu(
            main,
            step,
            ["App::Main > App.Cart::Total", "App::Main > App.Cart::Total > System.String::Concat"][step as usize % 2],
        );
        taken.wall(mailer, step, "System.Threading.Thread::Start > App.Mail::Send");
    }
    let deep: Vec<String> = (0..1_200).map(|depth| format!("App.Deep::At{depth}")).collect();
    taken.cpu(main, 41, &deep.join(" > "));
    let mut recording = taken.recording();
    recording.run.id = "fd23a8a7-e067-40d1-bd75-628657db4f24".to_owned();
    recording.run.started_unix_ns = 1_700_000_000_000_000_000;
    recording.run.duration_ns = 2 * 1_000 * STEP_NS;
    recording
}

/// A folder with `app.clrs`: that recording.
fn with_sampled() -> TestFolder {
    let place = TestFolder::new();
    write_packed(&sampled(), &place.file("app.clrs"));
    place
}

/// A folder with `big.clrs.d`, which takes many requests.
fn with_big() -> TestFolder {
    with_calls(2 << 20)
}

/// A folder with `big.clrs.d`, whose trees take so many bytes.
fn with_calls(tree_bytes: usize) -> TestFolder {
    let place = TestFolder::new();
    let shape = Shape { tree_bytes, threads: 4, functions: 20_000, ..Shape::default() };
    write_directory(&place.file("big.clrs.d"), &shape).expect("a recording");
    place
}

/// `clrscope push`, with a spool of the test, and a JSON document as its result.
fn push(place: &TestFolder, words: &[&str]) -> (Option<i32>, Value, String) {
    let output = command(place, words).output().expect("the tool starts");
    parsed(&output)
}

fn command(place: &TestFolder, words: &[&str]) -> Command {
    let mut command = place.clrscope(["push", "--push-spool", "spool", "--format", "json"]);
    command.args(words).env_remove("CLRSCOPE_PUSH_HEADERS");
    command
}

fn parsed(output: &Output) -> (Option<i32>, Value, String) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), report, said)
}

/// Sums of a type of values by function in which paths end, over profiles with different
/// identifiers: a profile can come twice.
fn own_by_function(accepted: &[Value], kind: &str) -> BTreeMap<String, u64> {
    let (mut sums, mut seen) = (BTreeMap::new(), BTreeSet::new());
    for profile in accepted {
        let types = profile["types"].as_array().expect("types");
        let Some(at) = types.iter().position(|of| of == kind) else { continue };
        let id = profile["id"].as_str().expect("an id");
        if !id.is_empty() && !seen.insert((id.to_owned(), kind.to_owned())) {
            continue;
        }
        for (path, values) in profile["sums"].as_object().expect("sums") {
            let function = path.rsplit(';').next().expect("a function").to_owned();
            *sums.entry(function).or_default() += values[at].as_u64().expect("a number");
        }
    }
    sums
}

/// Time of each function itself, as `clrscope report` has it.
fn reported(place: &TestFolder, recording: &str, metric: &str, key: &str) -> BTreeMap<String, u64> {
    let functions = place.json(&format!("report {recording} --view functions --metric {metric} --limit 1000000"));
    let rows = functions["rows"].as_array().expect("rows").clone();
    let mut sums = BTreeMap::new();
    for row in rows {
        let own = row[key].as_u64().unwrap_or_else(|| panic!("no {key} in {row}"));
        *sums.entry(row["name"].as_str().expect("a name").to_owned()).or_default() += own;
    }
    sums.retain(|_, own| *own > 0);
    sums
}

/// Files of a folder and the folders in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn parcels(place: &TestFolder) -> usize {
    files(&place.file("spool")).iter().filter(|file| file.extension().is_some_and(|end| end == "parcel")).count()
}

#[test]
fn every_receiver_gets_what_the_report_says() {
    let place = with_sampled();
    let Some(receiver) = Receiver::start(&place, "receiver", "ok", &[]) else { return not_run(ABSENT) };
    let report = reported(&place, "app.clrs", "cpu", "self_cpu_ns");
    // Of the deep path the outermost 1,000 frames are sent; its end is another function then.
    let deep = report.iter().find(|(name, _)| name.contains("Deep")).expect("the deep path").0.clone();
    let expected: BTreeMap<String, u64> = report
        .iter()
        .map(|(name, own)| (if *name == deep { "App.Deep::At999".to_owned() } else { name.clone() }, *own))
        .collect();
    assert_eq!(expected.values().sum::<u64>(), 41 * STEP_NS);
    for (number, target) in receiver.targets().iter().enumerate() {
        let before = receiver.accepted().len();
        let words = ["app.clrs", "--to", target, "--service", "shop", "--environment", "prod", "--label", "team=a,b"];
        let (code, report, said) = push(&place, &words);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{report:#}");
        let of = &report["targets"][0];
        assert_eq!(
            (&of["to"], &of["made"], of["retries"].as_u64()),
            (&Value::from(target.as_str()), &of["sent"], Some(0))
        );
        let accepted = receiver.accepted().split_off(before);
        assert_eq!(of["sent"]["profiles"], accepted.len());
        assert_eq!(own_by_function(&accepted, "cpu nanoseconds"), expected, "{target}");
        let counts = own_by_function(&accepted, "samples count");
        assert_eq!(counts.values().sum::<u64>(), 41 + 40, "of both clocks");
        assert_eq!(own_by_function(&accepted, "wall nanoseconds")["App.Mail::Send"], 40 * STEP_NS);
        for profile in &accepted {
            assert!(profile["depth"].as_u64().is_some_and(|depth| depth <= 1_000), "{}", profile["depth"]);
            assert_eq!(profile["time"], 1_700_000_000_000_000_000_u64);
            let labels = &profile["labels"];
            let keys: &[&str] = match number {
                0 | 1 => &["service_name", "deployment_environment_name", "team"],
                _ => &["service.name", "deployment.environment.name", "team"],
            };
            let team = if number == 1 { "a_b" } else { "a,b" };
            assert_eq!(keys.iter().map(|key| &labels[key]).collect::<Vec<_>>(), ["shop", "prod", team], "{labels}");
            if profile["types"][0] == "samples count" {
                let kind = profile["period"][0].as_str().expect("a period");
                assert_eq!(profile["period"][1], STEP_NS, "{kind}");
            }
        }
        if number == 0 {
            let names: BTreeSet<&str> = accepted.iter().map(|one| one["name"].as_str().expect("text")).collect();
            assert_eq!(names, BTreeSet::from(["process_cpu", "wall"]));
        }
        if number == 1 {
            let query = &accepted[0]["query"];
            assert_eq!((&query["from"], &query["until"]), (&"1700000000".into(), &"1700000002".into()));
            assert_eq!(query["sampleRate"], "1000");
        }
    }
    assert_eq!(parcels(&place), 0, "nothing is left");
}

#[test]
fn large_profiles_are_divided_by_the_limits_and_keep_their_sums() {
    let place = with_big();
    let Some(receiver) = Receiver::start(&place, "receiver", "ok", &[]) else { return not_run(ABSENT) };
    let calls = reported(&place, "big.clrs.d", "calls", "calls");
    for target in [&receiver.targets()[0], &receiver.targets()[2]] {
        let before = receiver.accepted().len();
        let (code, report, said) = push(&place, &["big.clrs.d", "--to", target]);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{report:#}");
        let accepted = receiver.accepted().split_off(before);
        assert!(report["targets"][0]["sent"]["requests"].as_u64().is_some_and(|requests| requests > 3), "{report:#}");
        for profile in &accepted {
            assert!(profile["samples"].as_u64().is_some_and(|samples| samples <= 16_000));
            assert!(profile["bytes"].as_u64().is_some_and(|bytes| bytes <= 4 << 20));
        }
        let ids: BTreeSet<&str> = accepted.iter().map(|one| one["id"].as_str().expect("an id")).collect();
        assert!(ids.contains("") || ids.len() == accepted.len(), "each has its own identifier");
        assert_eq!(own_by_function(&accepted, "calls count"), calls, "{target}");
    }
}

#[test]
fn what_a_receiver_finds_too_large_is_halved_until_it_fits() {
    let place = with_calls(1 << 19);
    for (name, most) in [("http", "max:40000"), ("grpc", "max:150000")] {
        let Some(receiver) = Receiver::start(&place, name, most, &[]) else { return not_run(ABSENT) };
        let targets = receiver.targets();
        let targets = if name == "grpc" { &targets[3..] } else { &targets[..3] };
        for target in targets {
            let before = receiver.accepted().len();
            let (code, report, said) = push(&place, &["big.clrs.d", "--to", target]);
            assert_eq!((code, said.as_str()), (Some(0), ""), "{report:#}");
            let of = &report["targets"][0];
            assert!(of["divided"].as_u64().is_some_and(|divided| divided > 2), "{report:#}");
            assert_eq!(of["made"]["samples"], of["sent"]["samples"]);
            let accepted = receiver.accepted().split_off(before);
            assert_eq!(own_by_function(&accepted, "calls count"), reported(&place, "big.clrs.d", "calls", "calls"));
        }
    }
    // Not even one sample fits.
    let Some(receiver) = Receiver::start(&place, "none", "413", &[]) else { return not_run(ABSENT) };
    let (code, report, _) = push(&with_sampled(), &["app.clrs", "--to", &receiver.targets()[0]]);
    let of = &report["targets"][0];
    assert_eq!((code, &of["refused"]["samples"]), (Some(5), &of["made"]["samples"]), "{report:#}");
    assert!(receiver.accepted().is_empty());
}

#[test]
fn a_receiver_that_is_away_or_slow_gets_everything_later() {
    let place = with_sampled();
    let Some(receiver) = Receiver::start(&place, "receiver", "429:1,503,die,ok", &[]) else { return not_run(ABSENT) };
    let report = reported(&place, "app.clrs", "cpu", "self_cpu_ns");
    let target = &receiver.targets()[0];
    let began = Instant::now();
    let (code, found, said) = push(&place, &["app.clrs", "--to", target]);
    assert_eq!((code, said.as_str(), &found["targets"][0]["retries"]), (Some(0), "", &3.into()), "{found:#}");
    assert!(began.elapsed() > Duration::from_secs(1), "Retry-After counts");
    let reasons = found["targets"][0]["reasons"].to_string();
    assert!(reasons.contains("429 Too Many Requests: because of the plan") && reasons.contains("503"), "{reasons}");
    assert_eq!(receiver.steps(), ["429:1", "503", "die", "ok", "ok"]);
    let sum = |receiver: &Receiver| own_by_function(&receiver.accepted(), "cpu nanoseconds").values().sum::<u64>();
    assert_eq!(sum(&receiver), report.values().sum::<u64>());
    // Not within this push: it waits in the spool, and the next one sends it, also without a
    // recording.
    for (name, plan, words) in [
        ("slow", "slow", &["--timeout", "300ms", "--retry-for", "0"][..]),
        ("long", "429:3600", &["--retry-for", "2s"]),
        ("dies", "die", &["--retry-for", "600ms"]),
    ] {
        let Some(mut first) = Receiver::start(&place, name, plan, &[]) else { return not_run(ABSENT) };
        let target = first.targets()[2].clone();
        let (code, report, _) = push(&place, &[&["app.clrs", "--to", &target], words].concat());
        let of = &report["targets"][0];
        assert_eq!(
            (code, &of["waiting"], of["sent"]["requests"].as_u64()),
            (Some(4), &of["made"], Some(0)),
            "{report:#}"
        );
        let kept = parcels(&place);
        assert!(kept > 0 && first.accepted().is_empty(), "{plan}");
        let _ = first.child.kill();
        let _ = first.child.wait();
        // Nobody is there.
        let (code, report, _) = push(&place, &["--to", &target, "--retry-for", "0"]);
        assert_eq!((code, parcels(&place)), (Some(4), kept));
        assert!(report["targets"][0]["reasons"][0].as_str().is_some_and(|why| why.contains("refused")), "{report:#}");
        let port = first.http.to_string();
        let Some(second) = Receiver::start(&place, &format!("{name} again"), "ok", &[&port]) else {
            return not_run(ABSENT);
        };
        // Another target leaves it alone.
        let (code, report, _) = push(&place, &["--to", &second.targets()[0]]);
        assert_eq!((code, report["waiting_for_others"]["requests"].as_u64()), (Some(0), Some(kept as u64)));
        let (code, report, said) = push(&place, &["--to", &target]);
        assert_eq!((code, said.as_str(), parcels(&place)), (Some(0), "", 0), "{report:#}");
        assert_eq!(sum(&second), sum(&receiver));
    }
}

#[test]
fn calls_by_grpc_are_sent_again_refused_and_counted() {
    let place = with_sampled();
    // UNAVAILABLE, RESOURCE_EXHAUSTED with a time.
    let Some(receiver) = Receiver::start(&place, "receiver", "14,8:0.7,partial", &[]) else { return not_run(ABSENT) };
    let target = receiver.targets()[3].clone();
    let (code, report, _) = push(&place, &["app.clrs", "--to", &target]);
    let of = &report["targets"][0];
    assert_eq!((code, of["retries"].as_u64(), &of["refused"]["profiles"]), (Some(5), Some(2), &1.into()), "{report:#}");
    assert!(of["reasons"].to_string().contains("one is too old"), "{report:#}");
    assert_eq!(receiver.steps(), ["14", "8:0.7", "partial"]);
    // INVALID_ARGUMENT is a refusal; UNAUTHENTICATED says nothing about the profile.
    for (name, plan, code, kept) in [("invalid", "3", 5, 0), ("unknown", "16", 4, 1)] {
        let Some(receiver) = Receiver::start(&place, name, plan, &[]) else { return not_run(ABSENT) };
        let (found, report, _) = push(&place, &["app.clrs", "--to", &receiver.targets()[3]]);
        assert_eq!((found, parcels(&place), receiver.steps().len()), (Some(code), kept, 1), "{report:#}");
        let reasons = report["targets"][0]["reasons"].to_string();
        assert!(reasons.contains(&format!("gRPC status {plan}: because of the plan")), "{reasons}");
    }
}

#[test]
fn what_is_refused_is_counted_and_what_is_shut_waits() {
    for (plan, code, reason) in
        [("400", 5, "400 Bad Request"), ("401", 4, "401 Unauthorized"), ("moved", 4, "it is at http://elsewhere/")]
    {
        let place = with_sampled();
        let Some(receiver) = Receiver::start(&place, "receiver", plan, &[]) else { return not_run(ABSENT) };
        for target in &receiver.targets()[..3] {
            let before = receiver.steps().len();
            let (found, report, _) = push(&place, &["app.clrs", "--to", target]);
            let of = &report["targets"][0];
            let (requests, key) = match code {
                5 => (of["made"]["requests"].as_u64().expect("a number"), "refused"),
                // The first answer is enough.
                _ => (1, "waiting"),
            };
            assert_eq!((found, &of[key]), (Some(code), &of["made"]), "{report:#}");
            assert_eq!((receiver.steps().len() - before) as u64, requests, "it is not tried again: {plan}");
            assert!(of["reasons"].to_string().contains(reason), "{report:#}");
        }
        assert_eq!(parcels(&place) > 0, code == 4);
    }
}

#[test]
fn the_spool_keeps_its_bound_and_counts_what_it_loses() {
    let place = with_big();
    let Some(receiver) = Receiver::start(&place, "receiver", "ok", &[]) else { return not_run(ABSENT) };
    let gone = "pyroscope=http://127.0.0.1:9";
    let words = ["big.clrs.d", "--to", gone, "--retry-for", "0", "--spool-size", "300k"];
    let (code, report, said) = push(&place, &words);
    let of = &report["targets"][0];
    let number = |tally: &Value, key: &str| tally[key].as_u64().expect("a number");
    assert!(number(&report["lost"], "requests") > 0 && number(&of["waiting"], "requests") > 0, "{report:#}");
    for key in ["requests", "profiles", "samples", "bytes"] {
        assert_eq!(
            number(&of["made"], key),
            number(&of["waiting"], key) + number(&report["lost"], key),
            "{key}: {report:#}"
        );
    }
    assert_eq!((code, &report["lost_ever"]), (Some(5), &report["lost"]));
    assert!(said.contains("is full: its oldest") && said.lines().count() == 1, "{said}");
    let size: u64 = files(&place.file("spool")).iter().map(|file| fs::metadata(file).expect("a file").len()).sum();
    assert!(size < 310_000, "{size}");
    // The next push loses the rest of the first, and both are remembered.
    let (_, again, _) = push(&place, &words);
    let both = number(&report["lost"], "samples") + number(&again["lost"], "samples");
    assert_eq!(number(&again["lost_ever"], "samples"), both);
    assert_eq!(number(&again["waiting_for_others"], "requests"), 0);
    // Others are sent beside it.
    let (code, report, _) = push(&place, &["--to", &receiver.targets()[0]]);
    assert_eq!(code, Some(0));
    assert!(number(&report["waiting_for_others"], "requests") > 0);
}

#[test]
fn killing_the_sender_loses_nothing_of_the_spool() {
    let place = with_big();
    let calls = reported(&place, "big.clrs.d", "calls", "calls");
    let Some(mut receiver) = Receiver::start(&place, "first", "ok,ok,slow", &[]) else { return not_run(ABSENT) };
    let target = receiver.targets()[0].clone();
    let mut sender =
        command(&place, &["big.clrs.d", "--to", &target]).stdout(Stdio::null()).spawn().expect("the tool starts");
    wait_until("the third request", || receiver.steps().len() >= 3);
    sender.kill().expect("it runs");
    sender.wait().expect("it ends");
    let _ = receiver.child.kill();
    let _ = receiver.child.wait();
    let mut accepted = receiver.accepted();
    let port = receiver.http.to_string();
    let Some(second) = Receiver::start(&place, "second", "ok", &[&port]) else { return not_run(ABSENT) };
    let (code, report, said) = push(&place, &["--to", &target]);
    assert_eq!((code, said.as_str(), parcels(&place)), (Some(0), "", 0), "{report:#}");
    accepted.extend(second.accepted());
    assert_eq!(own_by_function(&accepted, "calls count"), calls);
}

#[test]
fn killing_the_sender_while_it_fills_the_spool_leaves_whole_parcels() {
    let place = with_big();
    let gone = "pyroscope=http://127.0.0.1:9";
    for _ in 0..5 {
        let before = parcels(&place);
        let mut sender =
            command(&place, &["big.clrs.d", "--to", gone]).stdout(Stdio::null()).spawn().expect("the tool starts");
        wait_until("a parcel", || parcels(&place) > before + 1);
        sender.kill().expect("it runs");
        sender.wait().expect("it ends");
    }
    let kept = parcels(&place);
    let (code, report, said) = push(&place, &["--to", gone, "--retry-for", "0"]);
    assert_eq!((code, said.as_str()), (Some(4), ""));
    assert_eq!(report["targets"][0]["waiting"]["requests"], kept, "each can be read");
    let odd = files(&place.file("spool")).into_iter().filter(|file| file.to_string_lossy().contains("draft"));
    assert_eq!(odd.count(), 0, "what was half is gone");
}

#[test]
fn two_senders_share_a_spool_and_send_nothing_twice() {
    let place = with_big();
    let Some(receiver) = Receiver::start(&place, "receiver", "ok", &[]) else { return not_run(ABSENT) };
    let target = receiver.targets()[0].clone();
    let start = || {
        let mut command = command(&place, &["big.clrs.d", "--to", &target]);
        command.stdout(Stdio::piped()).spawn().expect("the tool starts")
    };
    let (first, second) = (start(), start());
    let done = [first, second].map(|child| parsed(&child.wait_with_output().expect("it ends")));
    let number = |report: &Value, key: &str| report["targets"][0][key]["requests"].as_u64().expect("a number");
    let made: u64 = done.iter().map(|(_, report, _)| number(report, "made")).sum();
    let sent: u64 = done.iter().map(|(_, report, _)| number(report, "sent")).sum();
    assert_eq!((sent, receiver.steps().len() as u64, parcels(&place)), (made, made, 0));
}

#[test]
fn a_folder_gets_the_recording_itself_with_its_labels() {
    let place = with_sampled();
    let words = ["app.clrs", "--to", "./bucket/profiles", "--service", "shop/eu", "--version", "1.4"];
    let (code, report, said) = push(&place, &words);
    assert_eq!((code, said.as_str()), (Some(0), ""), "{report:#}");
    let written = files(&place.file("bucket"));
    let name = "bucket/profiles/shop_eu-20231114T221320Z-fd23a8a7.clrs";
    assert_eq!(written, [place.file(name)]);
    assert_eq!(reported(&place, name, "cpu", "self_cpu_ns"), reported(&place, "app.clrs", "cpu", "self_cpu_ns"));
    let head = place.json(&format!("report {name} --view functions"))["recording"].clone();
    let resource = &head["processes"][0]["resource"];
    assert_eq!((&resource["service.name"], &resource["service.version"]), (&"shop/eu".into(), &"1.4".into()));
    // It is the same again.
    let (code, again, _) = push(&place, &words);
    assert_eq!((code, files(&place.file("bucket")).len(), &again["targets"]), (Some(0), 1, &report["targets"]));
    assert!(!place.file("spool").join("lock").exists() || parcels(&place) == 0);
    // A place that takes nothing.
    let (code, report, _) = push(&place, &["app.clrs", "--to", "app.clrs/below"]);
    assert_eq!((code, report["targets"][0]["waiting"]["requests"].as_u64()), (Some(4), Some(1)));
    assert!(
        report["targets"][0]["reasons"][0].as_str().is_some_and(|why| why.contains("not a directory")),
        "{report:#}"
    );
}

#[test]
fn a_dry_run_says_what_would_be_sent_and_writes_nothing() {
    let place = with_sampled();
    let words = ["app.clrs", "--to", "pyroscope=http://127.0.0.1:9", "--to", "out", "--dry-run"];
    let (code, report, said) = push(&place, &words);
    assert_eq!((code, said.as_str(), &report["dry_run"]), (Some(0), "", &true.into()), "{report:#}");
    let made = &report["targets"][0]["made"];
    assert_eq!((&made["requests"], &made["profiles"]), (&2.into(), &2.into()), "cpu and wall");
    assert!(!place.file("spool").exists() && !place.file("out").exists());
    let text = place.run("push app.clrs --to otlp=http://127.0.0.1:9 --dry-run --push-spool spool");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.starts_with("would push 4 profiles with ") && text.ends_with(" to otlp=http://127.0.0.1:9\n"),
        "{text}"
    );
}

#[test]
fn encrypted_receivers_are_trusted_by_their_certificates() {
    let place = with_sampled();
    let mut openssl = Command::new("openssl");
    openssl.args("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split(' '));
    openssl.args("-addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE".split(' '));
    openssl.args(["-keyout", "key.pem", "-out", "cert.pem"]).current_dir(place.path()).stderr(Stdio::null());
    if !openssl.status().is_ok_and(|status| status.success()) {
        return not_run("pushing over TLS: there is no openssl to make a certificate");
    }
    let pem = ["key.pem", "cert.pem"].map(|name| fs::read_to_string(place.file(name)).expect("a file")).concat();
    fs::write(place.file("both.pem"), pem).expect("a file");
    let certificate = place.file("both.pem").to_string_lossy().into_owned();
    let Some(receiver) = Receiver::start(&place, "receiver", "ok", &["0", &certificate]) else {
        return not_run(ABSENT);
    };
    let expected = reported(&place, "app.clrs", "cpu", "self_cpu_ns").values().sum::<u64>();
    for target in
        [format!("otlp=https://127.0.0.1:{}", receiver.http), format!("otlp=grpcs://127.0.0.1:{}", receiver.grpc)]
    {
        let (code, report, _) = push(&place, &["app.clrs", "--to", &target]);
        assert_eq!((code, receiver.accepted().len()), (Some(4), 0), "{report:#}");
        assert!(
            report["targets"][0]["reasons"][0].as_str().is_some_and(|why| why.contains("certificate")),
            "{report:#}"
        );
        let mut trusting = command(&place, &["--to", &target]);
        trusting.env("SSL_CERT_FILE", place.file("cert.pem"));
        let (code, report, _) = parsed(&trusting.output().expect("the tool starts"));
        assert_eq!(code, Some(0), "{report:#}");
        assert_eq!(own_by_function(&receiver.accepted(), "cpu nanoseconds").values().sum::<u64>(), expected);
        fs::remove_file(receiver.folder.join("accepted")).expect("a file");
    }
}

/// All that zstd has compressed in a file, and the file.
fn unpacked(file: &Path) -> Vec<u8> {
    let bytes = fs::read(file).expect("a file");
    let mut all = bytes.clone();
    for at in memchr_all(&bytes, &[0x28, 0xB5, 0x2F, 0xFD]) {
        let mut decoder = zstd::stream::read::Decoder::new(&bytes[at..]).expect("a decoder").single_frame();
        let _ = std::io::Read::read_to_end(&mut decoder, &mut all);
    }
    all
}

fn memchr_all<'a>(bytes: &'a [u8], needle: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    bytes.windows(needle.len()).enumerate().filter(move |(_, window)| *window == needle).map(|(at, _)| at)
}

#[test]
fn secrets_go_to_their_receiver_and_nowhere_else() {
    const SECRET: &str = "hush-8f2c1d5e9a";
    let runtime = testkit::runtimes().first().expect("a runtime");
    let place = TestFolder::new();
    // Outside: what it receives has the secret.
    let outside = TestFolder::new();
    let Some(receiver) = Receiver::start(&outside, "receiver", "echo,slow", &[]) else { return not_run(ABSENT) };
    let token = outside.file("token");
    fs::write(&token, SECRET).expect("a file");
    fs::write(outside.file("headers"), format!("Authorization: Bearer file:{}\nX-Key: {SECRET}\n", token.display()))
        .expect("a file");
    let target = receiver.targets()[0].clone();
    let program = runtime.command(&testkit::fixture("Labelled"));
    let mut run = place.clrscope([
        "run",
        "-i",
        "calls",
        "-i",
        "cpu",
        "-o",
        "app.clrs",
        "--push",
        &target,
        "--push-spool",
        "spool",
    ]);
    run.args(["--push-header-file".as_ref(), outside.file("headers").as_os_str()]).arg("--");
    run.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        value.into_iter().for_each(|value| _ = run.env(name, value));
    }
    run.env("CLRSCOPE_LOG", "debug").env("CLRSCOPE_PUSH_HEADERS", format!("X-Other: {SECRET}"));
    let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the tool starts");
    let pid = child.id();
    // It waits for the slow receiver.
    wait_until("the second request", || receiver.steps().len() >= 2);
    let line = fs::read(format!("/proc/{pid}/cmdline")).expect("it runs");
    let spooled = parcels(&place);
    assert!(spooled > 0);
    let look = |bytes: &[u8], what: &str| {
        assert_eq!(memchr_all(bytes, SECRET.as_bytes()).count(), 0, "{what}");
    };
    look(&line, "the command line");
    for file in files(place.path()) {
        look(&unpacked(&file), &file.to_string_lossy());
    }
    Command::new("kill").arg("-9").arg(pid.to_string()).status().expect("kill");
    let output = child.wait_with_output().expect("it ends");
    look(&output.stdout, "stdout");
    look(&output.stderr, "stderr");
    for request in receiver.lines("requests") {
        assert_eq!(request["headers"]["authorization"], format!("Bearer {SECRET}"), "{request:#}");
        assert_eq!(request["headers"]["x-other"], Value::Null, "the file comes first");
    }
    // What the receiver says of it is not said, either.
    let Some(echo) = Receiver::start(&outside, "echo", "echo", &[]) else { return not_run(ABSENT) };
    write_packed(&sampled(), &place.file("sampled.clrs"));
    let mut again = command(&place, &["sampled.clrs", "--to", &echo.targets()[0]]);
    let output =
        again.env("CLRSCOPE_PUSH_HEADERS", format!("Authorization: Basic {SECRET}")).output().expect("the tool starts");
    let (code, report, said) = parsed(&output);
    assert_eq!((code, said.as_str()), (Some(5), ""), "{report:#}");
    assert_eq!(echo.lines("requests")[0]["headers"]["authorization"], format!("Basic {SECRET}"));
    look(report.to_string().as_bytes(), "the report");
    assert!(report.to_string().contains("***"), "{report:#}");
}

#[test]
fn a_program_under_run_does_not_get_the_headers() {
    let place = TestFolder::new();
    let mut run = place.clrscope(["run", "-o", "app.clrs", "--", "/bin/sh", "-c", "echo [$CLRSCOPE_PUSH_HEADERS]"]);
    let output = run.env("CLRSCOPE_PUSH_HEADERS", "X-Key: hush").output().expect("the tool starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[]\n");
}

#[test]
fn secrets_on_the_command_line_are_refused_and_not_repeated() {
    let place = with_sampled();
    for (words, why) in [
        (&["--to", "pyroscope=http://user:hush@127.0.0.1"][..], "a user or a password"),
        (&["--to", "otlp=http://127.0.0.1?key=hush"], "has a query"),
        (&["--to", "otlp=http://127.0.0.1", "--push-header-file", "Authorization: hush"], "not the name of a file"),
        (&["--to", "otlp=http://127.0.0.1", "--push-header", "Authorization: hush"], "takes no header"),
    ] {
        let output = place.clrscope([&["push", "app.clrs"], words].concat()).output().expect("the tool starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 3), "{said}");
        assert!(said.contains(why) && said.contains("header-file") && !said.contains("hush"), "{said}");
    }
    // One receiver must not get the headers of another.
    fs::write(place.file("headers"), "X-Key: hush\n").expect("a file");
    let line =
        "push app.clrs --to otlp=http://127.0.0.1:9 --to pyroscope=http://127.0.0.1:8 --push-header-file headers";
    let said = place.run(line);
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.code() == Some(2) && text.contains("write the line [URL]") && !text.contains("hush"), "{text}");
    // A spool that others can write.
    fs::create_dir(place.file("open")).expect("a folder");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(place.file("open"), mode).expect("a mode");
    let said = place.run("push app.clrs --to otlp=http://127.0.0.1:9 --push-spool open");
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.code() == Some(1) && text.contains("can be written by others"), "{text}");
}

/// Runs a fixture with `--push`; its exit code, stdout and stderr.
fn run_pushing(
    place: &TestFolder,
    words: &[&str],
    fixture: &str,
    arguments: &[&str],
    runtime: &testkit::Runtime,
) -> (Option<i32>, String, String) {
    let program = runtime.command(&testkit::fixture(fixture));
    let mut run = place.clrscope([&["run", "--push-spool", "spool"], words, &["--"]].concat());
    run.arg(program.get_program()).args(program.get_args()).args(arguments);
    for (name, value) in program.get_envs() {
        value.into_iter().for_each(|value| _ = run.env(name, value));
    }
    let output = run.output().expect("the tool starts");
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    (output.status.code(), stdout, stderr)
}

#[test]
fn run_pushes_at_its_end_what_the_program_itself_counted() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let Some(receiver) = Receiver::start(&place, "receiver", "ok", &[]) else { return not_run(ABSENT) };
        let targets = receiver.targets();
        for (name, target) in [("a.clrs", &targets[0]), ("b.clrs", &targets[3])] {
            let before = receiver.accepted().len();
            let words = ["-i", "alloc:exact", "-o", name, "--label", "service.name=shop", "--push", target];
            let (code, stdout, stderr) = run_pushing(&place, &words, "Allocated", &["exact", "4", "200"], runtime);
            assert_eq!(code, Some(0), "{stderr}");
            assert!(stderr.contains("clrscope: pushed ") && stderr.contains(target.as_str()), "{stderr}");
            let counted: u64 =
                stdout.lines().find_map(|line| line.strip_prefix("bytes ")?.parse().ok()).expect("bytes");
            let accepted = receiver.accepted().split_off(before);
            let mut bytes = 0;
            for profile in &accepted {
                let kinds = profile["types"].as_array().expect("types");
                let wanted = ["alloc_space bytes", "bytes bytes"];
                let Some(at) = kinds.iter().position(|kind| wanted.iter().any(|wanted| kind == wanted)) else {
                    continue;
                };
                let sums = profile["sums"].as_object().expect("sums").iter();
                let work = sums.filter(|(path, _)| path.split(';').any(|frame| frame == "Allocated.Program::Work"));
                bytes += work.map(|(_, values)| values[at].as_u64().expect("a number")).sum::<u64>();
                let key = if profile["name"] == "memory" { "service_name" } else { "service.name" };
                assert_eq!(profile["labels"][key], "shop");
            }
            assert_eq!(bytes, counted, "{target}");
        }
        assert_eq!(parcels(&place), 0);
    });
}

#[test]
fn a_push_that_fails_changes_neither_the_recording_nor_the_exit_code() {
    let runtime = testkit::runtimes().first().expect("a runtime");
    let place = TestFolder::new();
    let bare = testkit::run({
        let mut bare = runtime.command(&testkit::fixture("Commands"));
        bare.arg("exit");
        bare
    });
    let words = ["--quiet", "-o", "app.clrs", "--push", "otlp=http://127.0.0.1:9"];
    let began = Instant::now();
    let (code, stdout, stderr) = run_pushing(&place, &words, "Commands", &["exit"], runtime);
    assert_eq!((code, stdout), (Some(bare.code()), bare.stdout_text()), "{stderr}");
    assert!(began.elapsed() < Duration::from_secs(40));
    let said: Vec<&str> = stderr.lines().filter(|line| line.starts_with("clrscope: ")).collect();
    assert_eq!(said.len(), 1, "{stderr}");
    assert!(said[0].contains("wait in") && said[0].contains("connection refused"), "{stderr}");
    assert!(said[0].ends_with("next: clrscope push --to otlp=http://127.0.0.1:9"), "{stderr}");
    assert!(place.run("report app.clrs").status.success() && parcels(&place) > 0);
    // What is wrong with the options is said before the program starts.
    let (code, stdout, stderr) = run_pushing(&place, &["--push", "otlp=nowhere"], "Commands", &["exit"], runtime);
    assert_eq!((code, stdout.as_str()), (Some(125), ""), "{stderr}");
}

#[test]
fn attach_pushes_at_its_end() {
    let runtime = testkit::runtimes().first().expect("a runtime");
    let place = TestFolder::new();
    let Some(receiver) = Receiver::start(&place, "receiver", "ok", &[]) else { return not_run(ABSENT) };
    let mut program = runtime.command(&testkit::fixture("Labelled"));
    testkit::let_children_hear();
    let mut child = program.arg("serve").stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    wait_for("the program", || lines.by_ref().find(|line| line == "True"));
    let target = &receiver.targets()[2];
    let words = [
        "attach",
        &child.id().to_string(),
        "-i",
        "cpu",
        "-i",
        "wall",
        "--duration",
        "1s",
        "-o",
        "a.clrs",
        "--push",
        target,
    ];
    let output = place.clrscope(words).args(["--push-spool", "spool"]).output().expect("the tool starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("clrscope: pushed "), "{said}");
    let own = |key: &str| own_by_function(&receiver.accepted(), key).values().sum::<u64>();
    let expected = reported(&place, "a.clrs", "wall", "self_wall_ns").values().sum::<u64>();
    assert_eq!(own("wall nanoseconds"), expected);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}
