//! Disks that are small or refuse, and agent files that are missing or that others can change: the
//! program never notices, what was recorded is reported, and what was lost is counted.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::{Sums, assert_unchanged, under_agent};
use clrscope_analysis::{Query, allocations};
use clrscope_contract::request::AGENT_VARIABLE;
use clrscope_recording::model::{LossReason, Process, Recording};
use clrscope_testkit::confine::{is_root, with_file_size_limit, with_small_disk, without_powers};
use clrscope_testkit::{
    Expectations, Finished, Runtime, agent, each_runtime, fixture, not_run, run, runtimes, scratch,
};

/// More distinct paths than a small disk holds: 8 MiB of tree.
const MANY_PATHS: (&str, &[&str]) = ("Paths", &["16"]);

fn program(runtime: &Runtime, name: &str, arguments: &[&str]) -> Command {
    let mut command = runtime.command(&fixture(name));
    command.args(arguments);
    command
}

/// Records a program into a file system of `size`, which changes nothing for it; `None` where this
/// machine mounts none.
fn on_small_disk(
    runtime: &Runtime,
    request: &str,
    (name, arguments): (&str, &[&str]),
    size: &str,
) -> Option<(Finished, Recording)> {
    let folder = scratch();
    let (disk, kept) = (folder.path().join("disk"), folder.path().join("kept"));
    for path in [&disk, &kept] {
        fs::create_dir(path).expect("a folder");
    }
    let mut command = program(runtime, name, arguments);
    under_agent(&mut command, request, &disk.join("run.clrs.d"));
    let with = run(with_small_disk(&command, &disk, size, &kept)?);
    let place = format!("{size} on {}", runtime.version);
    assert_unchanged(&with, &run(program(runtime, name, arguments)), &place);
    Some((with, clrscope_recording::open(&kept.join("run.clrs.d")).expect("a recording")))
}

fn lost(process: &Process, reason: LossReason) -> u64 {
    process.losses.iter().filter(|loss| loss.reason == reason).map(|loss| loss.count).sum()
}

/// A remark says what kept the recording from growing.
fn assert_told(process: &Process, why: &str, place: &str) {
    let remark = format!("the recording could not grow: {why}");
    assert!(process.remarks.iter().any(|noted| noted.text.starts_with(&remark)), "{place}: {:?}", process.remarks);
}

/// Every call stands under its name, or was folded and counted.
fn assert_all_calls_counted(process: &Process, finished: &Finished, place: &str) {
    let sums = Sums::of_process(process, "Paths");
    let of = |name: &str| sums.calls.get(name).copied().unwrap_or(0);
    let expected = Expectations::parse(&finished.stdout_text());
    let names = ["Paths.Program::Left", "Paths.Program::Right"];
    let truth: u64 = names.iter().filter_map(|name| expected.calls(name)).sum();
    let found: u64 = names.iter().map(|name| of(name)).sum();
    let folded = of("(truncated)");
    assert!(found > 1000 && folded > 1000, "{place}: {found} found and {folded} folded of {truth}");
    // The calls at the bottom, with n = 0, are not counted by the program.
    assert!(found + folded >= truth, "{place}: {found} found and {folded} folded of {truth}");
}

#[test]
fn a_small_disk_that_fills_folds_what_finds_no_room() {
    each_runtime(|runtime| {
        let place = format!("on {}", runtime.version);
        let Some((with, recording)) = on_small_disk(runtime, "calls", MANY_PATHS, "4m") else { return };
        assert_eq!(recording.problems, [], "{place}");
        let process = &recording.processes[0];
        assert!(process.complete, "{place}: the end was not seen");
        assert!(lost(process, LossReason::DiskFull) > 0, "{place}: {:?}", process.losses);
        assert_told(process, "No space left on device", &place);
        assert_all_calls_counted(process, &with, &place);
    });
}

