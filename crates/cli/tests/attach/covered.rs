//! Probes that come and go in a program whose lines are covered: `clrscope run -i coverage
//! --probe`, and `clrscope probe PID`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use clrscope_testkit::{self as testkit, Runtime};
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::said;

/// The fixture `Rounds` under `clrscope run`.
struct Rounds<'p> {
    place: &'p TestFolder,
    launcher: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pid: u32,
    /// Lines of the stack trace that each round prints, the throwing method's first.
    trace: [u64; 3],
    made: u64,
}

fn source() -> String {
    let path = testkit::workspace_root().join("dotnet/fixtures/Rounds/Rounds.cs");
    std::fs::read_to_string(path).expect("the source")
}

/// Number of the one line of the fixture that holds a text.
fn line(text: &str) -> u64 {
    let source = source();
    let found: Vec<u64> =
        (1..).zip(source.lines()).filter(|(_, line)| line.contains(text)).map(|line| line.0).collect();
    assert_eq!(found.len(), 1, "{text}: {found:?}");
    found[0]
}

impl<'p> Rounds<'p> {
    fn start(place: &'p TestFolder, runtime: &Runtime, coverage: &str) -> Self {
        let line_of =
            format!("run -i {coverage} --include [Rounds]Rounds.Program::* --probe Risky --quiet -o a.clrs --");
        let words = line_of.split(' ').map(OsString::from);
        let mut command = place.clrscope(words.chain(runtime.words(&testkit::fixture("Rounds"))));
        runtime.prepare(&mut command);
        testkit::let_children_hear();
        let mut launcher =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let (input, output) = (launcher.stdin.take().expect("a pipe"), launcher.stdout.take().expect("a pipe"));
        let mut output = BufReader::new(output);
        let mut first = String::new();
        output.read_line(&mut first).expect("it writes");
        let pid = first.strip_prefix("process ").and_then(|pid| pid.trim().parse().ok()).expect("its process");
        let trace = ["throw new InvalidOperationException(word)", "Fail(word); //", "Walk(word, true); //"].map(line);
        Self { place, launcher, input, output, pid, trace, made: 0 }
    }

    fn round(&mut self, word: &str) {
        writeln!(self.input, "{word}").expect("it reads");
        let mut next = || {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("it writes");
            line.trim_end().to_owned()
        };
        assert_eq!(next(), "round 65473", "{word}");
        for (method, line) in ["Fail", "Walk", "Trace"].iter().zip(self.trace) {
            assert_eq!(next(), format!("frame {method} {line}"), "{word}");
        }
        assert_eq!(next(), "done", "{word}");
        self.made += 1;
    }

    /// Rounds until methods are compiled for good.
    fn warm(&mut self) {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(1_500) {
            self.round("");
        }
    }

    fn probe(&self, words: &str) {
        let output = self.place.run(&format!("probe {} {words}", self.pid));
        assert!(output.status.success(), "{words}: {}", said(&output));
    }

