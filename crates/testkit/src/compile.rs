//! Compiles the programs in `dotnet/`. The same compiler gives the same bytes on every machine.
//!
//! The C# compiler is called directly: no project files, no restore, one second per program.
//! `dotnet/fixtures/NAME/NAME.cs` becomes `dotnet/fixtures/bin/NAME.dll`; `dotnet/bench/NAME/*.cs`
//! becomes `dotnet/bench/bin/NAME.dll`; `dotnet/demo/*.cs` becomes `dotnet/demo/bin/Demo.dll`; the
//! programs in `dotnet/il/` generate libraries that C# cannot express.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::at_a_time::at_a_time;
use crate::sdk::Sdk;
use crate::workspace::scratch;

/// Runtime configuration of a program without a file of its own.
const CONFIG: &str = r#"{
  "runtimeOptions": {
    "tfm": "net8.0",
    "rollForward": "Major",
    "framework": { "name": "Microsoft.NETCore.App", "version": "8.0.0" },
    "configProperties": { "System.Globalization.Invariant": true }
  }
}
"#;

/// Namespaces of the implicit `using`s of the SDK's templates.
const IMPLICIT: [&str; 7] = [
    "System",
    "System.Collections.Generic",
    "System.IO",
    "System.Linq",
    "System.Net.Http",
    "System.Threading",
    "System.Threading.Tasks",
];
/// Additional namespaces of the template for web programs.
const IMPLICIT_WEB: [&str; 9] = [
    "System.Net.Http.Json",
    "Microsoft.AspNetCore.Builder",
    "Microsoft.AspNetCore.Hosting",
    "Microsoft.AspNetCore.Http",
    "Microsoft.AspNetCore.Routing",
    "Microsoft.Extensions.Configuration",
    "Microsoft.Extensions.DependencyInjection",
    "Microsoft.Extensions.Hosting",
    "Microsoft.Extensions.Logging",
];

/// Source file in the folder `dotnet` that reads the CPU time of a thread.
const CLOCK: &str = "ThreadClock.cs";

/// One compilation.
struct Job {
    name: String,
    sources: Vec<PathBuf>,
    references: Vec<PathBuf>,
    library: bool,
    /// Whether the code is not optimised, as for a debugger.
    debug: bool,
    output: PathBuf,
}

/// Builds every program of the folder `dotnet` into `out`, laid out as `dotnet` itself is; returns
/// the files it wrote, relative to `out`.
///
/// # Errors
/// The compiler's messages, when a program does not compile.
///
/// # Panics
/// When files cannot be read or written.
pub fn build_all(sdk: &Sdk, dotnet: &Path, out: &Path) -> Result<Vec<PathBuf>, String> {
    let bin = out.join("fixtures/bin");
    make_folder(&bin);
    let mut written = Vec::new();
    for source in files_in(&dotnet.join("il")) {
        written.push(write_il(sdk, dotnet, &source, &bin)?);
    }
    let mut jobs = fixture_jobs(sdk, dotnet, &bin, &written);
    jobs.extend(bench_jobs(dotnet, &out.join("bench/bin")));
    jobs.extend(demo_job(dotnet, &out.join("demo/bin")));
    compile_all(sdk, dotnet, &jobs)?;
    for job in &jobs {
        written.push(job.output.clone());
        if !job.library {
            written.push(write_config(dotnet, job));
        }
    }
    written.sort();
    Ok(written.into_iter().map(|file| file.strip_prefix(out).expect("written there").to_path_buf()).collect())
}

/// A folder with `NAME.cs` is a program, unless it contains a file `library`. A file `web` lets it
/// use ASP.NET, a file `clock` adds `ThreadClock.cs`, a file `debug` requests unoptimised code.
fn fixture_jobs(sdk: &Sdk, dotnet: &Path, bin: &Path, il: &[PathBuf]) -> Vec<Job> {
    let fixtures = dotnet.join("fixtures");
    let mut jobs = Vec::new();
    for folder in folders_in(&fixtures) {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("names are UTF-8").to_owned();
        if name == "bin" {
            continue;
        }
        let library = folder.join("library").exists();
        let mut sources = sources_in(&folder);
        if !library {
            sources.push(fixtures.join("Expect.cs"));
        }
        if folder.join("clock").exists() {
            sources.push(dotnet.join(CLOCK));
        }
        let mut references: Vec<_> = il.iter().filter(|dll| stem(dll) == format!("{name}Il")).cloned().collect();
        if folder.join("web").exists() {
            references.extend(sdk.web_reference_assemblies());
        }
        let output = bin.join(format!("{name}.dll"));
        let debug = folder.join("debug").exists();
        jobs.push(Job { name, sources, references, library, debug, output });
    }
    jobs
}

