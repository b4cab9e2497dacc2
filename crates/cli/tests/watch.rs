//! `clrscope watch`, against what the programs say of their own.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use clr_diagnostics::Process;
use clrscope_contract::control_socket::{Answer, socket_name};
use clrscope_testkit::{self as testkit, Runtime, each_runtime, fixture};
use common::TestFolder;
use common::recent::{alone, throw, thrown};
use serde_json::Value;
use testkit::confine::{as_user, is_root, with_folder_at};

/// Class of the example profiler.
const TRACE: &str = "{E8B0E2D3-5E0C-4C57-8B7D-1D5D4F4C9B32}";

/// A program with a file of its own in the folder of the test, so that a pattern chooses it alone.
fn copied(place: &TestFolder, name: &str) -> PathBuf {
    for file in [format!("{name}.dll"), format!("{name}.runtimeconfig.json")] {
        fs::copy(fixture(name).with_file_name(&file), place.file(&file)).expect("a copy");
    }
    place.file(&format!("{name}.dll"))
}

/// A program of the test's folder, which prints into a file.
struct Started {
    child: Child,
    printed: PathBuf,
}

impl Started {
    fn start(place: &TestFolder, mut command: Command, name: &str) -> Self {
        let (printed, said) = (place.file(name), place.file(&format!("{name}.stderr")));
        command.stdin(Stdio::null()).stdout(fs::File::create(&printed).expect("a file"));
        command.stderr(fs::File::create(said).expect("a file"));
        Self { child: command.spawn().expect("it starts"), printed }
    }

    /// The program that throws numbered exceptions for so many seconds.
    fn recent(place: &TestFolder, runtime: &Runtime, seconds: &str, name: &str) -> Self {
        let mut command = runtime.command(&copied(place, "Recent"));
        command.arg(seconds);
        Self::start(place, command, name)
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it printed, after an orderly end.
    fn ended(mut self) -> String {
        let status = self.child.wait().expect("it ends");
        let said = fs::read_to_string(format!("{}.stderr", self.printed.display())).expect("a file");
        assert!(status.success() && said.is_empty(), "{status}: {said}");
        fs::read_to_string(&self.printed).expect("a file")
    }

    fn kill(mut self) {
        // It may have ended.
        let _ = self.child.kill();
        self.child.wait().expect("it ended");
    }
}

/// A watch of the programs in the test's folder.
struct Watch<'a> {
    place: &'a TestFolder,
    child: Child,
    said: PathBuf,
}

impl<'a> Watch<'a> {
    fn command(place: &TestFolder, options: &str) -> Command {
        let every = if options.contains("--every") { "" } else { "--every 2s" };
        // Of a build without optimisation recording costs more than usual.
        let budget = if options.contains("--budget") { "" } else { "--budget 100%" };
        let line = format!("watch --lock lock -o out {every} {budget} {options} --only");
        let words = line.split_whitespace().map(str::to_owned);
        let folder = fs::canonicalize(place.path()).expect("the folder");
        place.clrscope(words.chain([format!("{}/*", folder.display())]))
    }

    fn start(place: &'a TestFolder, options: &str) -> Self {
        Self::spawn(place, Self::command(place, options))
    }

