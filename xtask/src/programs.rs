//! `cargo xtask soak programs`: runs real programs while the values of all their calls are read, on
//! every available runtime that the program supports. Each program must print and do the same as in
//! a bare run.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use clrscope_recording::model::LossReason;
use clrscope_testkit::{
    Finished, PROFILER_VARIABLES, Runtime, Sdk, Service, azmcp, azmcp_command, cli, fixture, kit, load, run_within,
    runtimes, scratch, workspace_root,
};

/// Both instruments that read values, of all methods.
const READERS: [&str; 2] = ["flow:args,last=64MiB", "exceptions:args"];
/// Longer than any of these takes with all its values read, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(900);
/// Requests to the web service, of each of four clients.
const REQUESTS: usize = 100;
/// Begins a frame of the framework in a stack trace that a program prints.
const FRAME_OF_FRAMEWORK: &str = "at System.";
/// Python code that reaches .NET as a person would write it.
const PYTHON: &str = r#"
import sys
from pythonnet import load
load("coreclr", runtime_config=sys.argv[1])
import clr
from System import DateTime, Environment, String
from System.Collections.Generic import Dictionary, List
numbers = List[int]()
for n in range(200): numbers.Add(n * n)
names = Dictionary[str, int]()
for n in range(50): names[f"name {n}"] = n
print(sum(numbers), names.Count, String.Join(",", ["a", "b"]), DateTime(2021, 8, 7).DayOfYear, Environment.Version.Major)
try:
    numbers.RemoveAt(-1)
except Exception as error:
    print(type(error).__name__)
"#;

/// A real program.
struct Program {
    name: &'static str,
    /// Gives the runs of the program, or why there are none on this machine.
    runs: fn(&Path) -> Result<Vec<Run>, String>,
}

const PROGRAMS: &[Program] = &[
    Program { name: "csc", runs: csc },
    Program { name: "build", runs: build },
    Program { name: "test", runs: test },
    Program { name: "new-list", runs: new_list },
    Program { name: "web", runs: web },
    Program { name: "azmcp", runs: tools },
    Program { name: "pythonnet", runs: python },
];

/// One way to run a program: on one runtime, from one folder.
struct Run {
    /// The runtime, in words.
    on: String,
    /// Makes the command; of a launcher where words of one are given.
    words: Vec<String>,
    folder: PathBuf,
    environment: Vec<(String, String)>,
    /// File that the program writes, compared too.
    writes: Option<PathBuf>,
    /// A service, which is asked for this and then to end.
    serves: Option<&'static str>,
}

impl Run {
    fn new(on: String, folder: &Path, command: &Command) -> Self {
        let text = |word: &std::ffi::OsStr| word.to_string_lossy().into_owned();
        let environment = command.get_envs().filter_map(|(name, value)| Some((text(name), text(value?))));
        Self {
            on,
            words: std::iter::once(command.get_program()).chain(command.get_args()).map(text).collect(),
            folder: folder.to_path_buf(),
            environment: environment.collect(),
            writes: None,
            serves: None,
        }
    }

    /// Runs it behind these words; what it said, what it wrote, how many requests it answered.
    fn once(&self, before: &[String]) -> (Finished, Option<Vec<u8>>, usize) {
        let words: Vec<&String> = before.iter().chain(&self.words).collect();
        let mut command = Command::new(words[0]);
        for name in PROFILER_VARIABLES {
            command.env_remove(name);
        }
        command.args(&words[1..]).current_dir(&self.folder);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(path) = self.serves {
            let service = Service::start(command);
            let answered = load(service.address(), path, 4, REQUESTS);
            return (service.stop("TERM"), None, answered);
        }
        let finished = run_within(command, PATIENCE);
        let written = self.writes.as_ref().and_then(|path| fs::read(path).ok());
        (finished, written, 0)
    }
}

