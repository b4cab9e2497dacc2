//! `clrscope heap PID`: one snapshot of a program that runs, in a recording of its own or in the
//! one that it is in.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use clrscope_recording::heap::{HeapChunk, HeapData};
use clrscope_recording::model::Process;
use clrscope_testkit as testkit;
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::{Server, attach, kill, said, some_runtime};

/// The fixture with known objects, until it may end.
fn start(runtime: &testkit::Runtime, place: &TestFolder) -> Child {
    let mut command = runtime.command(&testkit::fixture("Holders"));
    command.arg("keep").arg(place.file("end")).stdout(Stdio::piped());
    let mut program = command.spawn().expect("the program starts");
    let mut line = String::new();
    BufReader::new(program.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("it writes");
    assert_eq!(line, "ready\n");
    program
}

/// Number of objects of a type.
fn count(process: &Process, number: u32, name: &str) -> usize {
    let data: HeapData<'_> = process.heap(number).unwrap_or_else(|| panic!("{:?}", process.snapshots));
    let types = data.types();
    let mut found = 0;
    for chunk in data.chunks() {
        let bytes = chunk.bytes.load();
        let HeapChunk::Objects(row) = data.chunk(&bytes) else { continue };
        let is_it = |number: u32| *types[number as usize].name == *name;
        row.visit(&types, |object| found += usize::from(!object.goes_on && is_it(object.type_number)))
            .expect("objects");
    }
    found
}

/// Root of the way in which most objects of a type are held: kind and name, with the number of
/// objects.
fn holder(place: &TestFolder, type_name: &str) -> (String, String, u64) {
    let output = place.run(&format!("report second.clrs --view roots --type {type_name} --sort calls --format json"));
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let row = &report["rows"][0];
    let text = |key: &str| row["path"][0][key].as_str().unwrap_or_default().to_owned();
    (text("kind"), text("name"), row["objects"].as_u64().unwrap_or(0))
}

/// Each kind of root has its name, in a snapshot of a program that ran before anybody looked.
fn holders_are_named(place: &TestFolder, version: &str) {
    for (type_name, kind, name, objects) in [
        ("Holders.Stored", "static", "Holders.Store<Holders.Stored>.Kept", 3),
        ("Holders.Subscriber", "static", "Holders.Publisher.Changed", 60),
        ("Holders.Watched", "static", "Holders.Program.watched", 1),
        // By their keys.
        ("Holders.Attached", "static", "Holders.Program.keys", 30),
        ("Holders.Dependent", "static", "Holders.Program.owner", 1),
        ("Emitted.Made", "static", "Holders.Program.collectible", 7),
        ("Plugin.Item<string>", "static", "Holders.Program.plugged", 1),
        ("Holders.Handled", "handle", "", 1),
        ("Holders.Local", "stack", "Holders.Program::Hold", 0),
        ("Holders.Note", "thread static", "Holders.Program.note", 0),
        ("Holders.Remark", "thread static", "Holders.Slot<Holders.Remark>.Value", 0),
        ("Holders.Mortal", "finalizer queue", "", 0),
        ("string", "frozen", "", 0),
    ] {
        let found = holder(place, type_name);
        assert_eq!((&*found.0, &*found.1), (kind, name), "{type_name} on {version}");
        assert!(objects == 0 || found.2 == objects, "{type_name} on {version}: {found:?}");
    }
}

#[test]
fn a_snapshot_of_a_running_program_is_taken_twice_and_the_program_is_left() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut program = start(runtime, &place);
        for name in ["first.clrs", "second.clrs"] {
            let output = place.run(&format!("heap {} -o {name}", program.id()));
            assert!(output.status.success(), "{}", said(&output));
            let text = said(&output);
            assert!(text.contains("clrscope: snapshot 1 of the heap has "), "{text}");
            let recording = clrscope_recording::open(&place.file(name)).expect("a recording");
            assert_eq!(recording.problems, []);
            let process = &recording.processes[0];
            let counts = ["Holders.Subscriber", "Holders.Order", "Emitted.Made"].map(|name| count(process, 1, name));
            assert_eq!(counts, [60, 500, 7], "on {}", runtime.version);
            assert_eq!(testkit::left_over(program.id()), Default::default());
        }
        holders_are_named(&place, &runtime.version.to_string());
        std::fs::write(place.file("end"), "").expect("a file");
        assert!(program.wait().expect("it ends").success());
    });
}

/// Standard output of a command that succeeds.
fn shown(place: &TestFolder, arguments: &str) -> String {
    let output = place.run(arguments);
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).expect("text")
}

/// Line of the fixture's source that holds `text`, from 1.
fn line_with(text: &str) -> usize {
    let source = testkit::workspace_root().join("dotnet/fixtures/Holders/Holders.cs");
    let source = std::fs::read_to_string(source).expect("the source");
    1 + source.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no line with {text:?}"))
}

