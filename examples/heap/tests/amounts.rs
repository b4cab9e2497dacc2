//! A heap of known objects is shown right, with the way to the largest, at start and by attach, on every runtime at hand.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

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

/// Checks a shot of the fixture's heap, whoever took it.
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

/// The runtime's answer to the request to attach a profiler: what `clrscope attach` and `dotnet` tools send to its socket.
fn attach(pid: u32, folder: &Path, library: &Path, client_data: &str) -> u32 {
    let socket = || {
        let entries = std::fs::read_dir(folder).expect("a folder").flatten();
        let is_it = |name: &str| name.starts_with(&format!("dotnet-diagnostic-{pid}-")) && name.ends_with("-socket");
        entries
            .map(|entry| entry.path())
            .find(|path| path.file_name().is_some_and(|name| is_it(&name.to_string_lossy())))
    };
    testkit::wait_until("the runtime's socket", || socket().is_some());
    let mut stream = UnixStream::connect(socket().expect("it is there")).expect("it listens");
    let units: Vec<u16> = library.to_string_lossy().encode_utf16().chain([0]).collect();
    let mut payload = 10_000_u32.to_le_bytes().to_vec();
    // A GUID's first three numbers are little endian.
    let [one, two, three] = [(CLASS >> 96) as u32, (CLASS >> 80) as u32, (CLASS >> 64) as u32];
    payload.extend(one.to_le_bytes());
    payload.extend((two as u16).to_le_bytes());
    payload.extend((three as u16).to_le_bytes());
    payload.extend((CLASS as u64).to_be_bytes());
    payload.extend((units.len() as u32).to_le_bytes());
    payload.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
    payload.extend((client_data.len() as u32).to_le_bytes());
    payload.extend(client_data.as_bytes());
    let mut message = b"DOTNET_IPC_V1\0".to_vec();
    message.extend((20 + payload.len() as u16).to_le_bytes());
    // The command "attach profiler".
    message.extend([3, 1, 0, 0]);
    message.extend(payload);
    stream.write_all(&message).expect("it reads");
    let mut answer = [0; 24];
    stream.read_exact(&mut answer).expect("it answers");
    u32::from_le_bytes([answer[20], answer[21], answer[22], answer[23]])
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
            // Until the profiler before has been let go of, another is refused.
            const ALREADY_ACTIVE: u32 = 0x8013_136a;
            let mut answer = ALREADY_ACTIVE;
            testkit::wait_until("the attach", || {
                answer = attach(program.id(), folder.path(), &library, &output.to_string_lossy());
                answer != ALREADY_ACTIVE
            });
            assert_eq!(answer, 0, "round {round} on .NET {}", runtime.version);
            testkit::wait_until("the shot", || output.exists());
            check(&std::fs::read_to_string(&output).expect("the shot"), &runtime.version);
        }
        end(program, folder.path());
    });
}