/// Runs the named programs, or all of them. An error names the programs that behaved differently.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub(crate) fn run(names: &[&str]) -> Result<(), String> {
    if let Some(unknown) = names.iter().find(|name| PROGRAMS.iter().all(|program| program.name != **name)) {
        let known: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        return Err(format!("there is no program '{unknown}'; known: {}", known.join(", ")));
    }
    let mut changed = Vec::new();
    for program in PROGRAMS.iter().filter(|program| names.is_empty() || names.contains(&program.name)) {
        let place = scratch();
        match (program.runs)(place.path()) {
            Err(why) => println!("{}: NOT RUN: {why}", program.name),
            Ok(runs) => runs.iter().for_each(|run| changed.extend(compare(program.name, run, place.path()))),
        }
    }
    if changed.is_empty() { Ok(()) } else { Err(format!("changed:\n{}", changed.join("\n"))) }
}

/// Runs a program bare and under each reader; in words what was different.
#[expect(clippy::print_stdout, reason = "a command line tool")]
fn compare(name: &str, run: &Run, place: &Path) -> Vec<String> {
    let mut changed = Vec::new();
    let (bare, written, answered) = run.once(&[]);
    for reader in READERS {
        let recording = place.join("soaked.clrs");
        let launcher = [
            cli().to_string_lossy().as_ref(),
            "run",
            "-q",
            "--force",
            "-o",
            recording.to_string_lossy().as_ref(),
            "-i",
            reader,
            "--include",
            "*",
            "--",
        ]
        .map(str::to_owned);
        let began = Instant::now();
        let seen = catch_unwind(AssertUnwindSafe(|| run.once(&launcher)));
        let place = format!("{name} on {} with {reader}", run.on);
        let Ok((seen, written_then, answered_then)) = seen else {
            changed.push(format!("{place}: did not end, or did not answer"));
            continue;
        };
        let differences = [
            (seen.code() != bare.code()).then(|| format!("exit code {} for {}", seen.code(), bare.code())),
            (steady(&seen.stdout_text()) != steady(&bare.stdout_text()))
                .then(|| difference("stdout", &seen.stdout_text(), &bare.stdout_text())),
            (steady(&seen.stderr_text()) != steady(&bare.stderr_text()))
                .then(|| difference("stderr", &seen.stderr_text(), &bare.stderr_text())),
            (written_then != written).then(|| "another file was written".to_owned()),
            (answered_then != answered).then(|| format!("{answered_then} answers for {answered}")),
        ];
        let unread = unread(&recording);
        println!(
            "{place}: exit code {}, {:.1?} for {:.1?}, values of {} calls unread",
            seen.code(),
            began.elapsed(),
            bare.elapsed,
            unread.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string)
        );
        changed.extend(differences.into_iter().flatten().map(|what| format!("{place}: {what}")));
        if unread != Some(0) {
            changed.push(format!("{place}: a plan was wrong, or nothing was recorded"));
        }
    }
    changed
}

/// Calls in all processes whose values were left unread; `None` where nothing was recorded.
fn unread(recording: &Path) -> Option<u64> {
    let recording = clrscope_recording::open(recording).ok().filter(|recording| !recording.processes.is_empty())?;
    let losses = recording.processes.iter().flat_map(|process| &process.losses);
    Some(losses.filter(|loss| loss.reason == LossReason::ValuesUnread).map(|loss| loss.count).sum())
}

/// The lines of a text that are the same each time: without how long something took, on which port,
/// and without frames of the framework in stack traces, which precompiled code hides.
fn steady(text: &str) -> Vec<String> {
    const CHANGING: [&str; 5] = ["uration", "lapsed", "Restored", "Determining", "listening on"];
    let cut = |line: &str| CHANGING.iter().filter_map(|word| line.find(word)).min();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with(FRAME_OF_FRAMEWORK));
    lines.map(|line| without_times(cut(line).map_or(line, |at| &line[..at]))).collect()
}

/// The line without what stands in brackets and has digits: `[12 ms]`, `[xUnit.net 00:00:02.74]`.
fn without_times(line: &str) -> String {
    let mut parts = line.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once(']') {
        Some((inside, rest)) if inside.contains(|c: char| c.is_ascii_digit()) => text + rest,
        _ => text + "[" + part,
    })
}

fn difference(what: &str, seen: &str, bare: &str) -> String {
    let (seen, bare) = (steady(seen), steady(bare));
    let at = seen.iter().zip(&bare).take_while(|(a, b)| a == b).count();
    format!("{what} line {}: {:?} for {:?}", at + 1, seen.get(at), bare.get(at))
}