    fn spawn(place: &'a TestFolder, mut command: Command) -> Self {
        static STARTED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = STARTED.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let said = place.file(&format!("said{number}"));
        command.stdout(Stdio::null()).stderr(fs::File::create(&said).expect("a file"));
        Self { place, child: command.spawn().expect("the tool starts"), said }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.said).expect("what it said")
    }

    fn status(&self) -> Value {
        let text = fs::read_to_string(self.place.file("out/watch.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Process ids of the programs that are recorded, and of what records each.
    fn recorded(&self) -> BTreeMap<u32, u32> {
        let status = self.status();
        let rows = status["recorded"].as_array().cloned().unwrap_or_default();
        let pid = |value: &Value| value.as_u64().and_then(|pid| u32::try_from(pid).ok());
        rows.iter()
            .filter(|row| row["attached"].as_u64() > Some(0))
            .filter_map(|row| Some((pid(&row["pid"])?, pid(&row["recorder"])?)))
            .collect()
    }

    /// Why a program is left alone.
    fn why_left(&self, pid: u32) -> Option<String> {
        let status = self.status();
        let rows = status["left_alone"].as_array().cloned().unwrap_or_default();
        let row = rows.into_iter().find(|row| row["pid"] == pid)?;
        row["why"].as_str().map(str::to_owned)
    }

    /// Ends it as a service manager does. Returns the status that it leaves, and what it said.
    fn end(mut self) -> (Value, String) {
        signal("TERM", self.child.id());
        let status = self.child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{}", self.said());
        let left = self.status();
        assert_eq!(left["runs"], false, "{left:#}");
        assert_eq!(directories(self.place), Vec::<PathBuf>::new(), "all recordings are finished: {}", self.said());
        (left, self.said())
    }

    /// Kills it.
    fn kill(mut self) {
        self.child.kill().expect("it is there");
        self.child.wait().expect("it was killed");
    }
}

fn signal(name: &str, pid: u32) {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().expect("kill runs");
    assert!(status.success(), "kill -{name} {pid}");
}

/// What lies in the folders of programs.
fn contents(place: &TestFolder) -> Vec<PathBuf> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        entries(&place.file("out")).filter(|path| path.is_dir()).flat_map(|folder| entries(&folder)).collect();
    found.sort();
    found
}

fn recordings(place: &TestFolder) -> Vec<PathBuf> {
    // Not those that are being written, which have other names.
    contents(place)
        .into_iter()
        .filter(|path| path.is_file() && path.extension().is_some_and(|end| end == "clrs"))
        .collect()
}

fn directories(place: &TestFolder) -> Vec<PathBuf> {
    contents(place).into_iter().filter(|path| path.is_dir()).collect()
}

/// Numbers of the throws in all recordings, in order, by process.
fn throws(place: &TestFolder) -> BTreeMap<u32, Vec<u64>> {
    let mut found: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for file in recordings(place) {
        let recording = clrscope_recording::open(&file).expect("a recording");
        let pid = recording.processes.first().map(|process| process.pid).expect("a process");
        let report = place.json(&format!("report {} --view exceptions --each --limit 1000000", file.display()));
        let rows = report["rows"].as_array().expect("rows");
        let numbers = rows.iter().map(|row| throw(row["message"].as_str().expect("a message")).0);
        found.entry(pid).or_default().extend(numbers);
    }
    found.values_mut().for_each(|numbers| numbers.sort_unstable());
    found
}

/// Checks that the throws are those of the program from one on to its last one, each once. Returns
/// how many there were before.
fn check_to_the_end(found: &[u64], printed: &str) -> u64 {
    let thrown = thrown(printed);
    let last = *thrown.keys().last().expect("a throw");
    let first = *found.first().expect("a throw is recorded");
    assert!(
        found.iter().copied().eq(first..=last),
        "{} throws from {first} to {:?} of {last}",
        found.len(),
        found.last()
    );
    first - 1
}

/// Waits until the watch has recorded a program for so many periods.
fn wait_for_recordings(place: &TestFolder, watch: &Watch<'_>, count: usize) {
    let done = || recordings(place).len() >= count && !watch.recorded().is_empty();
    testkit::wait_until(&format!("{count} recordings"), done);
}

fn newest() -> &'static Runtime {
    testkit::runtimes().last().expect("a runtime")
}

#[test]
fn each_throw_of_two_programs_is_in_one_recording() {
    let _alone = alone();
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let watch = Watch::start(&place, "");
        let programs = ["one", "two"].map(|name| Started::recent(&place, runtime, "8", name));
        testkit::wait_until("both are recorded", || watch.recorded().len() == 2);
        let programs = programs.map(|program| (program.pid(), program.ended()));
        testkit::wait_until("both are done", || watch.status()["ended"] == 2);
        let (status, said) = watch.end();
        assert_eq!((&status["too_short"], &status["left_alone"]), (&0.into(), &serde_json::json!([])), "{said}");
        assert_eq!(status["recordings"], recordings(&place).len(), "{said}");
        assert!(said.contains("2 programs recorded"), "{said}");
        let found = throws(&place);
        for (pid, printed) in programs {
            let before = check_to_the_end(&found[&pid], &printed);
            let all = thrown(&printed).len() as u64;
            assert!(before < all / 2, "{before} of {all} were thrown before, on {}: {said}", runtime.version);
        }
        // What it costs is counted: agents, recorders and the watch have worked.
        for cost in ["agents_cpu_ns", "recorders_cpu_ns", "watch_cpu_ns", "memory_bytes"] {
            assert!(status["cost"][cost].as_u64() > Some(0), "{cost}: {status:#}");
        }
    });
}

