//! `dotnet build`, `dotnet run` and `dotnet test` under the launcher: results unchanged, and the
//! report leads to the user's own process among those of the SDK; coverage of test projects that
//! run at once is one.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clrscope_recording::model::{LossReason, Module, ModuleKind};
use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::{Finished, Sdk};

const PROGRAM: &str = r#"
using System;
using System.Runtime.CompilerServices;

static class Program
{
    static long work;
    [MethodImpl(MethodImplOptions.NoInlining)] static void Work() => work++;
    static int Main(string[] args)
    {
        for (int i = 0; i < 1234; i++) Work();
        Console.WriteLine($"worked {work}: {string.Join('|', args)}");
        return 3;
    }
}
"#;

const TESTS: &str = r#"
using System.Runtime.CompilerServices;
using Xunit;

public class Tests
{
    static int work;
    [MethodImpl(MethodImplOptions.NoInlining)] static void Work() => work++;
    [Fact] public void Passes() { for (int i = 0; i < 777; i++) Work(); Assert.Equal(777, work); }
    [Fact] public void Fails() => Assert.Equal(1, 2);
}
"#;

/// Code that two test projects share: the conditions are true in one and false in the other.
const SHARED: &str = "public static class Work
{
    public static int Sign(int number)
    {
        if (number < 0)
        {
            return -1;
        }
        return 1;
    }

    public static int Never() => 7;
}
";

/// Code of the shared assembly that no test runs, and that filters leave out.
const SPARE: &str = "public static class Spare
{
    public static int One() => 1;
    public static int Two() => 2;
}
";

const FIRST: &str = "
using Xunit;
public class First
{
    [Fact] public void Above() { for (int i = 0; i < 300; i++) Assert.Equal(1, Work.Sign(i)); }
}
";

const SECOND: &str = "
using Xunit;
public class Second
{
    [Fact] public void Below() { for (int i = 0; i < 20; i++) Assert.Equal(-1, Work.Sign(i - 20)); }
}
";

/// Hits and misses of the lines of `SHARED` by the tests of both projects, as the one that reads
/// Cobertura's XML says it.
const STATUSES: &str =
    "[[4, \"hit\"], [5, \"hit\"], [6, \"hit\"], [7, \"hit\"], [9, \"hit\"], [10, \"hit\"], [12, \"miss\"]]";

/// And how often each line was run.
const HITS: [(u32, u32); 7] = [(4, 320), (5, 320), (6, 20), (7, 20), (9, 300), (10, 320), (12, 0)];

const READER: &str = "
import json, sys
from pycobertura import Cobertura
report = Cobertura(sys.argv[1])
print(json.dumps({name: report.line_statuses(name) for name in report.files()}))
";

/// Longer than any of these takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

struct Projects {
    place: TestFolder,
    sdk: Sdk,
}

