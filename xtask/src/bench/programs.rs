//! The programs of the benchmarks, and the profilers that they run under.

use std::cell::Cell;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use clrscope_testkit::{Runtime, Sdk, example, fixture, load_profiler, runtimes};

use super::source;
use crate::agents::{program, under_agent};

/// The class of the floors' library.
const FLOOR: &str = "{C15C0BE0-F100-4000-8000-000000000001}";
/// Source for the compiler: seed and bytes.
const DENSE: (u64, usize) = (11, 400_000);

/// The profiler or tool that a program runs under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Under {
    /// No profiler.
    Bare,
    /// No profiler, but precompiled code is off: enter hooks make the runtime refuse it.
    NoPrecompiled,
    /// Hooks that return at once.
    EmptyHooks,
    /// Hooks that read the clock and return.
    BareClocks,
    /// Callbacks about exceptions that return at once.
    EmptyCallbacks,
    /// A callback about each allocation. The callback returns at once.
    EmptyAllocationCallback,
    /// Hooks of the framework `clr-profiler`, whose observers do nothing; holds the kind of hooks.
    Framework(&'static str),
    /// The agent, with this request.
    Agent(&'static str),
    /// The sampler of the runtime's own event pipe, at 200 Hz.
    EventPipe,
    /// Events that `dotnet-trace` collects with its profile `gc-verbose`, from the runtime's own
    /// event pipe.
    GcVerbose,
    /// Events about contended locks, from the runtime's own event pipe.
    Contentions,
    /// `dotnet-trace` with its default profile, which starts the program.
    DotnetTrace,
}

/// What a program does with HTTP requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requests {
    /// The program serves requests.
    Served,
    /// The program makes requests.
    Made,
    /// The program sends commands to a database.
    Commands,
    /// The program serves requests that all have different paths, then makes 10,000 requests that
    /// get no answer.
    Many,
}

impl Requests {
    /// The word for this choice on the program's command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Made => "made",
            Self::Commands => "commands",
            Self::Many => "many",
        }
    }

    /// One of them, in a line of the report.
    pub(super) fn one(self) -> &'static str {
        match self {
            Self::Served => "a request that is served",
            Self::Made => "a request that is made",
            Self::Commands => "a command to a database",
            Self::Many => "a request of many",
        }
    }
}

/// The programs, with the amount of their work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// A recursion of tiny functions: this number of rounds, each with half a million calls.
    Tiny(u32),
    /// One caller with this number of callees, which are called in turn until this number of calls
    /// is made. Each method is compiled only once.
    Callees(u32, u32),
    /// This number of thousand awaits that wait and continue at once.
    Awaits(u32),
    /// This number of thousand acquisitions of a contended lock, on one processor so that no thread
    /// spins.
    Contends(u32),
    /// This number of thousand requests, one after another, on one processor. On two, the time of a
    /// request depends on where threads wake up.
    Requests(Requests, u32),
    /// A program that ends immediately.
    Hello,
    /// This number of threads, which make a few calls and wait. Then the program prints the bytes
    /// that are in memory.
    Threads(u32),
    /// The C# compiler.
    Compiler,
    /// The C# compiler, with each of its methods compiled only once. Otherwise the recompiled share
    /// of it would depend on how long the run takes.
    CompilerUntiered,
    /// Work of framework libraries, this number of rounds.
    Library(u32),
    /// Work of framework libraries: this number of rounds, together with this number of threads
    /// that do nothing. Prints how long the rounds took.
    Beside(u32, u32),
    /// Work of framework libraries without an end. Prints how long each ten rounds take.
    Pace,
    /// Allocates this number of megabytes; some objects live for a few collections.
    Collects(u32),
    /// Keeps this number of million objects of several types until the program ends.
    Shop(u32),
    /// Throws and catches this number of exceptions.
    Throws(u32),
    /// The program of `Throws` without a throw: this number of rounds, each with a thousand calls
    /// under `try` and `finally`.
    Quiet(u32),
    /// A recursion of functions with plain numbers as arguments: the number of arguments, and the
    /// number of rounds. With 0 arguments the functions are not called `Traced`.
    Numbers(u32, u32),
}

impl Program {
    /// Whether this program is the C# compiler, which needs an SDK.
    pub(super) fn is_compiler(self) -> bool {
        matches!(self, Self::Compiler | Self::CompilerUntiered)
    }
}

