//! The .NET runtimes of this machine, each tried out with the agent.

use std::env;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clrscope_analysis::{Query, conditions};
use clrscope_recording::model::Process;
use clrscope_recording::request::{InstrumentRequest, Request};

use super::{Check, Status};
use crate::dotnet::find::installs;
use crate::dotnet::{Fetcher, Install, Version};
use crate::embedded::HELLO;
use crate::errors::{one_line, reason, shown};
use crate::instruments;
use crate::launch::{Obstacle, agent_variables, obstacles};

/// Hello world takes less than a second; a machine under load gets some more.
const PATIENCE: Duration = Duration::from_secs(60);
/// The oldest runtime the agent is made for.
const OLDEST: u32 = 8;
const ICU_LIBRARY: &str = "libicuuc.so";
const ICU_CURE: &str = "install libicu, or set DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1";

/// One check per runtime: does the agent load, does it record.
pub(super) fn checks(agent: Option<&Path>) -> Vec<Check> {
    let installs = installs();
    if installs.is_empty() {
        return vec![none_found()];
    }
    let all = installs.iter().flat_map(|install| install.runtimes.iter().map(move |version| (install, version)));
    all.map(|(install, version)| check(install, version, agent)).collect()
}

fn none_found() -> Check {
    let found = "no .NET was found by DOTNET_ROOT, on PATH or in the usual places; programs that bring their own runtime can be recorded";
    let can_fetch = Fetcher::of_this_process().is_ok_and(|fetcher| fetcher.has_pip());
    let cure = match can_fetch {
        true => "install .NET or set DOTNET_ROOT; 'clrscope demo' fetches .NET 8 for itself",
        false => "install .NET or set DOTNET_ROOT; for 'clrscope demo' install python3-pip",
    };
    Check::bad(Status::Note, ".NET", found, cure)
}

fn check(install: &Install, version: &Version, agent: Option<&Path>) -> Check {
    let which = format!(".NET {version} ({}, {})", install.origin.in_words(), install.root.display());
    if version.major < OLDEST {
        let cure = format!("use .NET {OLDEST} or later");
        return Check::bad(
            Status::Warning,
            ".NET",
            format!("{which}: older than the agent is made for; not tried"),
            cure,
        );
    }
    let Some(agent) = agent else {
        let cure = "cure the agent's place first";
        return Check::bad(Status::Warning, ".NET", format!("{which}: not tried without the agent"), cure);
    };
    match record_hello(install, version, agent) {
        Ok(calls) => Check::ok(".NET", format!("{which}: the agent loads; hello world made {calls} calls")),
        Err(trouble) => Check::bad(Status::Failed, ".NET", format!("{which}: {}", trouble.found), trouble.cure),
    }
}

/// Why hello world could not be recorded.
struct Trouble {
    found: String,
    cure: String,
}

impl Trouble {
    fn new(found: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { found: found.into(), cure: cure.into() }
    }

    fn from_io(what: &str, error: &io::Error) -> Self {
        Self::new(format!("{what}: {}", reason(error)), "set TMPDIR to a folder of yours with space")
    }
}

/// Really runs it; how many calls were recorded.
fn record_hello(install: &Install, version: &Version, agent: &Path) -> Result<u64, Trouble> {
    let builder = tempfile::Builder::new().prefix("clrscope-doctor-").tempdir();
    let temporary = builder.map_err(|e| Trouble::from_io("no folder to try it in", &e))?;
    let library = HELLO.write_into(temporary.path()).map_err(|e| Trouble::from_io("no folder to try it in", &e))?;
    let folder = temporary.path().join("hello.clrs.d");
    fs::create_dir(&folder).map_err(|e| Trouble::from_io("no folder to try it in", &e))?;
    let request = Request {
        out: Some(folder.to_string_lossy().into_owned()),
        instruments: vec![InstrumentRequest { name: instruments::DEFAULT.to_owned(), options: Vec::new() }],
        ..Request::default()
    };
    let mut command = Command::new(install.host());
    command.args(["--fx-version", &version.to_string()]).arg(&library);
    command.envs(agent_variables(agent, &request)).env("DOTNET_ROOT", &install.root);
    run_within(command)?;
    recorded_calls(&folder)
}

