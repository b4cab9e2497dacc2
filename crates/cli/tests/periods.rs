//! Recordings in periods (`--every`), against what the program says of its own.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clrscope_recording::model::LossReason;
use clrscope_testkit::{self as testkit, Runtime, each_runtime, fixture};
use common::TestFolder;
use common::recent::{alone, throw, thrown};

/// `clrscope run` of the program that throws numbered exceptions for so many seconds.
fn run(place: &TestFolder, runtime: &Runtime, options: &str, seconds: u64) -> Command {
    let words = format!("run -o out {options} --");
    let words = words.split_whitespace().map(Into::into);
    let program = runtime.words(&fixture("Recent")).into_iter();
    let mut command = place.clrscope(words.chain(program).chain([seconds.to_string().into()]));
    runtime.prepare(&mut command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The recordings of periods, the oldest first.
fn recordings(place: &TestFolder) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.file("out")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.is_file() && path.extension().is_some_and(|end| end == "clrs")).collect();
    found.sort();
    found
}

/// Directories of recordings that are still written, or were left.
fn directories(place: &TestFolder) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.file("out")).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| path.is_dir()).collect()
}

/// Numbers of the throws in a recording.
fn throws_in(place: &TestFolder, file: &Path) -> Vec<u64> {
    let report = place.json(&format!("report {} --view exceptions --each --limit 1000000", file.display()));
    let rows = report["rows"].as_array().expect("rows");
    rows.iter().map(|row| throw(row["message"].as_str().expect("a message")).0).collect()
}

/// Calls of a method in a recording.
fn calls_in(place: &TestFolder, file: &Path, method: &str) -> u64 {
    let report = place.json(&format!("report {} --view functions --limit 1000000", file.display()));
    let rows = report["rows"].as_array().expect("rows");
    rows.iter().filter(|row| row["name"] == method).filter_map(|row| row["calls"].as_u64()).sum()
}

fn ended(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn each_throw_and_each_call_lies_in_one_period() {
    let _alone = alone();
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let child = run(&place, runtime, "--every 2s -i exceptions -i calls -i cpu", 7).spawn().expect("it starts");
        let (code, text, said) = ended(child);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("recordings written to 'out', one for each period"), "{said}");
        let files = recordings(&place);
        assert!((4..=6).contains(&files.len()), "{files:?}");
        assert!(directories(&place).is_empty(), "{:?}", directories(&place));

        let thrown = thrown(&text);
        let mut found: Vec<u64> = files.iter().flat_map(|file| throws_in(&place, file)).collect();
        found.sort_unstable();
        assert!(found.iter().eq(thrown.keys()), "{} of {} on {}", found.len(), thrown.len(), runtime.version);
        let calls: u64 = files.iter().map(|file| calls_in(&place, file, "Recent.Program::Throw")).sum();
        assert_eq!(calls, thrown.len() as u64, "on {}", runtime.version);

        let mut ids = Vec::new();
        let mut until_ns = None;
        for (number, file) in (1..).zip(&files) {
            let recording = clrscope_recording::open(file).expect("a recording");
            let process = &recording.processes[0];
            let [part] = process.parts.as_slice() else { panic!("{:?}", process.parts) };
            assert_eq!(part.name, format!("period {number}"));
            assert!(until_ns.is_none_or(|until| until == part.since_ns), "no time between periods");
            until_ns = Some(part.until_ns);
            // On a busy machine the kernel drops samples.
            let losses = process.losses.iter().map(|loss| loss.reason).filter(|reason| *reason != LossReason::PerfLost);
            assert_eq!(losses.collect::<Vec<_>>(), []);
            ids.push(recording.run.id.clone());
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), files.len(), "each recording has an identifier of its own");
        // The method that took the time at first is in the first periods alone.
        let [first, .., last] = files.as_slice() else { panic!("{files:?}") };
        let methods =
            |file: &Path| place.json(&format!("report {} --view functions --metric cpu", file.display())).to_string();
        assert!(methods(first).contains("Recent.Program::Early") && !methods(first).contains("Recent.Program::Late"));
        assert!(methods(last).contains("Recent.Program::Late") && !methods(last).contains("Recent.Program::Early"));
    });
}