/// Packages of a test project, with their versions.
pub(crate) const TEST_PACKAGES: [(&str, &str); 3] =
    [("Microsoft.NET.Test.Sdk", "18.11.0"), ("xunit", "2.9.3"), ("xunit.runner.visualstudio", "4.0.1")];

fn sdk() -> Result<Sdk, String> {
    Sdk::find().ok_or_else(|| "there is no .NET SDK".to_owned())
}

fn on_sdk(sdk: &Sdk) -> String {
    format!("SDK {}", sdk.version)
}

fn csc(place: &Path) -> Result<Vec<Run>, String> {
    let (sdk, out) = (sdk()?, place.join("demo.dll"));
    let mut command = sdk.compiler();
    command.args(["-nologo", "-deterministic", "-optimize", "-unsafe", "-langversion:latest", "-nullable:enable"]);
    command.args(sdk.reference_assemblies().iter().map(|path| format!("-r:{}", path.display())));
    command.arg(format!("-out:{}", out.display()));
    let demo = workspace_root().join("dotnet/demo");
    let mut sources: Vec<PathBuf> = fs::read_dir(&demo)
        .map_err(|error| format!("{}: {error}", demo.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "cs"))
        .collect();
    sources.sort();
    command.args(sources);
    Ok(vec![Run { writes: Some(out), ..Run::new(on_sdk(&sdk), place, &command) }])
}

/// A project in a folder, its packages restored.
fn project(sdk: &Sdk, place: &Path, properties: &str, items: &str, source: &str) -> Result<(), String> {
    let framework = format!("net{}.0", sdk.version.major);
    let project = format!(
        "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><TargetFramework>{framework}</TargetFramework>\
         <NoWarn>$(NoWarn);NETSDK1188</NoWarn>{properties}</PropertyGroup><ItemGroup>{items}</ItemGroup></Project>"
    );
    fs::write(place.join("soaked.csproj"), project).map_err(|error| error.to_string())?;
    fs::write(place.join("Soaked.cs"), source).map_err(|error| error.to_string())?;
    take_packages_of_kit(place)?;
    let mut restore = sdk.dotnet(place, &["restore"]);
    let restored = restore.current_dir(place).output().map_err(|error| error.to_string())?;
    let why = || format!("restore failed: {}", String::from_utf8_lossy(&restored.stdout).lines().last().unwrap_or(""));
    restored.status.success().then_some(()).ok_or_else(why)
}

/// Lets projects in a folder use the packages of the kit, if the kit has some.
pub(crate) fn take_packages_of_kit(place: &Path) -> Result<(), String> {
    let Some(packages) = kit().map(|kit| kit.join("nuget")).filter(|packages| packages.is_dir()) else { return Ok(()) };
    let source = format!("<add key=\"kit\" value=\"{}\"/>", packages.display());
    let config = format!("<configuration><packageSources><clear/>{source}</packageSources></configuration>");
    fs::write(place.join("nuget.config"), config).map_err(|error| error.to_string())
}

fn build(place: &Path) -> Result<Vec<Run>, String> {
    let sdk = sdk()?;
    let source = "using System; static class P { static int Main() { Console.WriteLine(\"built\"); return 0; } }";
    project(&sdk, place, "<OutputType>Exe</OutputType>", "", source)?;
    let command = sdk.dotnet(place, &["build", "--no-restore", "-t:Rebuild", "-nologo"]);
    let writes = place.join(format!("bin/Debug/net{}.0/soaked.dll", sdk.version.major));
    Ok(vec![Run { writes: Some(writes), ..Run::new(on_sdk(&sdk), place, &command) }])
}