/// Open descriptors of a process.
fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

#[test]
fn programs_that_come_and_go_are_not_harmed_and_leave_nothing_in_the_watch() {
    let _alone = alone();
    let (place, runtime) = (TestFolder::new(), newest());
    let exceptions = copied(&place, "Exceptions");
    let bare = testkit::run(runtime.command(&exceptions)).expect_success().stdout_text();
    let watch = Watch::start(&place, "");
    let pid = watch.child.id();
    let mut sizes = Vec::new();
    for round in 0..10 {
        let seconds = ["0.2", "1.3", "2.5"][round % 3];
        let recent = Started::recent(&place, runtime, seconds, &format!("recent{round}"));
        let short = Started::start(&place, runtime.command(&exceptions), &format!("short{round}"));
        assert_eq!(short.ended(), bare);
        let numbers = thrown(&recent.ended());
        assert!(numbers.keys().copied().eq(1..=numbers.len() as u64));
        let children = || fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("a list");
        testkit::wait_until("nothing is recorded", || watch.recorded().is_empty() && children().is_empty());
        sizes.push((descriptors(pid), testkit::private_kilobytes(pid)));
    }
    let (status, said) = watch.end();
    let (first, last) = (sizes[2], sizes[9]);
    assert!(last.0 <= first.0 && last.1 < first.1 + 1024, "{sizes:?}");
    // Those that lived for seconds were recorded.
    let ended = status["ended"].as_u64().expect("a number");
    assert!((3..=20).contains(&ended), "{status:#}, {said}");
    assert!(!said.contains("error"), "{said}");
}

#[test]
fn after_a_killed_watch_the_next_one_goes_on() {
    let _alone = alone();
    let (place, runtime) = (TestFolder::new(), newest());
    let program = Started::recent(&place, runtime, "16", "one");
    let first = Watch::start(&place, "");
    wait_for_recordings(&place, &first, 2);
    // Its recording processes hear of its end from the system.
    first.kill();
    let second = Watch::start(&place, "");
    testkit::wait_until("it is recorded again", || second.status()["runs"] == true && second.recorded().len() == 1);
    // This one and its recording processes are killed, as the system does to services.
    let more = recordings(&place).len() + 1;
    wait_for_recordings(&place, &second, more);
    let recorders = second.recorded();
    recorders.values().for_each(|recorder| signal("KILL", *recorder));
    second.kill();
    let third = Watch::start(&place, "");
    let (pid, printed) = (program.pid(), program.ended());
    testkit::wait_until("it is done", || third.status()["ended"] == 1);
    let (_, said) = third.end();
    assert!(said.contains("is the end of an earlier recording"), "{said}");
    let found = &throws(&place)[&pid];
    let gaps: Vec<(u64, u64)> =
        found.windows(2).filter(|pair| pair[1] != pair[0] + 1).map(|pair| (pair[0], pair[1])).collect();
    assert!(gaps.iter().all(|(before, after)| before < after), "no throw is there twice: {gaps:?}");
    assert!(gaps.len() <= 2, "only while no watch recorded: {gaps:?}");
    let missed: u64 = gaps.iter().map(|(before, after)| after - before - 1).sum();
    assert!(missed < thrown(&printed).len() as u64 / 2, "{missed} of {}", thrown(&printed).len());
    assert_eq!(found.last(), thrown(&printed).keys().last());
}