/// After 65,536 threads no more of them were recorded, and each left its tree in the directory.
#[test]
fn threads_that_come_and_go_leave_no_more_than_those_of_the_kept_time() {
    let _alone = alone();
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let child = run(&place, runtime, "--every 1s -i calls", 40).spawn().expect("it starts");
        let size = |seconds: u64| {
            let began = Instant::now();
            testkit::wait_until("some time", || began.elapsed() > Duration::from_secs(seconds));
            let [directory] = &directories(&place)[..] else { panic!("{:?}", directories(&place)) };
            let mut processes = fs::read_dir(directory).expect("a directory").flatten();
            let table = processes.find_map(|entry| fs::metadata(entry.path().join("threads.seg")).ok());
            table.expect("a table of threads").len()
        };
        // Threads are kept for 20 seconds.
        let [then, now] = [size(26), size(10)];
        assert!(now <= then + then / 4, "on {}: {then} bytes, then {now}", runtime.version);
        let (code, text, said) = ended(child);
        assert_eq!(code, Some(0), "{said}");
        let (mut calls, mut greatest, mut names) = (0, 0, 0);
        for file in recordings(&place) {
            let recording = clrscope_recording::open(&file).expect("a recording");
            let process = &recording.processes[0];
            assert_eq!(process.losses.iter().map(|loss| loss.reason).collect::<Vec<_>>(), []);
            let functions: Vec<bool> =
                process.functions.iter().map(|function| function.name == "Recent.Program::Throw").collect();
            for thread in &process.threads {
                let tree = thread.tree.load();
                let of = (1..tree.len()).filter(|&node| functions[tree.functions()[node] as usize]);
                let own: u64 = of.map(|node| tree.calls(node as u32)).sum();
                // A thread of its own throws twenty times and ends.
                assert!(own <= 20, "{own} calls of thread {} on {}", thread.id, runtime.version);
                (calls, greatest) = (calls + own, greatest.max(thread.id));
                names += usize::from(own > 0);
            }
        }
        let thrown = thrown(&text).len() as u64;
        assert_eq!(calls, thrown, "on {}", runtime.version);
        assert!(greatest > 65_536 && names as u64 >= thrown / 20, "{greatest}, {names} on {}", runtime.version);
    });
}

/// Objects of a type in a recording.
fn objects_in(place: &TestFolder, file: &Path, name: &str) -> u64 {
    let report = place.json(&format!("report {} --view allocations --limit 1000000", file.display()));
    let rows = report["rows"].as_array().expect("rows");
    rows.iter().filter(|row| row["type"] == name).filter_map(|row| row["objects"].as_u64()).sum()
}

#[test]
fn each_object_lies_in_one_period() {
    let _alone = alone();
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let child = run(&place, runtime, "--every 2s -i alloc:exact", 7).spawn().expect("it starts");
        let (code, text, said) = ended(child);
        assert_eq!(code, Some(0), "{said}");
        let files = recordings(&place);
        assert!((4..=6).contains(&files.len()), "{files:?}");
        // The program makes one for each throw.
        let objects: Vec<u64> = files.iter().map(|file| objects_in(&place, file, "Recent.Numbered")).collect();
        let thrown = thrown(&text).len() as u64;
        assert_eq!(objects.iter().sum::<u64>(), thrown, "{objects:?} on {}", runtime.version);
        assert!(objects.iter().filter(|count| **count > thrown / 8).count() >= 3, "{objects:?}");
    });
}