    /// Calls so far by name, hits by the number of the line.
    fn counted(&self) -> BTreeMap<String, u64> {
        let output = self.place.run(&format!("probe {} list --format json", self.pid));
        probed(&serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    /// Two rounds in which the calls and hits of exactly these grow, by as much for each round.
    fn rounds_count(&mut self, word: &str, each: &[(&str, u64)]) {
        let before = self.counted();
        self.round(word);
        self.round("");
        let mut gained = self.counted();
        gained.iter_mut().for_each(|(name, count)| *count -= before.get(name).copied().unwrap_or(0));
        gained.retain(|_, count| *count > 0);
        let wanted = each.iter().map(|(name, count)| ((*name).to_owned(), 2 * count)).collect();
        assert_eq!(gained, wanted, "{word}");
    }

    /// Ends in order; how many rounds were made.
    fn end(self) -> u64 {
        let Self { launcher, input, mut output, made, .. } = self;
        drop(input);
        let mut rest = String::new();
        output.read_line(&mut rest).expect("it ends");
        assert_eq!(rest, "");
        let output = launcher.wait_with_output().expect("it ends");
        assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
        made
    }
}

/// Calls by the own names of methods, hits by the number of the line.
fn probed(list: &Value) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for row in list["rows"].as_array().expect("rows") {
        let name = row["name"].as_str().expect("a name").trim_start_matches("Rounds.Program::");
        let name = row["line"].as_u64().map_or(name.to_owned(), |line| line.to_string());
        *counted.entry(name).or_default() += row["calls"].as_u64().expect("a number");
    }
    counted
}

/// Hits by line that the source says of so many rounds, one for each word.
fn said_hits(rounds: u64) -> BTreeMap<u64, u64> {
    let hits = |line: &str| {
        let remark = line.rsplit_once("// ")?.1;
        match remark.strip_suffix(" each round") {
            Some(each) => Some(each.parse::<u64>().expect("a number") * rounds),
            None => remark.strip_prefix("only ").filter(|word| !word.contains(' ')).map(|_| 1),
        }
    };
    (1..).zip(source().lines()).filter_map(|(number, line)| Some((number, hits(line)?))).collect()
}

fn covered(place: &TestFolder) -> BTreeMap<u64, u64> {
    let output = place.run("report a.clrs --view coverage --lines --format json --limit 1000");
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows").iter();
    rows.map(|row| (row["line"].as_u64().expect("a line"), row["hits"].as_u64().expect("hits"))).collect()
}

/// Probes of methods and of a line come, go with others left, go all, and come in all methods,
/// while a program runs whose lines are covered: every line has its hits, those that run in one of
/// these times alone too, in the probed methods and in one that had taken a probed one in; calls
/// and hits of probes are exact; stack traces have their lines all the time.
fn come_and_go(coverage: &str, counts_hits: bool) {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut rounds = Rounds::start(&place, runtime, coverage);
        rounds.warm();
        let made = rounds.made;
        assert_eq!(rounds.counted(), BTreeMap::from([("Risky".to_owned(), 6 * made)]));
        rounds.probe("add Small Tiny::Of");
        rounds.rounds_count("inlined", &[("Risky", 6), ("Small", 60_000), ("Rounds.Tiny::Of", 60_000)]);
        rounds.warm();
        let in_loop = line("sum += Small(i) + Tiny.Of(i);").to_string();
        rounds.probe(&format!("add --at Rounds.cs:{in_loop}"));
        rounds.rounds_count("", &[("Risky", 6), ("Small", 60_000), ("Rounds.Tiny::Of", 60_000), (&in_loop, 60_000)]);
        rounds.probe(&format!("remove Small Tiny::Of --at Rounds.cs:{in_loop}"));
        rounds.rounds_count("removed", &[("Risky", 6)]);
        rounds.warm();
        rounds.probe("remove *");
        rounds.rounds_count("reverted", &[]);
        rounds.warm();
        rounds.probe("add [Rounds]*");
        let before = rounds.counted();
        rounds.round("all");
        rounds.warm();
        let (made, counted) = (rounds.made, rounds.counted());
        let gained = |name: &str| counted[name] - before.get(name).copied().unwrap_or(0);
        let of_all = gained("Risky") / 6;
        for (name, each) in [
            ("Small", 60_000),
            ("Rounds.Tiny::Of", 60_000),
            ("Walk", 2),
            ("Risky", 6),
            ("Larger", 3),
            ("Trace", 1),
            ("Fail", 1),
        ] {
            assert_eq!(gained(name), each * of_all, "{name} of {counted:?}");
        }
        assert_eq!(rounds.end(), made);
        let report: Value =
            serde_json::from_slice(&place.run("report a.clrs --view probes --format json").stdout).expect("JSON");
        assert_eq!(probed(&report), counted, "{report:#}");
        let (mut seen, mut wanted) = (covered(&place), said_hits(made));
        seen.retain(|line, _| wanted.contains_key(line));
        if !counts_hits {
            wanted.values_mut().for_each(|hits| *hits = (*hits).min(1));
        }
        assert_eq!(seen, wanted, "{coverage} on {}", runtime.version);
    });
}

#[test]
fn lines_are_counted_while_probes_come_and_go() {
    come_and_go("coverage", true);
}

/// Counters that have fired are left out of bodies that are compiled again, with probes and
/// without.
#[test]
fn lines_are_noted_while_probes_come_and_go() {
    come_and_go("coverage:hits=off", false);
}