#[test]
fn events_that_find_no_disk_are_counted() {
    each_runtime(|runtime| {
        let place = format!("on {}", runtime.version);
        let Some((_, recording)) = on_small_disk(runtime, "flow:all;include=[Paths]*", MANY_PATHS, "4m") else {
            return;
        };
        let process = &recording.processes[0];
        let dropped = lost(process, LossReason::EventDropped);
        assert!(dropped > 1000, "{place}: {:?}", process.losses);
        let kept: usize =
            process.events.iter().flat_map(|arena| &arena.chunks).map(|chunk| chunk.bytes.load().len()).sum();
        assert!(kept > 100_000, "{place}: {kept} bytes of events");
    });
}

#[test]
fn objects_that_find_no_disk_are_counted_and_the_others_are_there() {
    each_runtime(|runtime| {
        let place = format!("on {}", runtime.version);
        let program = ("Allocated", &["many", "200"][..]);
        let Some((_, recording)) = on_small_disk(runtime, "gc;alloc:exact,live", program, "8m") else { return };
        assert_eq!(recording.problems, [], "{place}");
        let process = &recording.processes[0];
        assert!(process.complete, "{place}: the end was not seen, {:?}", process.remarks);
        assert!(lost(process, LossReason::EventDropped) > 1000, "{place}: {:?}", process.losses);
        let view = allocations(&recording, &Query::default()).expect("allocations");
        let row = view.rows.iter().find(|row| row.type_name == "Allocated.Point").expect("the type");
        assert!(row.objects > 1000, "{place}: {row:?}");
    });
}

#[test]
fn a_disk_too_small_to_begin_is_a_word_and_nothing_else() {
    each_runtime(|runtime| {
        for size in ["64k", "1m"] {
            let Some((_, recording)) = on_small_disk(runtime, "calls", ("Hello", &[]), size) else { return };
            assert_only_refused(&recording, "No space left on device", &format!("{size} on {}", runtime.version));
        }
    });
}

/// The recording says that a process was not recorded and why, and nothing else.
fn assert_only_refused(recording: &Recording, why: &str, place: &str) {
    assert_eq!(recording.problems, [], "{place}");
    let [process] = recording.processes.as_slice() else { panic!("{place}: {:?}", recording.processes) };
    assert!(process.refusal().is_some_and(|said| said.contains(why)), "{place}: {:?}", process.remarks);
    assert_eq!(lost(process, LossReason::ProcessRefused), 1, "{place}");
}

#[test]
fn a_file_size_limit_folds_what_finds_no_room() {
    each_runtime(|runtime| {
        let place = format!("on {}", runtime.version);
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let prepared = || {
            let mut command = program(runtime, MANY_PATHS.0, MANY_PATHS.1);
            // The runtime itself needs large files for this.
            command.env("DOTNET_EnableWriteXorExecute", "0");
            command
        };
        let mut command = prepared();
        under_agent(&mut command, "calls", &out);
        let with = run(with_file_size_limit(&command, 3 << 10));
        assert_unchanged(&with, &run(with_file_size_limit(&prepared(), 3 << 10)), &place);
        let recording = clrscope_recording::open(&out).expect("a recording");
        let process = &recording.processes[0];
        assert!(lost(process, LossReason::DiskFull) > 0, "{place}: {:?}", process.losses);
        assert_all_calls_counted(process, &with, &place);
    });
}

/// Bytes of the files in a folder and in those within.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let size = |entry: fs::DirEntry| match entry.file_type().expect("a type").is_dir() {
        true => size_of(&entry.path()),
        false => entry.metadata().expect("its size").len(),
    };
    entries.map(size).sum()
}