#[test]
fn the_oldest_recordings_are_deleted_and_the_directory_stays_small() {
    let _alone = alone();
    let (place, runtime) = (TestFolder::new(), testkit::runtimes().last().expect("a runtime"));
    let child = run(&place, runtime, "--every 1s --keep 3 -i exceptions -i calls", 24).spawn().expect("it starts");
    let size = || {
        let directory = directories(&place).first().map(|path| Command::new("du").arg("-sk").arg(path).output());
        let text = directory.and_then(Result::ok).map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    // Twelve seconds and more of throws stay in the directory: then new ones take their room.
    let began = Instant::now();
    testkit::wait_until("the steady time", || began.elapsed() > Duration::from_secs(18));
    let steady = size();
    testkit::wait_until("more periods", || began.elapsed() > Duration::from_secs(23));
    let last = size();
    assert!(last < steady + steady / 4 + 1024, "the directory grew from {steady} to {last} kB");
    assert!((1..=4).contains(&recordings(&place).len()), "{:?}", recordings(&place));
    let (code, text, said) = ended(child);
    assert_eq!(code, Some(0), "{said}");
    let files = recordings(&place);
    assert_eq!(files.len(), 3, "{files:?}");
    // The newest throws are the ones that are there.
    let thrown = thrown(&text);
    let mut found: Vec<u64> = files.iter().flat_map(|file| throws_in(&place, file)).collect();
    found.sort_unstable();
    let newest: Vec<u64> = thrown.keys().rev().take(found.len()).rev().copied().collect();
    assert_eq!(found, newest);
}

#[test]
fn a_killed_program_has_its_throws_up_to_then() {
    let _alone = alone();
    let (place, runtime) = (TestFolder::new(), testkit::runtimes().last().expect("a runtime"));
    let mut command = run(&place, runtime, "--every 2s -i exceptions -i calls", 60);
    let child = command.spawn().expect("it starts");
    testkit::wait_until("two periods", || recordings(&place).len() >= 2);
    let kill = || {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap_or_default();
        let pid = children.split_whitespace().next().expect("the program").to_owned();
        testkit::run({
            let mut kill = Command::new("kill");
            kill.args(["-9", &pid]);
            kill
        });
    };
    kill();
    let (code, _, said) = ended(child);
    assert_eq!(code, Some(137), "{said}");
    let files = recordings(&place);
    let mut found: Vec<u64> = files.iter().flat_map(|file| throws_in(&place, file)).collect();
    found.sort_unstable();
    assert!(found.iter().copied().eq(1..=found.len() as u64), "no throw is missing or there twice");
    // How often methods were called since the last boundary is not known, and said to be lost.
    let last = clrscope_recording::open(files.last().expect("a recording")).expect("a recording");
    let losses: Vec<_> = last.processes[0].losses.iter().map(|loss| loss.reason).collect();
    assert!(losses.contains(&LossReason::PartLost) && losses.contains(&LossReason::AbruptEnd), "{losses:?}");
    assert!(directories(&place).is_empty());
}

#[test]
fn after_a_killed_launcher_the_next_one_writes_what_it_left_and_goes_on() {
    let _alone = alone();
    let (place, runtime) = (TestFolder::new(), testkit::runtimes().last().expect("a runtime"));
    let mut program = runtime.command(&fixture("Recent"));
    // It prints more than a pipe takes, and ends only when that is read.
    let printed = place.file("printed");
    fs::create_dir(place.file("pushed")).expect("a folder");
    program.arg("14").stdout(fs::File::create(&printed).expect("a file"));
    let mut program = program.spawn().expect("the program starts");
    let attach = || {
        let words = format!("attach {} --every 2s -i exceptions -o out --push pushed", program.id());
        let mut command = place.clrscope(words.split_whitespace());
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the tool starts")
    };
    let mut first = attach();
    testkit::wait_until("a period", || !recordings(&place).is_empty());
    let more = testkit::random_pause(Duration::from_secs(2));
    let killed = Instant::now();
    testkit::wait_until("some moment", || killed.elapsed() >= more);
    first.kill().expect("it is there");
    first.wait().expect("it was killed");
    let (_, _, said) = ended(attach());
    assert!(said.contains("is the end of an earlier recording"), "{said}");
    assert!(directories(&place).is_empty(), "{:?}", directories(&place));
    program.wait().expect("the program ends");
    let thrown = thrown(&fs::read_to_string(&printed).expect("what it printed"));
    let mut found: Vec<u64> = recordings(&place).iter().flat_map(|file| throws_in(&place, file)).collect();
    let all = found.len();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), all, "no throw is there twice");
    // Before the first launcher, and between the two, nothing was recorded: two gaps at most.
    let gaps = found.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
    assert!(gaps <= 1, "{gaps} gaps");
    assert!(found.len() * 2 > thrown.len(), "{} of {}", found.len(), thrown.len());
    assert_eq!(found.last(), thrown.keys().last());
    // The left-over ones are pushed as well, and one that was written but not yet pushed.
    let pushed = fs::read_dir(place.file("pushed")).expect("a folder").flatten().map(|entry| entry.path());
    let mut throws: Vec<u64> = pushed.flat_map(|file| throws_in(&place, &file)).collect();
    throws.sort_unstable();
    assert_eq!(throws, found, "each recording is pushed once");
    assert_eq!(fs::read_dir(place.file("out")).expect("a folder").count(), recordings(&place).len(), "no mark is left");
}