impl Projects {
    fn new(sdk: Sdk) -> Self {
        let place = TestFolder::new();
        let framework = format!("net{}.0", sdk.version.major);
        let project = |properties: &str, items: &str| {
            format!(
                "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><TargetFramework>{framework}</TargetFramework>{properties}\
                 </PropertyGroup><ItemGroup>{items}</ItemGroup></Project>"
            )
        };
        let package =
            |name: &str, version: &str| format!("<PackageReference Include=\"{name}\" Version=\"{version}\"/>");
        let packages = [
            package("Microsoft.NET.Test.Sdk", "18.11.0"),
            package("xunit", "2.9.3"),
            package("xunit.runner.visualstudio", "4.0.1"),
        ];
        let tests = |items: &str| project("<NoWarn>$(NoWarn);NETSDK1188</NoWarn>", &(packages.concat() + items));
        let shared = "<ProjectReference Include=\"../shared/shared.csproj\"/>";
        let source = testkit::kit().map(|kit| format!("<add key=\"kit\" value=\"{}\"/>", kit.join("nuget").display()));
        let sources = source.unwrap_or_default();
        for (name, text) in [
            (
                "nuget.config",
                format!("<configuration><packageSources><clear/>{sources}</packageSources></configuration>"),
            ),
            ("app/app.csproj", project("<OutputType>Exe</OutputType>", "")),
            ("app/Program.cs", PROGRAM.to_owned()),
            // The packages have texts for languages that are not there without ICU.
            ("tests/tests.csproj", tests("")),
            ("tests/Tests.cs", TESTS.to_owned()),
            ("shared/shared.csproj", project("", "")),
            ("shared/Work.cs", SHARED.to_owned()),
            ("shared/Spare.cs", SPARE.to_owned()),
            ("first/first.csproj", tests(shared)),
            ("first/First.cs", FIRST.to_owned()),
            ("second/second.csproj", tests(shared)),
            ("second/Second.cs", SECOND.to_owned()),
            (
                "both/both.slnx",
                "<Solution><Project Path=\"../first/first.csproj\"/><Project Path=\"../second/second.csproj\"/>\
                 <Project Path=\"../shared/shared.csproj\"/></Solution>"
                    .to_owned(),
            ),
        ] {
            let path = place.file(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        Self { place, sdk }
    }

    /// `dotnet WORDS` as a user has it: with servers that outlive a build.
    fn prepare(&self, command: &mut Command) {
        let packages = testkit::target_folder().join("nuget-packages");
        command.env("DOTNET_ROOT", &self.sdk.root).env("NUGET_PACKAGES", packages);
        command.env("DOTNET_CLI_HOME", self.place.path()).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
        command.env("DOTNET_CLI_TELEMETRY_OPTOUT", "1").env("DOTNET_NOLOGO", "1");
        for name in ["MSBUILDDISABLENODEREUSE", "UseSharedCompilation", "DOTNET_CLI_USE_MSBUILD_SERVER"] {
            command.env_remove(name);
        }
    }

    fn bare(&self, folder: &str, words: &[&str]) -> Finished {
        let mut command = Command::new(self.sdk.root.join("dotnet"));
        for name in testkit::PROFILER_VARIABLES {
            command.env_remove(name);
        }
        self.prepare(&mut command);
        command.args(words).current_dir(self.place.file(folder));
        testkit::run_within(command, PATIENCE)
    }

    fn recorded(&self, folder: &str, words: &[&str], recording: &Path) -> Finished {
        let recording = recording.to_str().expect("UTF-8");
        self.under(&["run", "-i", "calls", "-o", recording], folder, words)
    }

    /// `dotnet WORDS` under a command of the tool.
    fn under(&self, tool: &[&str], folder: &str, words: &[&str]) -> Finished {
        let mut command = self.place.clrscope(tool);
        command.arg("--").arg(self.sdk.root.join("dotnet"));
        self.prepare(&mut command);
        command.args(words).current_dir(self.place.file(folder));
        testkit::run_within(command, PATIENCE)
    }

    fn report(&self, arguments: &[&str]) -> String {
        let output = self.place.clrscope(["report"].iter().chain(arguments)).output().expect("the tool starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn calls(&self, recording: &Path, process: &str, function: &str) -> u64 {
        let path = recording.to_str().expect("UTF-8");
        let text = self.report(&[path, "--view", "functions", "--process", process, "--format", "json"]);
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let rows = document["rows"].as_array().expect("rows").iter().filter(|row| row["name"] == function);
        rows.filter_map(|row| row["calls"].as_u64()).sum()
    }
}

/// Ends the servers that a recorded command left behind, and only these.
struct Servers(Vec<PathBuf>);

impl Drop for Servers {
    fn drop(&mut self) {
        for recording in self.0.iter().filter_map(|path| clrscope_recording::open(path).ok()) {
            let left = recording.processes.iter().filter(|process| !process.complete);
            for process in left.filter(|process| {
                std::fs::read(format!("/proc/{}/cmdline", process.pid)).is_ok_and(|now| {
                    let words: Vec<u8> = process.command.join("\0").into_bytes();
                    now.starts_with(&words)
                })
            }) {
                let _ = Command::new("kill").arg(process.pid.to_string()).status();
            }
        }
    }
}

/// Lines of a build, without how long it took.
fn lasting_lines(finished: &Finished) -> String {
    let text = finished.stdout_text();
    let passing = |line: &&str| line.contains("Elapsed") || line.trim_start().starts_with("Restored ");
    text.lines().filter(|line| !passing(line)).collect::<Vec<_>>().join("\n")
}

/// Totals of tests, without how long they took.
fn totals(finished: &Finished) -> String {
    let text = finished.stdout_text();
    let line = text.lines().find(|line| line.contains("Total:")).unwrap_or_else(|| panic!("no totals: {text}"));
    line.split(", Duration").next().unwrap_or_default().to_owned()
}

/// The command did what it does without us: the same exit code, the same words, and on stderr ours
/// after its own.
fn assert_as_bare(with: &Finished, bare: &Finished, words: fn(&Finished) -> String) {
    assert_eq!((with.code(), words(with)), (bare.code(), words(bare)));
    // xUnit says there what failed, and when.
    let timeless = |finished: &Finished| finished.stderr_text().replace(|c: char| c.is_ascii_digit(), "0");
    let (said, alone) = (timeless(with), timeless(bare));
    assert!(said.strip_prefix(&alone).is_some_and(|ours| ours.trim_start().starts_with("cpu ")), "{said}");
}

#[test]
fn building_running_and_testing_give_the_same_results() {
    let Some(sdk) = Sdk::find() else { return testkit::not_run("no .NET SDK is at hand") };
    let projects = Projects::new(sdk);
    let recordings = ["build.clrs", "run.clrs", "test.clrs"].map(|name| projects.place.file(name));
    let [built, ran, tested] = &recordings;
    let _servers = Servers(recordings.to_vec());

    let bare = projects.bare("app", &["build"]).expect_success();
    let library = projects.place.file("app").join(format!("bin/Debug/net{}.0/app.dll", projects.sdk.version.major));
    let bytes = fs::read(&library).expect("the program");
    for folder in ["bin", "obj"] {
        fs::remove_dir_all(projects.place.file("app").join(folder)).expect("a folder");
    }
    let with = projects.recorded("app", &["build"], built).expect_success();
    assert_as_bare(&with, &bare, lasting_lines);
    assert!(fs::read(&library).is_ok_and(|now| now == bytes), "the compiler made something else");

    // The compiler's server outlives its build; where one was running before, none was started.
    let recording = clrscope_recording::open(built).expect("a recording");
    let servers = recording.processes.iter().filter(|process| process.command[0].ends_with("VBCSCompiler"));
    for server in servers {
        assert!(!server.complete && server.has_lost(LossReason::Stopped), "{server:?}");
    }

    let words = ["run", "--", "a", "b c"];
    let with = projects.recorded("app", &words, ran);
    assert_eq!((with.code(), with.stdout_text().as_str()), (3, "worked 1234: a|b c\n"), "{}", with.stderr_text());
    assert_as_bare(&with, &projects.bare("app", &words), Finished::stdout_text);
    assert!(with.stderr_text().contains(" --process app\n"), "{}", with.stderr_text());
    assert_eq!(projects.calls(ran, "app", "Program::Work"), 1234);
    let report = projects.report(&[ran.to_str().expect("UTF-8")]);
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        report.contains("; yours is app (process ") && report.contains(": --process app shows it alone"),
        "{report}"
    );

    if testkit::kit().is_none() {
        return testkit::not_run("without the kit there are no packages to test with");
    }
    let with = projects.recorded("tests", &["test"], tested);
    let text = with.stdout_text();
    assert!(with.code() == 1 && text.contains("Failed:     1, Passed:     1, Skipped:     0, Total:     2"), "{text}");
    assert_as_bare(&with, &projects.bare("tests", &["test"]), totals);
    assert!(with.stderr_text().contains(" --process testhost\n"), "{}", with.stderr_text());
    assert_eq!(projects.calls(tested, "testhost", "Tests::Work"), 777);
    each_test_is_a_part(&projects, tested);
}

/// And nothing of what runs the tests is the user's own code.
fn each_test_is_a_part(projects: &Projects, recording: &Path) {
    let path = recording.to_str().expect("UTF-8");
    let part = |name: &str, calls: u64| {
        let text = projects.report(&[path, "--view", "functions", "--part", name, "--format", "json"]);
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let rows = document["rows"].as_array().expect("rows").iter().filter(|row| row["name"] == "Tests::Work");
        assert_eq!(rows.filter_map(|row| row["calls"].as_u64()).sum::<u64>(), calls, "test {name}");
    };
    part("Tests.Passes", 777);
    part("Tests.Fails", 0);
    let recording = clrscope_recording::open(recording).expect("a recording");
    let is_host = |command: &[String]| command.iter().any(|word| word.ends_with("testhost.dll"));
    let host = recording.processes.iter().find(|process| is_host(&process.command)).expect("the test host");
    let own: BTreeSet<&str> = host.modules.iter().filter(|module| is_own(module)).map(|module| &*module.name).collect();
    // The test platform brings a third-party library.
    assert_eq!(own.into_iter().filter(|name| *name != "Newtonsoft.Json").collect::<Vec<_>>(), ["tests"]);
}

fn is_own(module: &Module) -> bool {
    !module.framework && module.kind == ModuleKind::Managed && module.path.ends_with(".dll")
}

#[test]
fn coverage_of_test_projects_that_run_at_once_is_added_up_and_read_by_others() {
    let Some(sdk) = Sdk::find().filter(|_| testkit::kit().is_some()) else {
        return testkit::not_run("without the kit there are no packages to test with");
    };
    let projects = Projects::new(sdk);
    projects.bare("both", &["build"]).expect_success();
    let xml = projects.place.file("cobertura.xml");
    let cover = ["cover", "-o", "covered.clrs", "--cobertura", xml.to_str().expect("UTF-8"), "--exclude", "Spare"];
    let with = projects.under(&cover, "both", &["test", "--no-build"]).expect_success();
    let text = with.stdout_text();
    assert_eq!(text.matches("Failed:     0, Passed:     1,").count(), 2, "{text}");

    let written = fs::read_to_string(&xml).expect("the XML");
    for (line, hits) in HITS {
        assert!(written.contains(&format!("<line number=\"{line}\" hits=\"{hits}\"")), "line {line}: {written}");
    }
    assert!(written.contains("condition-coverage=\"100% (2/2)\""), "each project goes one way: {written}");
    assert!(!written.contains("First.cs") && !written.contains("Second.cs"), "test projects are left out: {written}");
    assert!(written.contains("lines-covered=\"6\" lines-valid=\"7\""), "what is excluded is in no sum: {written}");
    included_code_alone_is_in_totals_under_dotnet_test(&projects);

    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Some(packages) = testkit::from_pypi("pycobertura==4.1.0", place) else {
        return testkit::not_run("reading Cobertura's XML: pip can't install pycobertura here");
    };
    let mut reader = Command::new("python3");
    let read = reader.args(["-c", READER]).arg(&xml).env("PYTHONPATH", packages).output().expect("Python");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let statuses: Value = serde_json::from_slice(&read.stdout).expect("JSON");
    let expected: Value = serde_json::from_str(STATUSES).expect("JSON");
    assert_eq!(statuses, serde_json::json!({ "Work.cs": expected }));
}

/// What a filter does not include stood in totals, XML and `--fail-under` as code that did not run.
fn included_code_alone_is_in_totals_under_dotnet_test(projects: &Projects) {
    let xml = projects.place.file("included.xml");
    let mut cover = vec!["cover", "-o", "included.clrs", "--cobertura", xml.to_str().expect("UTF-8")];
    // Of the shared assembly much did not run; the test project is covered because it is named.
    cover.extend(["--include", "[first]*", "--fail-under", "100"]);
    projects.under(&cover, "first", &["test", "--no-build"]).expect_success();
    let written = fs::read_to_string(&xml).expect("the XML");
    assert!(written.contains("First.cs") && !written.contains("<package name=\"shared\""), "{written}");
    assert!(written.contains("lines-covered=\"1\" lines-valid=\"1\""), "{written}");
}
