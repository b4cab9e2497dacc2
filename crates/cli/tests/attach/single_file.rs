//! Programs that are a single file, with their assemblies behind the code of the host.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::time::Duration;

use clrscope_testkit::{self as testkit, Sdk};
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::{Server, attach, listed, said};

/// Works until it is told to end.
const PROGRAM: &str = r#"
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

static class Program
{
    static ulong sink = 1;
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Work()
    {
        for (int i = 0; i < 1_000_000; i++) sink = (sink ^ (sink >> 29)) * 6364136223846793005;
    }
    static void Main()
    {
        bool stop = false;
        using var term = PosixSignalRegistration.Create(PosixSignal.SIGTERM, context =>
        {
            context.Cancel = true;
            Volatile.Write(ref stop, true);
        });
        Console.WriteLine("ready");
        while (!Volatile.Read(ref stop)) Work();
        Console.WriteLine("stopped");
    }
}
"#;

/// Longer than it takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

fn project(framework: u32) -> String {
    format!(
        "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><OutputType>Exe</OutputType>\
         <TargetFramework>net{framework}.0</TargetFramework><RuntimeIdentifier>linux-x64</RuntimeIdentifier>\
         <PublishSingleFile>true</PublishSingleFile><SelfContained>false</SelfContained>\
         <EnableSingleFileAnalyzer>false</EnableSingleFileAnalyzer><InvariantGlobalization>true</InvariantGlobalization>\
         </PropertyGroup></Project>"
    )
}

#[test]
fn a_program_of_a_single_file_is_listed_and_attached_to_as_any_other() {
    let Some(sdk) = Sdk::find() else { return testkit::not_run("no .NET SDK is at hand") };
    let place = TestFolder::new();
    for (name, text) in [
        ("nuget.config", "<configuration><packageSources><clear/></packageSources></configuration>".to_owned()),
        ("app/alone.csproj", project(sdk.version.major)),
        ("app/Program.cs", PROGRAM.to_owned()),
    ] {
        let path = place.file(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let with_runtime = |mut command: Command| {
        command.env("DOTNET_ROOT", &sdk.root).env("DOTNET_CLI_HOME", place.path()).env("DOTNET_NOLOGO", "1");
        command.env("DOTNET_CLI_TELEMETRY_OPTOUT", "1").env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
        command.env("NUGET_PACKAGES", place.file("packages")).env("MSBUILDDISABLENODEREUSE", "1");
        testkit::PROFILER_VARIABLES.iter().for_each(|name| _ = command.env_remove(name));
        command
    };
    let mut publish = with_runtime(Command::new(sdk.root.join("dotnet")));
    publish.args(["publish", "-o", "../out", "-p:UseSharedCompilation=false"]).current_dir(place.file("app"));
    let published = testkit::run_within(publish, PATIENCE);
    assert_eq!(published.code(), 0, "{}", published.stdout_text());
    assert!(!place.file("out/alone.dll").exists(), "the assembly is in the program");
    let server = Server::of(with_runtime(Command::new(place.file("out/alone"))));
    assert_eq!(listed(&place, server.pid)["entry_assembly"], "alone");
    let output = attach(&place, server.pid, "--duration 500ms -o alone.clrs").output().expect("the tool starts");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(server.left_over(), BTreeSet::new());
    let output = place.run("report alone.clrs --view functions --format json");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let work = rows.iter().find(|row| row["name"] == "Program::Work" && row["module"] == "alone");
    assert!(work.and_then(|row| row["self_share"].as_f64()) > Some(0.5), "{report:#}");
    server.end();
    lines_are_those_of_the_source(&place);
}

/// The module lies in the program, the PDB beside it, and where the compiler wrote it. Without one that is said.
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
    assert!(text.contains("are on no line: alone.dll: no PDB at ") && text.contains("out/alone.pdb"), "{text}");
    assert!(text.contains("<DebugType>embedded</DebugType>"), "{text}");
}