/// Two processes at once and one when they have ended: each alone writes twice the size.
#[test]
fn several_processes_share_the_greatest_size_of_their_recording() {
    const SIZE: u64 = 64 << 20;
    let (runtime, folder) = (runtimes().last().expect("a runtime"), scratch());
    let shell = |one: Command| {
        let mut command = Command::new("sh");
        command.args(["-c", "\"$@\" & \"$@\"; wait; \"$@\"", "sh"]).arg(one.get_program()).args(one.get_args());
        command.envs(one.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
    };
    let lines = |finished: Finished| {
        let mut lines: Vec<String> = finished.expect_success().stdout_text().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let bare = lines(run(shell(program(runtime, "Paths", &["20"]))));
    let out = folder.path().join("run.clrs.d");
    let mut command = program(runtime, "Paths", &["20"]);
    under_agent(&mut command, &format!("flow:all;max-size={SIZE}"), &out);
    assert_eq!(lines(run(shell(command))), bare);
    // Alone each would fill the size; what two write at once between two looks at the disk is not
    // yet counted by the other.
    let entries = fs::read_dir(&out).expect("the recording").flatten().map(|entry| entry.path());
    let sizes: Vec<u64> = entries.filter(|path| path.is_dir()).map(|folder| size_of(&folder)).collect();
    assert!(sizes.iter().sum::<u64>() <= 2 * SIZE && sizes.iter().sum::<u64>() > SIZE / 2, "{sizes:?}");
    let recording = clrscope_recording::open(&out).expect("a recording");
    let is_refused = |process: &Process| process.refusal().is_some_and(|why| why.contains("maximum size, 64 MiB"));
    let (stopped, refused): (Vec<_>, Vec<_>) = recording.processes.iter().partition(|process| !is_refused(process));
    assert_eq!((stopped.len() + refused.len(), stopped.is_empty()), (3, false));
    for process in stopped {
        assert_eq!(lost(process, LossReason::SizeLimit), 1, "{:?}", process.losses);
    }
}

/// A program of root's that becomes user 65534 may no longer open its own recording, so that
/// nothing can grow from then on.
#[test]
fn a_program_that_becomes_another_user_folds_what_finds_no_room() {
    if !is_root() {
        return not_run("only root can become another user");
    }
    // Of events much more is kept ready ahead of need.
    let requests = [("calls", [MANY_PATHS.1[0], "0", "65534"]), ("flow:all", ["20", "0", "65534"])];
    each_runtime(|runtime| {
        for (request, arguments) in requests {
            let place = format!("{request} on {}", runtime.version);
            let bare = run(program(runtime, "Paths", &arguments)).expect_success();
            let folder = scratch();
            let out = folder.path().join("run.clrs.d");
            let mut command = program(runtime, "Paths", &arguments);
            under_agent(&mut command, request, &out);
            let with = run(command);
            assert_unchanged(&with, &bare, &place);
            let recording = clrscope_recording::open(&out).expect("a recording");
            assert_eq!(recording.problems, [], "{place}");
            let process = &recording.processes[0];
            assert!(process.complete, "{place}: the end was not seen");
            assert_told(process, "Permission denied", &place);
            match request {
                "calls" => {
                    assert!(lost(process, LossReason::DiskFull) > 0, "{place}: {:?}", process.losses);
                    // Compilations, too, end where they began when both were folded.
                    assert_eq!(lost(process, LossReason::OddCallback), 0, "{place}");
                    assert_all_calls_counted(process, &with, &place);
                }
                _ => assert!(lost(process, LossReason::EventDropped) > 1000, "{place}: {:?}", process.losses),
            }
        }
    });
}

#[test]
fn a_read_only_folder_leaves_the_program_alone() {
    each_runtime(|runtime| {
        let folder = scratch();
        let closed = folder.path().join("closed");
        fs::create_dir(&closed).expect("a folder");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).expect("its mode");
        let mut command = program(runtime, "Hello", &[]);
        under_agent(&mut command, "calls", &closed.join("run.clrs.d"));
        let bare = run(without_powers(&program(runtime, "Hello", &[])));
        assert_unchanged(&run(without_powers(&command)), &bare, &format!("on {}", runtime.version));
        assert_eq!(fs::read_dir(&closed).expect("a listing").count(), 0, "on {}", runtime.version);
    });
}

#[test]
fn a_request_that_is_not_understood_is_refused_in_its_own_folder() {
    each_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let mut command = program(runtime, "Hello", &[]);
        under_agent(&mut command, "calls;speed=9", &out);
        let bare = run(program(runtime, "Hello", &[]));
        assert_unchanged(&run(command), &bare, &format!("on {}", runtime.version));
        let recording = clrscope_recording::open(&out).expect("a recording");
        assert_only_refused(&recording, "'speed' is neither a setting nor an instrument", "speed");
    });
}