/// Makes the commands of runs. Each run records into a new folder that replaces the previous one.
pub(super) struct Bench {
    pub(super) runtime: Runtime,
    sdk: Option<Sdk>,
    floors: PathBuf,
    folder: tempfile::TempDir,
    compiled: PathBuf,
    runs: Cell<u32>,
}

impl Bench {
    pub(super) fn new(runtime: &Runtime) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let source = folder.path().join("Dense.cs");
        std::fs::write(&source, source::csharp(DENSE.0, DENSE.1)).map_err(|error| error.to_string())?;
        Ok(Self {
            runtime: runtime.clone(),
            sdk: Sdk::find(),
            floors: example("floors"),
            compiled: folder.path().join("Dense.dll"),
            folder,
            runs: Cell::new(0),
        })
    }

    /// Whether there is a compiler to run.
    pub(super) fn has_compiler(&self) -> bool {
        self.sdk.is_some()
    }

    /// Bytes of the assembly that the compiler wrote last.
    pub(super) fn compiled(&self) -> Result<Vec<u8>, String> {
        std::fs::read(&self.compiled).map_err(|error| format!("the compiler's output: {error}"))
    }

    /// Folder of the last run's recording under the agent.
    pub(super) fn recording(&self) -> PathBuf {
        self.folder.path().join(format!("{}.clrs.d", self.runs.get()))
    }

    /// A command that runs a program under a profiler.
    pub(super) fn command(&self, program: Program, under: Under) -> Result<Command, String> {
        let mut command = self.bare(program)?;
        match under {
            Under::Bare => {}
            Under::NoPrecompiled => {
                command.env("DOTNET_ReadyToRun", "0");
            }
            Under::EmptyHooks => self.floor(&mut command, "empty"),
            Under::BareClocks => self.floor(&mut command, "clocks"),
            Under::EmptyCallbacks => self.floor(&mut command, "exceptions"),
            Under::EmptyAllocationCallback => self.floor(&mut command, "allocations"),
            Under::Framework(which) => self.floor(&mut command, which),
            Under::Agent(request) => {
                // Earlier recordings are not needed any more; those of the compiler are large.
                drop(std::fs::remove_dir_all(self.recording()));
                self.runs.set(self.runs.get() + 1);
                under_agent(&mut command, request, &self.recording());
            }
            Under::EventPipe => self.event_pipe(
                &mut command,
                "Microsoft-DotNETCore-SampleProfiler:0:5,Microsoft-Windows-DotNETRuntime:4c14fccbd:5",
            ),
            Under::GcVerbose => self.event_pipe(&mut command, "Microsoft-Windows-DotNETRuntime:8003:5"),
            Under::Contentions => self.event_pipe(&mut command, "Microsoft-Windows-DotNETRuntime:4000:4"),
            Under::DotnetTrace => return self.dotnet_trace(&command),
        }
        Ok(command)
    }

    /// The reason why this can't be measured here, such as a missing SDK or kit; `None` if it can.
    pub(super) fn why_not(&self, program: Program, under: Under) -> Option<&'static str> {
        if program.is_compiler() && self.sdk.is_none() {
            return Some("no .NET SDK at hand, so no compiler");
        }
        (under == Under::DotnetTrace && self.trace_tool().is_none()).then_some("no dotnet-trace at hand")
    }

    fn trace_tool(&self) -> Option<PathBuf> {
        let tool = self.sdk.as_ref()?.root.join("tools/dotnet-trace/dotnet-trace.dll");
        tool.is_file().then_some(tool)
    }

    /// `dotnet-trace` over a program; of what the two print only what the program says.
    fn dotnet_trace(&self, program: &Command) -> Result<Command, String> {
        const SCRIPT: &str = r#"set -o pipefail; "$@" 2>&1 | grep -E '^([0-9a-f]{16}|work [0-9]+ ns)$'"#;
        let tool = self.trace_tool().ok_or("no dotnet-trace at hand")?;
        let mut command = Command::new("bash");
        command.args(["-c", SCRIPT, "bash"]).arg(program.get_program()).arg(tool);
        command.args(["collect", "--show-child-io", "-o"]).arg(self.folder.path().join("peer.nettrace")).arg("--");
        command.arg(program.get_program()).args(program.get_args());
        copy_variables(program, &mut command);
        Ok(command)
    }

    /// Folder for files of the benchmarks.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn bare(&self, which: Program) -> Result<Command, String> {
        let with = |name: &str, arguments: &[String]| {
            let mut command = self.runtime.command(&program(name)?);
            command.args(arguments);
            Ok(command)
        };
        let of = |name: &str, argument: String| with(name, &[argument]);
        match which {
            Program::Tiny(rounds) => of("Tiny", rounds.to_string()),
            Program::Awaits(thousands) => of("Awaits", thousands.to_string()),
            Program::Contends(thousands) => {
                let mut command = on_one_processor(&self.runtime.command(&program("Contends")?));
                command.arg(thousands.to_string());
                Ok(command)
            }
            Program::Requests(which, thousands) => {
                let runtime = runtimes().iter().rev().find(|runtime| runtime.has_web());
                let runtime = runtime.ok_or("no ASP.NET runtime at hand")?;
                let mut command = on_one_processor(&runtime.command(&fixture("Requests")));
                command.args([which.name(), &thousands.to_string()]);
                Ok(command)
            }
            Program::Callees(count, calls) => {
                let mut command = with("Callees", &[count.to_string(), calls.to_string()])?;
                command.env("DOTNET_TieredCompilation", "0");
                Ok(command)
            }
            Program::Hello => of("Tiny", "0".into()),
            Program::Threads(count) => with("Tiny", &["0".into(), count.to_string()]),
            Program::Library(rounds) => of("Library", rounds.to_string()),
            Program::Beside(rounds, threads) => with("Library", &[rounds.to_string(), threads.to_string()]),
            Program::Pace => of("Library", "pace".into()),
            Program::Numbers(count, rounds) => with("Numbers", &[count.to_string(), rounds.to_string()]),
            Program::Collects(megabytes) => of("Collects", megabytes.to_string()),
            Program::Shop(millions) => of("Shop", millions.to_string()),
            Program::Throws(times) => of("Throws", times.to_string()),
            Program::Quiet(rounds) => with("Throws", &["0".into(), rounds.to_string()]),
            Program::Compiler => self.compiler(),
            Program::CompilerUntiered => {
                let mut command = self.compiler()?;
                command.env("DOTNET_TieredCompilation", "0");
                Ok(command)
            }
        }
    }

    fn compiler(&self) -> Result<Command, String> {
        let sdk = self.sdk.as_ref().ok_or("no .NET SDK at hand")?;
        let mut command = sdk.compiler();
        command.args(["-noconfig", "-nologo", "-nostdlib", "-deterministic", "-optimize+", "-unsafe", "-nullable"]);
        command.args(["-target:exe", "-langversion:12", "-nowarn:CS1998,CS8600,CS9236"]);
        command.args(sdk.reference_assemblies().iter().map(|file| format!("-reference:{}", file.display())));
        command.arg(format!("-out:{}", self.compiled.display())).arg("Dense.cs").current_dir(self.folder.path());
        // On a busy machine the pool makes more threads, each with a tree of its own: always the
        // same number, so that runs compare.
        command.env("DOTNET_ThreadPool_ForceMaxWorkerThreads", "4");
        Ok(command)
    }

    fn floor(&self, command: &mut Command, which: &str) {
        load_profiler(command, &self.floors, FLOOR);
        command.env("CLRSCOPE_FLOOR", which);
    }

    fn event_pipe(&self, command: &mut Command, config: &str) {
        command.env("DOTNET_EnableEventPipe", "1");
        command.env("DOTNET_EventPipeOutputPath", self.folder.path().join("peer.nettrace"));
        command.env("DOTNET_EventPipeConfig", config);
    }
}

/// The same command on one processor alone.
fn on_one_processor(command: &Command) -> Command {
    let mut alone = Command::new("taskset");
    alone.args(["-c", "0"]).arg(command.get_program()).args(command.get_args());
    copy_variables(command, &mut alone);
    alone
}

/// Gives a command the variables that another one sets or removes.
fn copy_variables(from: &Command, to: &mut Command) {
    from.get_envs().for_each(|(name, value)| match value {
        Some(value) => _ = to.env(name, value),
        None => _ = to.env_remove(name),
    });
}

/// Disk space in bytes of all files below `folder`.
pub(super) fn disk_use(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let size = |path: PathBuf| match path.metadata() {
        Ok(data) if data.is_dir() => disk_use(&path),
        Ok(data) => data.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(|entry| size(entry.path())).sum()
}

/// Total size in bytes of all files below `folder` whose name is `name`.
pub(super) fn size_of(folder: &Path, name: &str) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let size = |path: PathBuf| match path.file_name() {
        Some(found) if found == name => path.metadata().map_or(0, |data| data.len()),
        _ if path.is_dir() => size_of(&path, name),
        _ => 0,
    };
    entries.flatten().map(|entry| size(entry.path())).sum()
}