#[test]
fn the_second_watch_is_refused_with_the_first_ones_number() {
    let place = TestFolder::new();
    let watch = Watch::start(&place, "");
    testkit::wait_until("it watches", || watch.status()["runs"] == true);
    let output = Watch::command(&place, "").output().expect("the tool starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(said.contains(&format!("why: process {} already watches", watch.child.id())), "{said}");
    // Other programs can have a second watch.
    let line = "watch --only none --lock other -o others --for 100ms";
    assert_eq!(place.run(line).status.code(), Some(0));
    watch.end();
}

#[test]
fn what_must_be_left_alone_is_left_alone_and_listed() {
    let _alone = alone();
    let (place, runtime) = (TestFolder::new(), newest());
    let file = copied(&place, "Recent");
    let start = |name: &str, prepare: &dyn Fn(&mut Command)| {
        let mut command = runtime.command(&file);
        command.arg("20");
        prepare(&mut command);
        Started::start(&place, command, name)
    };
    let profiled = start("profiled", &|command| {
        testkit::load_profiler(command, &testkit::example("trace"), TRACE);
        command.env("TRACE_PROFILER_OUTPUT", place.file("trace"));
    });
    let silent = start("silent", &|command| {
        command.env("DOTNET_EnableDiagnostics", "0");
    });
    let stopped = start("stopped", &|_| {});
    let debugged = start("debugged", &|_| {});
    let older = start("older", &|_| {});
    let of_attach = start("of_attach", &|_| {});
    let plain = start("plain", &|_| {});
    for program in [&stopped, &debugged, &older, &of_attach, &plain] {
        let process = Process::open(program.pid()).expect("it is there");
        testkit::wait_until("its runtime listens", || process.port().is_ok());
    }
    let mut attach =
        place.clrscope(["attach", &of_attach.pid().to_string(), "-q", "--duration", "7s", "-o", "own.clrs"]);
    let mut attach = attach.spawn().expect("the tool starts");
    testkit::wait_until("it records", || place.file("own.clrs.d").is_dir());
    signal("STOP", stopped.pid());
    let debugger = Debugger::attach(debugged.pid());
    let old = OldAgent::in_process(older.pid());

    let watch = Watch::start(&place, "");
    testkit::wait_until("the plain one is recorded", || watch.recorded().contains_key(&plain.pid()));
    for (program, why) in [
        (&profiled, "another profiler is loaded: '"),
        (&silent, "its runtime has no diagnostics socket"),
        (&stopped, "it is stopped by a signal or a debugger"),
        (&debugged, "a debugger of .NET is attached to it"),
        (&older, "an agent of clrscope 0.0.1, which changed methods, sleeps in it"),
        (&of_attach, "clrscope records it already"),
    ] {
        testkit::wait_until(why, || watch.why_left(program.pid()).is_some_and(|said| said.contains(why)));
        let line = format!("Recent ({}) is left alone: ", program.pid());
        let said = watch.said();
        assert_eq!(said.lines().filter(|said| said.contains(&line)).count(), 1, "once: {said}");
    }
    // They are recorded when nothing is in the way any more.
    signal("CONT", stopped.pid());
    assert!(attach.wait().expect("it ends").success());
    testkit::wait_until("they are recorded", || {
        let recorded = watch.recorded();
        [&stopped, &of_attach].iter().all(|program| recorded.contains_key(&program.pid()))
    });
    let printed = [profiled, silent, stopped, older, of_attach, plain].map(|one| (one.pid(), one.ended()));
    // A program with a debugger waits for it.
    debugged.kill();
    drop((debugger, old));
    let (_, said) = watch.end();
    assert!(place.file("trace").is_dir(), "the other profiler wrote");
    let found = throws(&place);
    assert_eq!(found.len(), 3, "{:?}, {said}", found.keys());
    for (pid, text) in printed {
        if let Some(found) = found.get(&pid) {
            check_to_the_end(found, &text);
        }
    }
}

/// The first that a debugger of .NET does: it opens the pipes of the runtime.
struct Debugger {
    _pipes: [fs::File; 2],
}

impl Debugger {
    fn attach(pid: u32) -> Self {
        let process = Process::open(pid).expect("it is there");
        let pipe = |end: &str| format!("/tmp/clr-debug-pipe-{pid}-{}-{end}", process.started());
        let to = fs::OpenOptions::new().write(true).open(pipe("in")).expect("the runtime's pipe");
        let from = fs::File::open(pipe("out")).expect("the runtime's pipe");
        Self { _pipes: [to, from] }
    }
}

/// Answers at the socket of a sleeping agent as one of another version does.
struct OldAgent {
    socket: PathBuf,
}

impl OldAgent {
    fn in_process(pid: u32) -> Self {
        let started = Process::open(pid).expect("it is there").started();
        let socket = std::env::temp_dir().join(socket_name(pid, started));
        let listener = UnixListener::bind(&socket).expect("a socket");
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = stream;
                let mut question = Vec::new();
                let _ = stream.read_to_end(&mut question);
                let _ = stream.write_all(Answer::OtherVersion("0.0.1".to_owned()).to_string().as_bytes());
            }
        });
        Self { socket }
    }
}

