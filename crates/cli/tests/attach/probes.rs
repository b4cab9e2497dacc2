//! `clrscope attach PID --probe`: calls are counted in a program that runs, its methods run their
//! own code afterwards, and the agent sleeps until the next attach.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use clrscope_testkit::{self as testkit, Runtime};
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::{Server, attach, kill, listed, recorded, refused, said, some_runtime, thrown};

/// Calls of the method for each line that the program is given.
pub(crate) const BATCH: u64 = 2_000_000;

/// A program that calls a method so often for each line that it is given, and then says how often
/// it was called in all.
pub(crate) struct Counter {
    fixture: &'static str,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(crate) said: u64,
}

impl Counter {
    pub(crate) fn start(runtime: &Runtime) -> Self {
        Self::spawn("Counter", runtime)
    }

    pub(crate) fn spawn(fixture: &'static str, runtime: &Runtime) -> Self {
        let mut command = runtime.command(&testkit::fixture(fixture));
        command.args(["-".to_owned(), BATCH.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        testkit::let_children_hear();
        let mut child = command.spawn().expect("the program starts");
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut counter = Self { fixture, child, input, output: BufReader::new(output), said: 0 };
        // Until its methods are compiled for good.
        for _ in 0..20 {
            counter.batch();
        }
        counter
    }

    /// The method that it calls.
    pub(crate) fn method(&self) -> String {
        format!("{}.Program::Step", self.fixture)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// One batch of calls, which the program counts as without us; the time that it took.
    pub(crate) fn batch(&mut self) -> Duration {
        let began = Instant::now();
        self.input.write_all(b"\n").expect("it reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        self.said += BATCH;
        assert_eq!(line, format!("count {}\n", self.said));
        began.elapsed()
    }

    /// The shortest time of a few batches: that of an uninterrupted one.
    pub(crate) fn shortest(&mut self) -> Duration {
        (0..10).map(|_| self.batch()).min().expect("some")
    }

    /// A batch as fast as code without probes is; with probes a batch takes ten times as long. It
    /// is waited for: on a busy machine most are interrupted, and the runtime takes its time until
    /// it compiles for good.
    pub(crate) fn as_fast_as(&mut self, bare: Duration, place: &str) -> Duration {
        let mut shortest = Duration::MAX;
        for _ in 0..500 {
            shortest = shortest.min(self.batch());
            if shortest < bare * 2 {
                return shortest;
            }
        }
        panic!("{place}: {bare:?} bare, {shortest:?} afterwards");
    }

    fn left_over(&self) -> BTreeSet<String> {
        testkit::left_over(self.pid())
    }

    /// The socket at which the agent listens while it sleeps. Killed programs leave theirs, and ids
    /// of processes come again: the start of the process tells them apart.
    fn socket(&self) -> Option<PathBuf> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).ok()?;
        let started = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?;
        let start = format!("clrscope-agent-{}-{started}-", self.pid());
        let entries = std::fs::read_dir(std::env::temp_dir()).expect("a folder").flatten();
        entries.map(|entry| entry.path()).find(|path| path.display().to_string().contains(&start))
    }

    pub(crate) fn assert_asleep(&self, place: &str) {
        assert_eq!(self.left_over(), BTreeSet::from(["clrscope-sleeps\n".to_owned()]), "{place}");
        assert!(self.socket().is_some(), "{place}");
    }

    /// Ends in order.
    pub(crate) fn end(self) {
        let socket = self.socket();
        let Self { mut child, input, output, .. } = self;
        drop(input);
        assert_eq!(output.lines().count(), 0, "it says nothing more");
        assert!(child.wait().expect("it ends").success());
        assert!(socket.is_none_or(|socket| !socket.exists()), "the socket is gone");
    }
}

/// Calls that a recording has of the one method with probes; `None` before it has any.
fn counted(place: &TestFolder, name: &str) -> Option<(u64, u64)> {
    let output = place.run(&format!("report {name} --view probes --format json"));
    let report: Value = serde_json::from_slice(&output.stdout).ok()?;
    let [row] = report["rows"].as_array()?.as_slice() else { return None };
    Some((row["calls"].as_u64()?, row["active"].as_u64()?))
}

/// An attach that goes on until it is ended, once the calls of the program's batches are counted:
/// with the number of those so far.
pub(crate) fn attached(place: &TestFolder, counter: &mut Counter, name: &str) -> (Child, u64) {
    let line = format!("--probe {} -o {name}", counter.method());
    let launcher = attach(place, counter.pid(), &line).stderr(Stdio::piped()).spawn().expect("the tool starts");
    let growing = format!("{name}.d");
    let calls = testkit::wait_for("calls that are counted", || {
        counter.batch();
        counted(place, &growing).map(|counted| counted.0).filter(|calls| *calls > 0)
    });
    (launcher, calls)
}

/// Attaches, and compares what is counted with what the program says that it did meanwhile.
fn count_and_compare(place: &TestFolder, counter: &mut Counter, name: &str) -> Duration {
    let (launcher, before) = attached(place, counter, name);
    let (said_before, shortest) = (counter.said, counter.shortest());
    kill(launcher.id(), "INT");
    let output = launcher.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", said(&output));
    let calls = counted(place, name).expect("the method");
    assert_eq!(calls, (before + counter.said - said_before, 0), "{name}: {}", said(&output));
    shortest
}

/// Probes three times, and between them and after them the speed of the program without us.
fn probe_three_times(fixture: &'static str) {
    testkit::each_runtime(|runtime| {
        let (place, mut counter) = (TestFolder::new(), Counter::spawn(fixture, runtime));
        let bare = counter.shortest();
        for name in ["first.clrs", "second.clrs", "third.clrs"] {
            let place_of = format!("{fixture}, {name} on {}", runtime.version);
            let probed = count_and_compare(&place, &mut counter, name);
            counter.assert_asleep(&place_of);
            let after = counter.as_fast_as(bare, &place_of);
            assert!(probed > after * 2, "{place_of}: {bare:?}, {probed:?}, {after:?}");
        }
        counter.end();
    });
}

#[test]
fn methods_of_a_running_program_are_probed_again_and_again_and_run_their_own_code_in_between() {
    probe_three_times("Counter");
}

/// The caller is compiled again because of the probes; afterwards it has its own code again, too.
#[test]
fn a_method_that_was_inlined_is_probed_and_inlined_again_afterwards() {
    probe_three_times("Inlined");
}

/// A woken agent records whatever an attach can, and sleeps again.
#[test]
fn an_agent_that_sleeps_is_woken_by_an_attach_for_anything_else() {
    testkit::each_runtime(|runtime| {
        let (place, mut counter) = (TestFolder::new(), Counter::start(runtime));
        count_and_compare(&place, &mut counter, "probes.clrs");
        for (instruments, view) in
            [("cpu", "functions"), ("wall", "functions"), ("gc", "gc"), ("events:threads", "events")]
        {
            let name = format!("{}.clrs", instruments.replace(':', "-"));
            let line = format!("-i {instruments} --duration 500ms -o {name}");
            let launcher =
                attach(&place, counter.pid(), &line).stderr(Stdio::piped()).spawn().expect("the tool starts");
            let until = Instant::now() + Duration::from_millis(1_500);
            while Instant::now() < until {
                counter.batch();
            }
            let output = launcher.wait_with_output().expect("it ends");
            assert!(output.status.success(), "{instruments}: {}", said(&output));
            let report = place.run(&format!("report {name} --view {view} --format json"));
            assert!(report.status.success(), "{instruments}: {}", said(&report));
            if instruments == "cpu" {
                let text = String::from_utf8_lossy(&report.stdout);
                assert!(text.contains("Counter.Program::Step") || text.contains("Counter.Program::Answer"), "{text}");
            }
            counter.assert_asleep(&format!("{instruments} on {}", runtime.version));
        }
        count_and_compare(&place, &mut counter, "again.clrs");
        counter.end();
    });
}

/// Collections are followed from the first attach on or not at all: that is refused in words, and
/// the agent sleeps on.
#[test]
fn a_snapshot_of_the_heap_after_probes_is_refused_and_the_agent_sleeps_on() {
    testkit::each_runtime(|runtime| {
        let (place, mut counter) = (TestFolder::new(), Counter::start(runtime));
        count_and_compare(&place, &mut counter, "probes.clrs");
        let refusal = refused(&place, counter.pid(), "-i heap");
        assert!(refusal.contains("because it changed methods"), "{refusal}");
        counter.assert_asleep(&runtime.version.to_string());
        count_and_compare(&place, &mut counter, "again.clrs");
        counter.end();
    });
}

#[test]
fn probes_go_when_the_launcher_is_killed() {
    testkit::each_runtime(|runtime| {
        let (place, mut counter) = (TestFolder::new(), Counter::start(runtime));
        let bare = counter.shortest();
        for name in ["first.clrs", "second.clrs"] {
            let (mut launcher, _) = attached(&place, &mut counter, name);
            launcher.kill().expect("it lives");
            launcher.wait().expect("it ends");
            testkit::wait_until("the agent's sleep", || {
                counter.left_over() == BTreeSet::from(["clrscope-sleeps\n".to_owned()]) && counter.socket().is_some()
            });
            let calls = counted(&place, &format!("{name}.d"));
            counter.as_fast_as(bare, &format!("{name} on {}", runtime.version));
            assert_eq!(counted(&place, &format!("{name}.d")), calls, "nothing is counted any more");
        }
        count_and_compare(&place, &mut counter, "third.clrs");
        counter.end();
    });
}

/// Four threads that take requests, with exceptions: as many calls as the program made between two
/// moments.
#[test]
fn calls_of_several_threads_and_their_failures_are_counted_in_a_running_program() {
    testkit::each_runtime(|runtime| {
        let (place, server) = (TestFolder::new(), Server::start(runtime));
        let line = "--probe Server.Program::* --duration 1s -o a.clrs";
        let output = attach(&place, server.pid, line).output().expect("the tool starts");
        assert!(output.status.success(), "{}", said(&output));
        let report = place.run("report a.clrs --view probes --format json");
        let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
        let row = |name: &str| {
            let rows = report["rows"].as_array().expect("rows");
            rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} in {report:#}")).clone()
        };
        let number = |name: &str, key: &str| row(name)[key].as_u64().expect("a number");
        let [request, parse, failed] = ["Request", "Parse", "Failed"].map(|name| format!("Server.Program::{name}"));
        // At the beginning and at the end four threads are somewhere between the two.
        assert!(number(&request, "calls").abs_diff(number(&parse, "calls")) <= 8, "{report:#}");
        assert!(number(&parse, "failed").abs_diff(number(&failed, "calls")) <= 8, "{report:#}");
        assert!(number(&failed, "calls") > 10 && number(&request, "failed") == 0, "{report:#}");
        assert_eq!(server.left_over(), BTreeSet::from(["clrscope-sleeps\n".to_owned()]));
        assert!(thrown(&recorded(&place, server.pid, "-i exceptions --duration 300ms", "b.clrs")) > 0);
        server.end();
    });
}

/// Thousands of methods take seconds to be given probes, and the recording was over before the
/// first call was counted.
#[test]
fn a_duration_begins_when_methods_have_their_probes() {
    let runtime = some_runtime();
    let (place, server) = (TestFolder::new(), Server::start(runtime));
    let line = "--probe [System.Private.CoreLib]* --probe Server.Program::Request --duration 100ms -o a.clrs";
    let output = attach(&place, server.pid, line).output().expect("the tool starts");
    assert!(output.status.success(), "{}", said(&output));
    let report = place.run("report a.clrs --view probes --format json");
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let request = rows.iter().find(|row| row["name"] == "Server.Program::Request").expect("it has probes");
    assert!(request["calls"].as_u64().is_some_and(|calls| calls > 10), "{request:#} among {}", rows.len());
    server.end();
}

#[test]
fn a_pattern_that_matches_no_method_leaves_the_program_as_it_was() {
    testkit::each_runtime(|runtime| {
        let (place, server) = (TestFolder::new(), Server::start(runtime));
        let refusal = refused(&place, server.pid, "--probe Server.Program::Requst");
        assert!(refusal.contains("matches --probe 'Server.Program::Requst'"), "{refusal}");
        assert!(refusal.contains("Server.Program::Request"), "a name that is like it: {refusal}");
        assert_eq!(server.left_over(), BTreeSet::new());
        // An agent that could recompile methods would stay.
        recorded(&place, server.pid, "-i exceptions --duration 200ms", "a.clrs");
        assert_eq!(server.left_over(), BTreeSet::new());
        server.end();
    });
}

/// One pattern of three is misspelt: that is said while the recording goes on, once for a program
/// whose runtime loads the agent and once for one in which the agent sleeps, but not to a user who
/// wants only errors. The other patterns match in different modules, and all of these are
/// searched.
#[test]
fn a_pattern_that_matches_no_method_beside_others_that_do_is_said_at_once() {
    testkit::each_runtime(|runtime| {
        let (place, counter) = (TestFolder::new(), Counter::start(runtime));
        let probes = format!("--probe [System.Private.CoreLib]System.String::Concat --probe {}", counter.method());
        let expected = "clrscope: --probe 'Counter.Program::Stepp' matched no method of any loaded assembly; \
                        did you mean 'Counter.Program::Step'?\n";
        for name in ["a.clrs", "b.clrs"] {
            let (began, longest) = (Instant::now(), Duration::from_secs(120));
            let line = format!("{probes} --probe Counter.Program::Stepp -o {name} --duration 120s");
            let launched = attach(&place, counter.pid(), &line).stderr(Stdio::piped()).spawn();
            let mut launcher = launched.expect("the tool starts");
            let mut said = BufReader::new(launcher.stderr.take().expect("a pipe"));
            let [stays, line] = [(); 2].map(|()| {
                let mut line = String::new();
                said.read_line(&mut line).expect("a line");
                line
            });
            let why = "clrscope: 'probes' changes methods, so the runtime will not detach the agent";
            assert!(stays.starts_with(why), "{stays}");
            assert_eq!(line, expected, "{name} on {}", runtime.version);
            assert!(launcher.try_wait().expect("it can be asked").is_none(), "it still records");
            assert!(began.elapsed() < longest, "not at the end: {:?}", began.elapsed());
            kill(launcher.id(), "INT");
            let mut rest = String::new();
            std::io::Read::read_to_string(&mut said, &mut rest).expect("text");
            assert!(launcher.wait().expect("it ends").success() && rest.contains(expected), "as ever: {rest}");
            counter.assert_asleep(&format!("{name} on {}", runtime.version));
        }
        let line = format!("{probes} --probe Counter.Program::Stepp -o c.clrs --duration 200ms --quiet");
        let output = attach(&place, counter.pid(), &line).output().expect("the tool starts");
        assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
        counter.end();
    });
}

/// Lists the process while its agent records, while it sleeps, and while it records once more.
#[test]
fn ps_tells_an_agent_that_sleeps_from_one_that_records() {
    testkit::each_runtime(|runtime| {
        let (place, mut counter) = (TestFolder::new(), Counter::start(runtime));
        let pid = counter.pid().to_string();
        let column = || {
            let text = String::from_utf8_lossy(&place.run("ps").stdout).into_owned();
            let mut rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let heads = rows.next().expect("heads");
            // An uptime has several words, so the column is looked for from the program's name on.
            assert_eq!(&heads[6..8], ["agent", "program"], "{text}");
            let row = rows.find(|row| row.first() == Some(&pid.as_str())).unwrap_or_else(|| panic!("{pid} in {text}"));
            let program = row.iter().position(|word| *word == "Counter").expect("its name");
            row[program - 1].to_owned()
        };
        assert_eq!((column().as_str(), &listed(&place, counter.pid())["agent_sleeps"]), ("no", &false.into()));
        for name in ["a.clrs", "b.clrs"] {
            let (launcher, _) = attached(&place, &mut counter, name);
            let row = listed(&place, counter.pid());
            assert_eq!((&row["agent"], &row["agent_sleeps"]), (&true.into(), &false.into()), "{row:#}");
            assert_eq!(column(), "yes");
            kill(launcher.id(), "INT");
            assert!(launcher.wait_with_output().expect("it ends").status.success());
            let row = listed(&place, counter.pid());
            assert_eq!((&row["agent"], &row["agent_sleeps"]), (&true.into(), &true.into()), "{row:#}");
            assert_eq!(column(), "sleeps");
        }
        counter.end();
    });
}

/// Only the user of the process can open the socket. What is no question is answered and forgotten.
#[test]
fn an_agent_that_sleeps_answers_nonsense_and_sleeps_on() {
    let (place, mut counter) = (TestFolder::new(), Counter::start(some_runtime()));
    count_and_compare(&place, &mut counter, "a.clrs");
    let socket = counter.socket().expect("it sleeps");
    for question in ["", "GET / HTTP/1.1\r\n\r\n", "clrscope wake 0.0.0-other\ncpu"] {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).expect("somebody listens");
        stream.write_all(question.as_bytes()).expect("is said");
        stream.shutdown(std::net::Shutdown::Write).expect("is said");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).expect("an answer");
        assert!(!answer.is_empty() && answer != "awake", "{question:?}: {answer}");
    }
    let mode = Command::new("stat").args(["-c", "%a"]).arg(&socket).output().expect("stat").stdout;
    assert_eq!(String::from_utf8_lossy(&mode), "600\n");
    counter.assert_asleep("after nonsense");
    count_and_compare(&place, &mut counter, "b.clrs");
    counter.end();
}