/// Each folder in `dotnet/bench` is a program. A file `clock` in it adds `ThreadClock.cs`, a file
/// `groups` adds `ThreadClock.cs` and `Group.cs`.
fn bench_jobs(dotnet: &Path, bin: &Path) -> Vec<Job> {
    make_folder(bin);
    let bench = dotnet.join("bench");
    let folders = folders_in(&bench).into_iter().filter(|folder| !folder.ends_with("bin"));
    let job = |folder: PathBuf| {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("names are UTF-8").to_owned();
        let mut sources = sources_in(&folder);
        let has = |file: &str| folder.join(file).exists();
        sources.extend(has("groups").then(|| bench.join("Group.cs")));
        sources.extend((has("groups") || has("clock")).then(|| dotnet.join(CLOCK)));
        let output = bin.join(format!("{name}.dll"));
        Job { name, sources, references: Vec::new(), library: false, debug: false, output }
    };
    folders.map(job).collect()
}

fn demo_job(dotnet: &Path, bin: &Path) -> Option<Job> {
    let folder = dotnet.join("demo");
    if !folder.is_dir() {
        return None;
    }
    make_folder(bin);
    let sources = sources_in(&folder);
    Some(Job {
        name: "Demo".into(),
        sources,
        references: Vec::new(),
        library: false,
        debug: false,
        output: bin.join("Demo.dll"),
    })
}