impl Drop for OldAgent {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

#[test]
fn root_records_the_programs_of_two_users_and_a_user_those_of_its_own() {
    const USERS: [u32; 2] = [4_000_000_001, 4_000_000_002];
    let _alone = alone();
    let (place, runtime) = (TestFolder::new(), newest());
    if !is_root() {
        return testkit::not_run("programs of two users: tests are not root here");
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let file = copied(&place, "Recent");
    fs::create_dir(place.file("dotnet")).expect("a folder");
    let start = |user: u32, name: &str| {
        let mut program = Command::new(place.file("dotnet/dotnet"));
        program.args(["--fx-version", &runtime.version.to_string()]).arg(&file).arg("9");
        runtime.prepare(&mut program);
        program.env("DOTNET_ROOT", place.file("dotnet")).current_dir("/");
        let command = with_folder_at(&as_user(user, &program), &runtime.root, &place.file("dotnet"))?;
        Some(Started::start(&place, command, name))
    };
    let (Some(one), Some(two)) = (start(USERS[0], "one"), start(USERS[1], "two")) else { return };
    let tool = place.copied_tool();
    fs::create_dir(place.file("own")).expect("a folder");
    chown(place.file("own"), Some(USERS[0]), Some(USERS[0])).expect("an owner");
    // A user leaves the programs of others alone. It has no right to see their executables, but
    // their command lines.
    let mut of_user = Command::new(&tool);
    of_user.args(["watch", "--only", "Recent", "--lock", "own/lock", "-o", "own/out", "--every", "2s", "--for", "4s"]);
    of_user.args(["--budget", "100%"]);
    of_user.env("HOME", place.file("own")).current_dir(place.path());
    let output = as_user(USERS[0], &of_user).output().expect("the tool starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let text = fs::read_to_string(place.file("own/out/watch.json")).expect("a status");
    let status: Value = serde_json::from_str(&text).expect("JSON");
    assert!(status["recordings"].as_u64() > Some(0), "{status:#}, {said}");
    assert!(said.contains("it belongs to another user (id 4000000002)"), "{said}");
    let watch = Watch::start(&place, "");
    testkit::wait_until("both are recorded", || watch.recorded().len() == 2);
    let printed = [one, two].map(|program| (program.pid(), program.ended()));
    testkit::wait_until("both are done", || watch.status()["ended"] == 2);
    watch.end();
    let found = throws(&place);
    for (pid, printed) in printed {
        check_to_the_end(&found[&pid], &printed);
    }
}

#[test]
fn a_recording_that_costs_too_much_gets_a_lower_rate() {
    let _alone = alone();
    let (place, runtime) = (TestFolder::new(), newest());
    let program = Started::recent(&place, runtime, "16", "one");
    let watch = Watch::start(&place, "--rate 10000 --budget 3%");
    let rate = || watch.status()["recorded"][0]["rate_hz"].as_u64();
    testkit::wait_until("a lower rate", || rate().is_some_and(|rate| rate < 10_000));
    testkit::wait_until("it is recorded again", || watch.status()["recorded"][0]["attached"].as_u64() > Some(1));
    program.ended();
    let (_, said) = watch.end();
    let words = ["% of a processor, more than 3 %: from now on ", " samples per second"];
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
    // The recordings say at which rate they were made.
    let interval = |file: &PathBuf| {
        let recording = clrscope_recording::open(file).expect("a recording");
        recording.run.filled.text().to_owned()
    };
    let all: Vec<String> = recordings(&place).iter().map(interval).collect();
    let rates: std::collections::BTreeSet<&str> =
        all.iter().filter_map(|filled| filled.split([',', ':', ';']).find(|word| word.starts_with("rate="))).collect();
    assert!(rates.len() > 1 && rates.contains("rate=10000"), "{all:?}");
}

#[test]
fn recordings_stay_where_the_clock_of_the_day_is_put_forward() {
    let _alone = alone();
    let (place, runtime) = (TestFolder::new(), newest());
    let library = testkit::native_library("Recent/forward.c");
    let program = Started::recent(&place, runtime, "14", "one");
    let mut command = Watch::command(&place, "--keep 1h");
    command.env("LD_PRELOAD", library).env("CLOCK_FORWARD", place.file("forward"));
    let watch = Watch::spawn(&place, command);
    wait_for_recordings(&place, &watch, 2);
    let before = recordings(&place);
    fs::write(place.file("forward"), "90000").expect("a file");
    // A program that starts then has a process of its own that records it.
    let later = Started::recent(&place, runtime, "5", "later");
    let (pid, printed) = (program.pid(), program.ended());
    let (other, text) = (later.pid(), later.ended());
    testkit::wait_until("both are done", || watch.status()["ended"] == 2);
    let (status, _) = watch.end();
    assert_eq!(status["deleted"], 0, "{status:#}");
    assert!(before.iter().all(|file| file.exists()), "nothing is old");
    // Names are by the clock at the start of the watch, also those of the later program.
    let now = jiff::Timestamp::now();
    for file in recordings(&place) {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let time = jiff::civil::DateTime::strptime("Recent-%Y%m%dT%H%M%SZ", &name).expect("a time");
        let begin = time.to_zoned(jiff::tz::TimeZone::UTC).expect("a time").timestamp();
        assert!(now.duration_since(begin).as_secs().abs() < 600, "{name} at {now}");
    }
    let found = throws(&place);
    check_to_the_end(&found[&pid], &printed);
    check_to_the_end(&found[&other], &text);
}

#[test]
fn all_programs_together_keep_within_the_limits() {
    let _alone = alone();
    let (place, runtime) = (TestFolder::new(), newest());
    let watch = Watch::start(&place, "--keep 3 --every 1s");
    let programs = ["one", "two"].map(|name| Started::recent(&place, runtime, "8", name));
    testkit::wait_until("both are done", || watch.status()["ended"] == 2);
    for program in programs {
        program.ended();
    }
    let (status, _) = watch.end();
    assert_eq!(recordings(&place).len(), 3);
    assert_eq!(status["deleted"].as_u64(), status["recordings"].as_u64().map(|written| written - 3), "{status:#}");
}

#[test]
fn a_unit_of_systemd_runs_the_watch() {
    let place = TestFolder::new();
    let line =
        "env --systemd --watch --only Shop.* --every 10m --budget 1%,256MiB --label team=a$b -o /var/lib/clrscope";
    let output = place.clrscope(line.split_whitespace().chain(["--user", "root"])).output().expect("the tool starts");
    let unit = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tool = env!("CARGO_BIN_EXE_clrscope");
    let command = format!(
        "ExecStart={tool} watch --only \"Shop.*\" --every 10m --budget \"1%%,256MiB\" --label \"team=a$$b\" -o /var/lib/clrscope\n"
    );
    assert!(unit.contains(&command), "{unit}");
    assert!(unit.contains("User=root\n") && unit.contains("StateDirectory=clrscope\n"), "{unit}");
    let file = place.file("clrscope-watch.service");
    fs::write(&file, &unit).expect("a file");
    match Command::new("systemd-analyze").arg("verify").arg(&file).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && !said.contains("clrscope-watch"), "{said}");
        }
        Err(_) => testkit::not_run("systemd-analyze is not here"),
    }
}