/// The head said that a program which ran on had run for as long as it was looked at, both sides of
/// a comparison began with "Snapshot 1 of 1", and collections alone were said to be made without
/// calls. Who holds objects was told without the line.
#[test]
fn first_screens_say_what_was_watched_which_snapshot_is_which_and_the_line_that_holds() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut program = start(runtime, &place);
        for command in ["heap PID -o one.clrs", "heap PID -o two.clrs", "attach PID -i gc --duration 300ms -o gc.clrs"]
        {
            shown(&place, &command.replace("PID", &program.id().to_string()));
        }
        std::fs::write(place.file("end"), "").expect("a file");
        assert!(program.wait().expect("it ends").success());
        let first = shown(&place, "report one.clrs");
        assert!(first.contains(" recorded, the program ran on, "), "{first}");
        let cache = format!("static field Holders.Cache.Items (Holders.cs:{})", line_with("Items { get; } = new()"));
        assert!(first.contains(&cache), "{cache} is not in\n{first}");
        let changes = shown(&place, "diff one.clrs two.clrs --view heap");
        let words = ["Before: Snapshot at ", "After: Snapshot at "].map(|word| changes.matches(word).count());
        assert_eq!(words, [1, 1], "{changes}");
        let collections = shown(&place, "report gc.clrs");
        assert!(!collections.contains("calls"), "{collections}");
    });
}

/// Complete snapshots in all recordings of a folder.
fn snapshots(place: &TestFolder) -> usize {
    let files = std::fs::read_dir(place.path()).expect("the folder").flatten().map(|entry| entry.path());
    let recordings = files.filter(|path| path.extension().is_some_and(|extension| extension == "clrs"));
    let complete = |path: PathBuf| {
        let recording = clrscope_recording::open(&path).expect("a recording");
        let all = recording.processes.iter().flat_map(|process| &process.snapshots);
        all.filter(|snapshot| snapshot.is_complete()).count()
    };
    recordings.map(complete).sum()
}

/// It died within four attaches: modules that had been listed were asked about when they were gone,
/// and compiled code was listed while it was unloaded.
#[test]
fn a_program_that_unloads_all_the_time_outlives_snapshots_and_recordings() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut command = runtime.command(&testkit::fixture("Unloading"));
        command.arg(testkit::fixture("Hello")).arg("1000000").stdout(Stdio::null());
        // It is looked at from its start: it had "no diagnostics socket" then.
        let mut program = command.spawn().expect("the program starts");
        let takes = |_| place.run(&format!("heap {} -q", program.id()));
        let records = |_| {
            place.run(&format!(
                "attach {} -i cpu -i wall -i alloc -i exceptions -i gc --duration 500ms -q",
                program.id()
            ))
        };
        let taken: Vec<_> = (0..8).map(takes).chain((0..3).map(records)).collect();
        let ended = program.try_wait().expect("a child");
        program.kill().expect("it can be ended");
        program.wait().expect("it ends");
        assert_eq!(ended, None, "on {}", runtime.version);
        taken.iter().for_each(|output| assert!(output.status.success(), "{} on {}", said(output), runtime.version));
        assert!(snapshots(&place) == 8, "on {}", runtime.version);
    });
}

#[test]
fn two_who_ask_for_a_snapshot_at_the_same_time_both_get_one() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut program = start(runtime, &place);
        let ask = |_| {
            let mut command = place.clrscope(["heap".to_owned(), program.id().to_string()]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the tool starts")
        };
        let both = [(), ()].map(ask);
        for one in both {
            let output = one.wait_with_output().expect("it ends");
            let text = said(&output);
            assert!(output.status.success() && text.contains("snapshot"), "{text} on {}", runtime.version);
        }
        assert_eq!(snapshots(&place), 2, "on {}", runtime.version);
        assert_eq!(testkit::left_over(program.id()), Default::default());
        std::fs::write(place.file("end"), "").expect("a file");
        assert!(program.wait().expect("it ends").success());
    });
}

/// `heap PID` and `record PID` waited for a stopped program without end and without a word.
#[test]
fn a_stopped_program_is_called_that() {
    let (place, server) = (TestFolder::new(), Server::start(some_runtime()));
    let launcher = attach(&place, server.pid, "-i heap:at=command -o a.clrs --quiet").spawn();
    let launcher = launcher.expect("the tool starts");
    let pid = server.pid;
    testkit::wait_until("the recording", || place.run(&format!("record {pid} mark begun")).status.success());
    server.signal("STOP");
    for words in [format!("heap {pid}"), format!("record {pid} mark x")] {
        let output = place.run(&words);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert!(said.contains("it is stopped by a signal or a debugger"), "{words}: {said}");
        assert!(said.contains(&format!("hint: resume it: kill -CONT {pid}")), "{words}: {said}");
    }
    server.signal("CONT");
    assert!(place.run(&format!("record {pid} mark ended")).status.success());
    kill(launcher.id(), "INT");
    assert!(launcher.wait_with_output().expect("it ends").status.success());
    server.end();
}

/// `heap PID` ended with 0 where the program was killed before its snapshot was whole.
#[test]
fn a_snapshot_that_is_not_whole_is_an_exit_code() {
    let place = TestFolder::new();
    let mut program = start(some_runtime(), &place);
    let mut heap = place.clrscope(["heap", &program.id().to_string(), "-q", "-o", "x.clrs"]);
    let heap = heap.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the tool starts");
    testkit::wait_until("the recording", || place.file("x.clrs.d").exists());
    program.kill().expect("it is killed");
    program.wait().expect("it ends");
    let output = heap.wait_with_output().expect("it ends");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no complete snapshot of process") || said.contains("cannot attach"), "{said}");
}