fn run_within(mut command: Command) -> Result<(), Trouble> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| {
        Trouble::new(
            format!("'dotnet' can't be started: {}", reason(&e)),
            "install it anew, for this machine's processor and C library",
        )
    })?;
    let errors = child.stderr.take();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        // What can't be read is only a better explanation.
        let _ = errors.map(|mut errors| errors.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    match wait(&mut child) {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(explained(status, &reader.join().unwrap_or_default())),
        None => {
            // It may have ended in this moment.
            let _ = child.kill();
            let _ = child.wait();
            Err(Trouble::new("hello world did not end within a minute", "see whether it does without clrscope"))
        }
    }
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(10));
    }
    None
}

fn explained(status: ExitStatus, errors: &str) -> Trouble {
    let said = errors.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("without a word");
    let found = one_line(format!("hello world failed ({status}): {said}"));
    let cure =
        if errors.contains("libicu") { ICU_CURE } else { "see whether 'dotnet' runs a program without clrscope" };
    Trouble::new(found, cure)
}

fn recorded_calls(folder: &Path) -> Result<u64, Trouble> {
    let recording = clrscope_recording::open(folder).ok().filter(|recording| !recording.processes.is_empty());
    if let Some(why) = recording.iter().flat_map(|recording| &recording.processes).find_map(Process::refusal) {
        return Err(Trouble::new(why, "cure that; 'clrscope run --help' has the options that matter"));
    }
    let Some(recording) = recording else {
        let disabled = obstacles(|name| env::var_os(name)).into_iter().find_map(|obstacle| match obstacle {
            Obstacle::Disabled(name) => Some(name),
            Obstacle::OtherProfiler(..) => None,
        });
        return Err(match disabled {
            Some(name) => Trouble::new("it ran, but no agent was loaded", format!("unset {name}")),
            None => Trouble::new(
                "it ran, but the agent did not load",
                "see whether the agent's file can be loaded: ldd names libraries that are missing",
            ),
        });
    };
    let calls = conditions(&recording, &Query::default()).map_or(0, |c| c.totals.calls);
    match calls {
        0 => Err(Trouble::new(
            "the agent loaded and recorded no call",
            "report this with the output of 'clrscope doctor --json'",
        )),
        calls => Ok(calls),
    }
}

/// Without it every .NET program ends at once unless it is told to do without.
pub(super) fn libicu() -> Check {
    let invariant =
        env::var("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT").is_ok_and(|v| v == "1" || v.eq_ignore_ascii_case("true"));
    match (has_libicu(), invariant) {
        (true, _) => Check::ok("libicu", "is installed"),
        (false, true) => Check::ok("libicu", "is missing, and DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 does without"),
        (false, false) => {
            let found = "is missing: most .NET programs will end at once";
            Check::bad(Status::Warning, "libicu", found, ICU_CURE)
        }
    }
}

/// Looks into the loader's cache and the usual folders.
fn has_libicu() -> bool {
    let cached = fs::read("/etc/ld.so.cache").unwrap_or_default();
    if cached.windows(ICU_LIBRARY.len()).any(|bytes| bytes == ICU_LIBRARY.as_bytes()) {
        return true;
    }
    let mut folders: Vec<_> =
        ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu"]
            .iter()
            .map(std::path::PathBuf::from)
            .collect();
    folders.extend(env::var_os("LD_LIBRARY_PATH").iter().flat_map(|path| env::split_paths(path).collect::<Vec<_>>()));
    folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .flatten()
        .any(|entry| entry.file_name().as_encoded_bytes().starts_with(ICU_LIBRARY.as_bytes()))
}

/// Other profilers and switches in the environment.
pub(super) fn environment() -> Vec<Check> {
    let found = obstacles(|name| env::var_os(name));
    if found.is_empty() {
        return vec![Check::ok("profilers", "the environment names no other and switches nothing off")];
    }
    let check = |obstacle| match obstacle {
        Obstacle::OtherProfiler(name, value) => Check::bad(
            Status::Warning,
            "profilers",
            one_line(format!(
                "{name} names another profiler, {}; under 'clrscope run' it is not loaded",
                shown(Path::new(&value))
            )),
            "unset CORECLR_ENABLE_PROFILING, or accept that the two can't run at once",
        ),
        Obstacle::Disabled(name) => Check::bad(
            Status::Failed,
            "profilers",
            format!("{name}=0 keeps every profiler out"),
            format!("unset {name}"),
        ),
    };
    found.into_iter().map(check).collect()
}