#[test]
fn what_cannot_be_watched_is_one_clear_error() {
    let place = TestFolder::new();
    place.assert_each_refused(&[
        ("watch -o out", "--only is required"),
        ("watch --only *", "--output is required"),
        ("watch --only * -o out --every 10ms", "is not between 1s and 24h"),
        ("watch --only * -o out --keep much", "is neither a number of recordings"),
        ("watch --only * -o out --budget 5", "is neither a percentage"),
        ("watch --only * -o out -i calls", "cannot watch with 'calls'"),
        ("watch --only * -o out -i heap", "can't be recorded in periods"),
        ("watch --only * -o out -i alloc:live", "follows objects over the whole recording"),
        ("watch --only * --lock lock -o file", "it is a file"),
        ("watch --only * --lock lock -o none/out", "cannot record into 'none/out'"),
        ("watch --only * --lock none/lock -o out", "cannot lock 'none/lock'"),
        ("watch --only-from none --lock lock -o out", "cannot choose programs from"),
        ("env --watch --only * -o /out", "'--watch' is for --systemd"),
        ("env --systemd --watch --only * -o out", "a service can't record into 'out'"),
        ("env --systemd --watch --only * -o /out --probe X::Y", "unknown argument '--probe'"),
        ("attach 1 --every 1s -o out --watched 1,2,3", "did not start this one"),
    ]);
}
