//! Programs that are a single file, with their assemblies behind the code of the host.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use clrscope_testkit::{self as testkit, Sdk};
use serde_json::Value;

use crate::common::TestFolder;
use crate::common::counted::{COUNTED, said_hits};
use crate::server::{Server, attach, listed, said};

/// Works until it is told to end.
const PROGRAM: &str = r#"
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

static class Program
{
    static ulong sink = 1;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Work()
    {
        for (int i = 0; i < 1_000_000; i++) sink = (sink ^ (sink >> 29)) * 6364136223846793005;
    }
    static async Task Waits() => await Task.Delay(TimeSpan.FromHours(1));
    static void Main()
    {
        Task waits = Waits();
        bool stop = false;
        using var term = PosixSignalRegistration.Create(PosixSignal.SIGTERM, context =>
        {
            context.Cancel = true;
            Volatile.Write(ref stop, true);
        });
        Console.WriteLine("ready");
        while (!Volatile.Read(ref stop)) Work();
        Console.WriteLine("stopped");
        GC.KeepAlive(waits);
    }
}
"#;

#[test]
fn a_program_of_a_single_file_is_listed_and_attached_to_as_any_other() {
    let Some(sdk) = Sdk::find() else { return testkit::not_run("no .NET SDK is at hand") };
    let place = TestFolder::new();
    let mut program = Command::new(sdk.publish_single_file(place.path(), "alone", PROGRAM));
    sdk.lend_runtime(&mut program);
    let server = Server::spawn(program);
    assert_eq!(listed(&place, server.pid)["entry_assembly"], "alone");
    let output = attach(&place, server.pid, "--duration 500ms -o alone.clrs").output().expect("the tool starts");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(server.left_over(), BTreeSet::new());
    let output = place.run(&format!("stacks {} --format json", server.pid));
    assert!(output.status.success(), "{}", said(&output));
    let stacks: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let pending = &stacks["pending"][0];
    assert_eq!(
        (&pending["waits_for"], &pending["frames"][0]["name"]),
        (&"Task.Delay".into(), &"Program::Waits".into())
    );
    assert!(stacks["threads"].as_array().is_some_and(|all| all.iter().any(|thread| thread["role"] == "main")));
    assert_eq!(server.left_over(), BTreeSet::new());
    let output = place.run("report alone.clrs --view functions --format json");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let work = rows.iter().find(|row| row["name"] == "Program::Work" && row["module"] == "alone");
    assert!(work.and_then(|row| row["self_share"].as_f64()) > Some(0.5), "{report:#}");
    server.end();
    lines_are_those_of_the_source(&place);
}

/// The module lies in the program. The PDB lies next to the program, and where the compiler wrote
/// it. If there is none, the report says so.
fn lines_are_those_of_the_source(place: &TestFolder) {
    let lines = || place.run("report alone.clrs --view lines --source");
    let with = || {
        let text = String::from_utf8_lossy(&lines().stdout).into_owned();
        assert!(text.contains("Program.cs") && text.contains("while (!Volatile.Read(ref stop)) Work();"), "{text}");
    };
    with();
    fs::remove_file(place.file("out/alone.pdb")).expect("the PDB beside the program");
    with();
    fs::rename(place.file("app/Program.cs"), place.file("Program.cs")).expect("the source");
    let text = String::from_utf8_lossy(&lines().stdout).replace('\n', " ");
    assert!(text.contains("Source not found: ") && text.contains("--source-root FOLDER"), "{text}");
    let text = place.run("report alone.clrs --view lines --source-root .");
    assert!(String::from_utf8_lossy(&text.stdout).contains("while (!Volatile.Read(ref stop)) Work();"));
    fs::remove_dir_all(place.file("app/obj")).expect("what the compiler wrote");
    let text = String::from_utf8_lossy(&lines().stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("have no line: alone.dll: no PDB at ") && text.contains("out/alone.pdb"), "{text}");
    assert!(text.contains("<DebugType>embedded</DebugType>"), "{text}");
}

/// Runs the program with a probe at each of these lines: their hits, and what clrscope says.
fn probed(place: &TestFolder, sdk: &Sdk, program: &Path) -> (Vec<(u64, u64)>, String) {
    let words = ["run", "--force", "-o", "c.clrs"].map(OsString::from).into_iter();
    let lines = said_hits().into_iter();
    let lines = lines.flat_map(|(line, _)| ["--probe-at".into(), format!("Program.cs:{line}").into()]);
    let mut command = place.clrscope(words.chain(lines).chain(["--".into(), program.into()]));
    sdk.lend_runtime(&mut command);
    let finished = testkit::run(command).expect_success();
    assert_eq!(finished.stdout_text(), "2450\n");
    let output = place.run("report c.clrs --view probes --format json");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let row = |row: &Value| (row["line"].as_u64().expect("a line"), row["calls"].as_u64().expect("hits"));
    let mut seen: Vec<_> = report["rows"].as_array().expect("rows").iter().map(row).collect();
    seen.sort_unstable();
    (seen, finished.stderr_text().split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The PDB lies next to the program, in the assembly that lies in the program, or nowhere. In the
/// last case clrscope says the reason and the cure.
#[test]
fn lines_of_a_program_of_a_single_file_are_probed_where_it_has_a_pdb() {
    let Some(sdk) = Sdk::find() else { return testkit::not_run("no .NET SDK is at hand") };
    for kind in ["portable", "embedded", "none"] {
        let place = TestFolder::new();
        let properties = format!("<DebugType>{kind}</DebugType>");
        let program = sdk.publish_single_file_with(place.path(), "alone", COUNTED, &properties);
        let beside = place.file("out/alone.pdb");
        assert_eq!(beside.exists(), kind == "portable");
        if kind != "none" {
            assert_eq!(probed(&place, &sdk, &program).0, said_hits(), "{kind}");
        }
        let why = match kind {
            "portable" => {
                fs::remove_file(beside).expect("the PDB");
                fs::remove_dir_all(place.file("app/obj")).expect("that of the compiler");
                "alone.dll: no PDB at "
            }
            "none" => "alone.dll: it was compiled without symbols. ",
            _ => continue,
        };
        let (seen, words) = probed(&place, &sdk, &program);
        assert_eq!(seen, [], "{kind}");
        for (line, _) in said_hits() {
            assert!(
                words.contains(&format!("--probe-at 'Program.cs:{line}'")) && words.contains(why),
                "{kind}: {words}"
            );
        }
        assert!(words.contains("<DebugType>embedded</DebugType>"), "{kind}: {words}");
    }
}
