//! A heap of known objects is shown right, with the way to the largest, at start and by attach, on
//! every runtime at hand.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use clr_diagnostics::{AttachProfiler, Clsid, Error, Process, ResultCode};
use clrscope_testkit as testkit;

const CLASS: u128 = 0xE1C64B7A_0D52_4C39_A8F6_7B94D3E05A21;

/// The program once its objects are there, and what ends it.
fn start(mut command: Command, folder: &Path) -> Child {
    command.arg("keep").arg(folder.join("end")).stdout(Stdio::piped());
    let mut program = command.spawn().expect("the program starts");
    let mut line = String::new();
    BufReader::new(program.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("it writes");
    assert_eq!(line, "ready\n");
    program
}

fn end(mut program: Child, folder: &Path) {
    std::fs::write(folder.join("end"), "").expect("a file");
    assert!(program.wait().expect("it ends").success());
}

/// Checks a shot of the fixture's heap, no matter how it was taken.
fn check(text: &str, version: &dyn std::fmt::Display) {
    let row = |line: &str| {
        let [bytes, objects, class] = line.split('\t').collect::<Vec<_>>()[..] else { return None };
        Some((class.to_owned(), (objects.parse::<u64>().ok()?, bytes.parse::<u64>().ok()?)))
    };
    let rows: BTreeMap<_, _> = text.lines().filter_map(row).collect();
    assert_eq!(rows.get("Amounts.Link"), Some(&(2_000, 64_000)), "the dead are not there, on .NET {version}:\n{text}");
    assert_eq!(rows.get("Amounts.Leaf").map(|row| row.0), Some(500), "on .NET {version}:\n{text}");
    assert_eq!(rows.get("System.Guid[]"), Some(&(1, 1_256)), "on .NET {version}:\n{text}");
    let (arrays, bytes) = rows.get("byte[]").copied().unwrap_or_default();
    assert!((500..600).contains(&arrays) && (5_012_000..5_100_000).contains(&bytes), "on .NET {version}:\n{text}");
    let path: Vec<&str> = text.lines().skip_while(|line| !line.ends_with(" roots")).skip(1).collect();
    let [.., tree, list, array, leaf, data] = path[..] else { panic!("a longer path, on .NET {version}:\n{text}") };
    assert_eq!(tree, "  static Amounts.Program.tree -> Amounts.Tree", "on .NET {version}:\n{text}");
    let leaves = "  .Leaves -> System.Collections.Generic.List<Amounts.Leaf>";
    assert_eq!(list, leaves, "on .NET {version}:\n{text}");
    assert_eq!((array, data), ("  ._items -> Amounts.Leaf[]", "  .Data -> byte[]"), "on .NET {version}:\n{text}");
    assert!(leaf.starts_with("  [") && leaf.ends_with("] -> Amounts.Leaf"), "on .NET {version}:\n{text}");
}

#[test]
fn a_shot_shows_known_objects_and_the_fields_that_lead_to_the_largest() {
    let library = testkit::example("heap");
    testkit::each_runtime(|runtime| {
        let folder = testkit::scratch();
        let (output, trigger) = (folder.path().join("heap.txt"), folder.path().join("shoot"));
        let mut command = runtime.command(&testkit::fixture("Amounts"));
        testkit::load_profiler(&mut command, &library, "{E1C64B7A-0D52-4C39-A8F6-7B94D3E05A21}");
        command.env("HEAP_PROFILER_OUTPUT", &output).env("HEAP_PROFILER_TRIGGER", &trigger);
        let program = start(command, folder.path());
        std::fs::write(&trigger, "").expect("a file");
        testkit::wait_until("the shot", || output.exists());
        end(program, folder.path());
        check(&std::fs::read_to_string(&output).expect("the shot"), &runtime.version);
    });
}

#[test]
fn an_attached_profiler_takes_a_shot_and_detaches_twice() {
    let library = testkit::example("heap");
    testkit::each_runtime(|runtime| {
        let folder = testkit::scratch();
        let mut command = runtime.command(&testkit::fixture("Amounts"));
        // Where the runtime puts its socket.
        command.env("TMPDIR", folder.path());
        let program = start(command, folder.path());
        for round in 0..2 {
            let output = folder.path().join(format!("heap-{round}.txt"));
            let profiler = AttachProfiler::new(Clsid(CLASS), library.to_str().expect("a path"))
                .with_client_data(output.to_str().expect("a path").as_bytes());
            let port = Process::open(program.id()).expect("it runs").port().expect("its port");
            let attached = testkit::wait_for("the attach", || match port.attach_profiler(&profiler) {
                // Until the profiler before has been let go of, another is refused.
                Err(Error::Refused { code, .. }) if code == ResultCode::PROFILER_ALREADY_ACTIVE => None,
                answer => Some(answer),
            });
            assert!(attached.is_ok(), "round {round} on .NET {}: {attached:?}", runtime.version);
            testkit::wait_until("the shot", || output.exists());
            check(&std::fs::read_to_string(&output).expect("the shot"), &runtime.version);
        }
        end(program, folder.path());
    });
}