#[test]
fn on_a_full_disk_the_newest_recordings_stay_and_a_line_says_so() {
    let _alone = alone();
    let (place, runtime) = (TestFolder::new(), testkit::runtimes().last().expect("a runtime"));
    fs::create_dir(place.file("out")).expect("a folder");
    let kept = place.file("kept");
    fs::create_dir(&kept).expect("a folder");
    let command = run(&place, runtime, "--every 1s -i exceptions", 12);
    let Some(mut command) = testkit::confine::with_small_disk(&command, &place.file("out"), "12m", &kept) else {
        return testkit::not_run("a full disk: no file systems can be mounted here");
    };
    command.current_dir(place.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (code, text, said) = ended(command.spawn().expect("it starts"));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("the oldest recordings make room").count(), 1, "{said}");
    // The recordings that are left are the newest ones, and all but the end of the program is there
    // unless it is said to be lost.
    let files: Vec<PathBuf> = {
        let mut files: Vec<PathBuf> =
            fs::read_dir(kept.join("out")).expect("a folder").flatten().map(|entry| entry.path()).collect();
        files.sort();
        files
    };
    assert!((2..12).contains(&files.len()), "{files:?}");
    let mut found: Vec<u64> = files.iter().flat_map(|file| throws_in(&place, file)).collect();
    found.sort_unstable();
    let thrown = thrown(&text);
    let newest: Vec<u64> = thrown.keys().rev().take(found.len()).rev().copied().collect();
    assert!(found == newest || said.contains("could not grow"), "{} of {}, {said}", found.len(), thrown.len());
}

#[test]
fn each_period_is_pushed_when_it_is_written() {
    let _alone = alone();
    let (place, runtime) = (TestFolder::new(), testkit::runtimes().last().expect("a runtime"));
    fs::create_dir(place.file("pushed")).expect("a folder");
    let pushed = || fs::read_dir(place.file("pushed")).expect("a folder").count();
    let child = run(&place, runtime, "--every 1s --push pushed -i exceptions", 8).spawn().expect("it starts");
    testkit::wait_until("two of them, while the program runs", || pushed() >= 2);
    let (code, text, said) = ended(child);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(pushed(), recordings(&place).len());
    let files = fs::read_dir(place.file("pushed")).expect("a folder").flatten().map(|entry| entry.path());
    let throws: usize = files.map(|file| throws_in(&place, &file).len()).sum();
    assert_eq!(throws, thrown(&text).len());
}

#[test]
fn what_cannot_be_recorded_in_periods_is_one_clear_error() {
    let place = TestFolder::new();
    place.assert_each_refused(&[
        ("run --every 1s -- true", "'--every' needs a folder"),
        ("run --every 10ms -o out -- true", "is not between 1s and 24h"),
        ("run --every 1s --keep much -o out -- true", "is neither a number of recordings, nor an age, nor a size"),
        ("run --every 1s -i heap -o out -- true", "can't be recorded in periods"),
        ("run --every 1s -i alloc:live -o out -- true", "follows objects over the whole recording"),
        ("run --every 1s --last 5s -o out -- true", "leave out --last, or --every"),
        ("run --every 1s --force -o out -- true", "takes no --force"),
        ("run --every 1s --view -o out -- true", "do not go together"),
        ("run --every 1s -o file -- true", "it is a file"),
        ("run --every 1s -o none/out -- true", "cannot write recordings into 'none/out'"),
        ("run --keep 5 -o out -- true", "--every is required"),
        ("env --every 1m", "env takes no --every"),
    ]);
    assert!(!place.file("out").exists());
}