fn test(place: &Path) -> Result<Vec<Run>, String> {
    let sdk = sdk()?;
    let package = |(name, version)| format!("<PackageReference Include=\"{name}\" Version=\"{version}\"/>");
    let packages = TEST_PACKAGES;
    let source = "using Xunit; public class Tests {
        [Theory] [InlineData(1, \"a\")] [InlineData(2, \"b\")] public void Passes(int n, string s) => Assert.True(n > 0 && s != null);
        [Fact] public void Fails() => Assert.Equal(1, 2); }";
    project(&sdk, place, "", &packages.map(package).concat(), source)?;
    let built = sdk.dotnet(place, &["build", "--no-restore"]).current_dir(place).output();
    if !built.is_ok_and(|built| built.status.success()) {
        return Err("the test project does not build".to_owned());
    }
    let command = sdk.dotnet(place, &["test", "--no-build", "-nologo"]);
    Ok(vec![Run::new(on_sdk(&sdk), place, &command)])
}

fn new_list(place: &Path) -> Result<Vec<Run>, String> {
    let sdk = sdk()?;
    Ok(vec![Run::new(on_sdk(&sdk), place, &sdk.dotnet(place, &["new", "list"]))])
}

fn on_each(runs: impl Fn(&Runtime) -> Run, which: impl Fn(&Runtime) -> bool, why: &str) -> Result<Vec<Run>, String> {
    let runs: Vec<Run> = runtimes().iter().filter(|runtime| which(runtime)).map(runs).collect();
    if runs.is_empty() { Err(why.to_owned()) } else { Ok(runs) }
}

fn web(place: &Path) -> Result<Vec<Run>, String> {
    let run = |runtime: &Runtime| Run {
        serves: Some("/ok"),
        ..Run::new(runtime.version.to_string(), place, &runtime.command(&fixture("Web")))
    };
    on_each(run, Runtime::has_web, "ASP.NET is installed for none of the runtimes")
}

fn tools(place: &Path) -> Result<Vec<Run>, String> {
    let program = azmcp().ok_or("there is no npm to fetch azmcp with")?;
    let command = azmcp_command(&program, &["tools", "list"]);
    Ok(vec![Run::new("its own runtime".to_owned(), place, &command)])
}

fn python(place: &Path) -> Result<Vec<Run>, String> {
    let venv = place.join("venv");
    let is_made = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    if !is_made(Command::new("python3").args(["-m", "venv"]).arg(&venv)) {
        return Err("there is no python3 that makes environments".to_owned());
    }
    if !is_made(Command::new(venv.join("bin/pip")).args(["install", "-q", "pythonnet"])) {
        return Err("pip does not install pythonnet".to_owned());
    }
    let script = place.join("soaked.py");
    fs::write(&script, PYTHON).map_err(|error| error.to_string())?;
    let run = |runtime: &Runtime| {
        let config = place.join(format!("{}.runtimeconfig.json", runtime.version));
        let text = format!(
            "{{\"runtimeOptions\":{{\"tfm\":\"net{}.0\",\"framework\":{{\"name\":\"Microsoft.NETCore.App\",\"version\":\"{}\"}},\
             \"rollForward\":\"Disable\"}}}}",
            runtime.major(),
            runtime.version
        );
        fs::write(&config, text).expect("the folder can be written");
        let mut command = Command::new(venv.join("bin/python"));
        runtime.prepare(&mut command);
        command.arg(&script).arg(&config);
        Run::new(runtime.version.to_string(), place, &command)
    };
    on_each(run, |_| true, "there is no runtime")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_ports_are_no_difference_and_all_else_is() {
        let one = "  Failed Tests.Fails [186 ms]\n[xUnit.net 00:00:09.59]     Tests.Fails [FAIL]\nlistening on http://127.0.0.1:1";
        let other = one.replace("186", "9").replace("09.59", "02.74").replace("127.0.0.1:1", "127.0.0.1:2");
        assert_eq!(steady(one), steady(&other));
        assert_ne!(steady(one), steady(&one.replace("FAIL", "PASS")));
        assert_ne!(steady("a[0] = 1"), steady("a[0] = 2"));
    }

    /// `dotnet test` was reported as changed because of a frame below that of the failing test.
    #[test]
    fn frames_of_the_framework_are_no_difference_and_own_frames_are() {
        let bare =
            "   at Tests.Fails()\n   at System.Reflection.MethodBaseInvoker.InterpretedInvoke_Method(Object obj)\nend";
        let seen = bare.replace("\nend", "\n   at System.RuntimeMethodHandle.InvokeMethod()\nend");
        assert_eq!(steady(bare), steady(&seen));
        assert_ne!(steady(bare), steady(&bare.replace("Fails", "Passes")));
    }
}