/// Runs two compilations at a time, because the compiler itself uses several threads.
fn compile_all(sdk: &Sdk, dotnet: &Path, jobs: &[Job]) -> Result<(), String> {
    let failures: Vec<String> =
        at_a_time(2, jobs, |job| compile(sdk, dotnet, job)).into_iter().filter_map(Result::err).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Compiles one source file to a web program for .NET 8 and later, with its runtime configuration
/// next to it.
///
/// # Errors
/// The compiler's messages, when it does not compile.
///
/// # Panics
/// When files cannot be written.
pub fn compile_web(sdk: &Sdk, source: &Path, output: &Path) -> Result<(), String> {
    compile_alone(sdk, source, output, true)
}

/// Like [`compile_web`], but compiles to a program without ASP.NET.
///
/// # Errors
/// The compiler's messages, when it does not compile.
///
/// # Panics
/// When files cannot be written.
pub fn compile_program(sdk: &Sdk, source: &Path, output: &Path) -> Result<(), String> {
    compile_alone(sdk, source, output, false)
}

/// Compiles the `*.cs` of a folder like a project of the SDK's templates: with implicit `using`s,
/// unsafe code, ASP.NET if there is a file `web`, and without warnings. A `*.c` next to them
/// becomes a library `libNAME.so` next to the program.
///
/// # Errors
/// The compilers' messages, when it does not compile.
///
/// # Panics
/// When files cannot be read or written.
pub fn compile_folder(sdk: &Sdk, folder: &Path, output: &Path) -> Result<(), String> {
    let is_web = folder.join("web").exists();
    let usings = output.with_extension("usings.cs");
    let namespaces = IMPLICIT.iter().chain(IMPLICIT_WEB.iter().filter(|_| is_web));
    let text: String = namespaces.map(|namespace| format!("global using global::{namespace};\n")).collect();
    fs::write(&usings, text).expect("a file can be written");
    let mut sources = sources_in(folder);
    sources.push(usings);
    let job = program(sdk, stem(output), sources, output, is_web);
    let mut command = compiler(sdk, folder, &job);
    command.args(["-warn:0", "-langversion:latest"]);
    check(&job.name, &command.output(), &command)?;
    for source in files_in(folder).iter().filter(|file| file.extension().is_some_and(|end| end == "c")) {
        let library = output.with_file_name(format!("lib{}.so", stem(source)));
        let mut command = Command::new("cc");
        command.args(["-O1", "-w", "-shared", "-fPIC", "-pthread", "-o"]).arg(library).arg(source);
        check(stem(source), &command.output(), &command)?;
    }
    write_alone_config(output, is_web);
    Ok(())
}

fn compile_alone(sdk: &Sdk, source: &Path, output: &Path, is_web: bool) -> Result<(), String> {
    let folder = source.parent().expect("a file lies in a folder");
    compile(sdk, folder, &program(sdk, stem(source), vec![source.to_path_buf()], output, is_web))?;
    write_alone_config(output, is_web);
    Ok(())
}

/// A compilation of a program that is not one of the committed ones, with or without ASP.NET.
fn program(sdk: &Sdk, name: &str, sources: Vec<PathBuf>, output: &Path, is_web: bool) -> Job {
    let references = if is_web { sdk.web_reference_assemblies() } else { Vec::new() };
    Job { name: name.to_owned(), sources, references, library: false, debug: false, output: output.to_path_buf() }
}

/// Writes the runtime configuration of such a program next to `output`, the program's file.
fn write_alone_config(output: &Path, is_web: bool) {
    let framework = if is_web { "Microsoft.AspNetCore.App" } else { "Microsoft.NETCore.App" };
    let config = CONFIG.replace("Microsoft.NETCore.App", framework);
    fs::write(output.with_extension("runtimeconfig.json"), config).expect("a file can be written");
}

fn compile(sdk: &Sdk, dotnet: &Path, job: &Job) -> Result<(), String> {
    let mut command = compiler(sdk, dotnet, job);
    command.args(["-warnaserror", "-warn:4", "-langversion:12"]);
    check(&job.name, &command.output(), &command)
}

/// The compiler's command without options for warnings and the language version.
fn compiler(sdk: &Sdk, folder: &Path, job: &Job) -> Command {
    let mut command = sdk.compiler();
    command.current_dir(folder);
    command.args([
        "-noconfig",
        "-nologo",
        "-nostdlib",
        "-deterministic",
        if job.debug { "-optimize-" } else { "-optimize+" },
        "-debug:embedded",
        "-unsafe",
        "-nullable",
    ]);
    command.args(["-highentropyva+", "-utf8output"]);
    command.arg(if job.library { "-target:library" } else { "-target:exe" });
    // No path of the machine that built it may be inside.
    command.arg(format!("-pathmap:{}=/_", folder.display()));
    command.arg(format!("-out:{}", job.output.display()));
    for reference in sdk.reference_assemblies().iter().chain(&job.references) {
        command.arg(format!("-reference:{}", reference.display()));
    }
    command.args(&job.sources);
    command
}

/// Compiles the generator and lets it write its library into `bin`.
fn write_il(sdk: &Sdk, dotnet: &Path, source: &Path, bin: &Path) -> Result<PathBuf, String> {
    let name = stem(source).to_owned();
    let temp = scratch();
    let output = temp.path().join("generator.dll");
    let job = Job {
        name: name.clone(),
        sources: vec![source.to_path_buf()],
        references: Vec::new(),
        library: false,
        debug: false,
        output,
    };
    compile(sdk, dotnet, &job)?;
    fs::write(job.output.with_extension("runtimeconfig.json"), CONFIG).expect("a temporary file can be written");
    let library = bin.join(format!("{name}.dll"));
    let mut command = sdk.host();
    command.arg(&job.output).arg(&library);
    check(&name, &command.output(), &command)?;
    Ok(library)
}

/// Writes a program's runtime configuration: `NAME.runtimeconfig.json` next to its source,
/// otherwise the common one.
fn write_config(dotnet: &Path, job: &Job) -> PathBuf {
    let path = job.output.with_extension("runtimeconfig.json");
    let own = dotnet.join("fixtures").join(&job.name).join(format!("{}.runtimeconfig.json", job.name));
    let text = fs::read_to_string(own).unwrap_or_else(|_| CONFIG.to_owned());
    fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}

fn check(name: &str, output: &std::io::Result<Output>, command: &Command) -> Result<(), String> {
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{name}: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )),
        Err(error) => Err(format!("{name}: cannot start {}: {error}", command.get_program().display())),
    }
}

fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).expect("names are UTF-8")
}

fn make_folder(path: &Path) {
    fs::create_dir_all(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn sources_in(folder: &Path) -> Vec<PathBuf> {
    files_in(folder).into_iter().filter(|path| path.extension().is_some_and(|end| end == "cs")).collect()
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    entries_in(folder).into_iter().filter(|path| path.is_file()).collect()
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    entries_in(folder).into_iter().filter(|path| path.is_dir()).collect()
}

fn entries_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}