/// Runs hello world with this library as the agent; it must be as if there were none. What was left
/// of a recording.
fn with_library(runtime: &Runtime, library: &Path, out: &Path) -> Option<Recording> {
    let mut command = program(runtime, "Hello", &[]);
    under_agent(&mut command, "calls", out);
    command.env("CORECLR_PROFILER_PATH", library).env(AGENT_VARIABLE, format!("calls;out={}", out.display()));
    let bare = run(without_powers(&program(runtime, "Hello", &[])));
    assert_unchanged(&run(without_powers(&command)), &bare, &format!("{} on {}", library.display(), runtime.version));
    clrscope_recording::open(out).ok()
}

#[test]
fn an_agent_that_is_missing_unreadable_or_no_library_is_as_none() {
    each_runtime(|runtime| {
        let folder = scratch();
        let (out, file) = (folder.path().join("run.clrs.d"), folder.path().join("agent.so"));
        assert!(with_library(runtime, &folder.path().join("missing.so"), &out).is_none());
        fs::write(&file, "no library at all").expect("a file");
        assert!(with_library(runtime, &file, &out).is_none());
        fs::copy(agent(), &file).expect("a copy");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("its mode");
        assert!(with_library(runtime, &file, &out).is_none());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o500)).expect("its mode");
        let recording = with_library(runtime, &file, &out).expect("a good copy records");
        assert!(recording.processes[0].complete, "on {}", runtime.version);
    });
}

#[test]
fn an_agent_that_others_can_write_steps_aside() {
    each_runtime(|runtime| {
        let folder = scratch();
        let open = folder.path().join("open");
        fs::create_dir(&open).expect("a folder");
        let (own, lent) = (folder.path().join("agent.so"), open.join("agent.so"));
        for (file, mode) in [(&own, 0o777), (&lent, 0o500)] {
            fs::copy(agent(), file).expect("a copy");
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).expect("its mode");
        }
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("its mode");
        for (number, file, culprit) in [(1, &own, &own), (2, &lent, &open)] {
            let out = folder.path().join(format!("{number}.clrs.d"));
            let recording = with_library(runtime, file, &out).expect("a word");
            let why = format!("{} can be written by others", culprit.display());
            assert_only_refused(&recording, &why, &format!("on {}", runtime.version));
        }
    });
}

#[test]
fn a_place_that_others_can_write_gets_a_word_and_no_recording() {
    each_runtime(|runtime| {
        let folder = scratch();
        let open = folder.path().join("open");
        fs::create_dir(&open).expect("a folder");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("its mode");
        let mut command = program(runtime, "Hello", &[]);
        under_agent(&mut command, "calls", &open.join("run.clrs.d"));
        assert_unchanged(&run(command), &run(program(runtime, "Hello", &[])), &format!("on {}", runtime.version));
        let recording = clrscope_recording::open(&open.join("run.clrs.d")).expect("a word");
        assert_only_refused(&recording, "can be written by others", &format!("on {}", runtime.version));
    });
}

#[test]
fn two_programs_at_once_record_into_one_folder() {
    each_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let children: Vec<_> = (0..3)
            .map(|_| {
                let mut command = program(runtime, "Recursion", &[]);
                under_agent(&mut command, "calls", &out);
                std::thread::spawn(move || run(command).expect_success())
            })
            .collect();
        let finished: Vec<_> = children.into_iter().map(|child| child.join().expect("a run")).collect();
        let recording = clrscope_recording::open(&out).expect("a recording");
        assert_eq!(recording.processes.len(), 3, "on {}", runtime.version);
        let truth = Expectations::parse(&finished[0].stdout_text()).calls("Recursion.Program::Fib");
        for process in &recording.processes {
            let sums = Sums::of_process(process, "Recursion");
            assert_eq!(sums.calls.get("Recursion.Program::Fib").copied(), truth, "on {}", runtime.version);
        }
    });
}
