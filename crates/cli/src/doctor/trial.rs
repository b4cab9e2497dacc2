//! Records hello world on a runtime. If that fails, it runs hello world without the agent to find
//! the cause.

use std::fs;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clrscope_analysis::{Query, conditions};
use clrscope_contract::instruments::calls;
use clrscope_contract::request::{InstrumentRequest, Request};
use clrscope_recording::model::Process;
use rustix::process::{Resource, getrlimit};

use super::machine::LITTLE_ADDRESS_SPACE;
use crate::dotnet::{Install, Version};
use crate::embedded::HELLO;
use crate::errors::{one_line, reason};
use crate::launch::{agent_variables, disabled_by, profiler_names};

/// Hello world takes less than a second; a machine under load gets some more.
const PATIENCE: Duration = Duration::from_secs(60);
/// Fix for a runtime without libicu.
pub(super) const ICU_CURE: &str = "install libicu, or set DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1";
const REPORT_IT: &str = "report this with the output of 'clrscope doctor --json'";

/// Reason why hello world could not be recorded.
pub(super) struct Trouble {
    pub(super) found: String,
    pub(super) cure: String,
}

impl Trouble {
    fn new(found: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { found: found.into(), cure: cure.into() }
    }

    fn no_folder(error: &io::Error) -> Self {
        let found = format!("no folder for the test run: {}", reason(error));
        Self::new(found, "set TMPDIR to your own folder with free space")
    }
}

/// Runs and records hello world. Returns the number of recorded calls.
pub(super) fn record_hello(install: &Install, version: &Version, agent: &Path) -> Result<u64, Trouble> {
    let builder = tempfile::Builder::new().prefix("clrscope-doctor-").tempdir();
    let temporary = builder.map_err(|e| Trouble::no_folder(&e))?;
    let library = HELLO.write_into(temporary.path()).map_err(|e| Trouble::no_folder(&e))?;
    let folder = temporary.path().join("hello.clrs.d");
    fs::create_dir(&folder).map_err(|e| Trouble::no_folder(&e))?;
    let hello = || {
        let mut command = Command::new(install.host());
        command.args(["--fx-version", &version.to_string()]).arg(&library).env("DOTNET_ROOT", &install.root);
        command
    };
    let request = Request {
        out: Some(folder.to_string_lossy().into_owned()),
        instruments: vec![InstrumentRequest::named(calls::SPEC.name)],
        ..Request::default()
    };
    let mut recorded = hello();
    recorded.envs(agent_variables(agent, &request));
    match run_within(recorded)? {
        None => recorded_calls(&folder),
        Some(failed) => {
            let mut bare = hello();
            profiler_names().iter().for_each(|name| _ = bare.env_remove(name));
            Err(whose_fault(failed, run_within(bare)?))
        }
    }
}

/// A failed end of hello world.
enum BadEnd {
    Badly { status: ExitStatus, said: String },
    Never,
}

impl BadEnd {
    fn in_words(&self) -> String {
        match self {
            Self::Badly { status, said } => {
                let said = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no output");
                one_line(format!("hello world failed ({status}): {said}"))
            }
            Self::Never => "hello world did not end within a minute".to_owned(),
        }
    }
}

/// Decides on the cause: a program that also fails without the agent needs a fix elsewhere.
fn whose_fault(recorded: BadEnd, bare: Option<BadEnd>) -> Trouble {
    match bare {
        Some(bare) => {
            let cure = cure_of(&bare).unwrap_or("reinstall this runtime: it fails without clrscope, too");
            Trouble::new(format!("{}, without clrscope, too", bare.in_words()), cure)
        }
        None => {
            let cure = cure_of(&recorded).unwrap_or(REPORT_IT);
            Trouble::new(format!("{}, with clrscope only", recorded.in_words()), cure)
        }
    }
}

/// Fix for a failure that the runtime does not explain, or explains only for its developers.
fn cure_of(ended: &BadEnd) -> Option<&'static str> {
    const SIGXFSZ: i32 = 25;
    let (signal, said) = match ended {
        BadEnd::Badly { status, said } => (status.signal(), said.as_str()),
        BadEnd::Never => (None, ""),
    };
    let limited = |resource, least: u64| getrlimit(resource).current.is_some_and(|limit| limit < least);
    if said.contains("libicu") {
        Some(ICU_CURE)
    } else if signal == Some(SIGXFSZ) || limited(Resource::Fsize, u64::MAX) {
        Some("ulimit -f unlimited: .NET itself needs large files, or DOTNET_EnableWriteXorExecute=0")
    } else if limited(Resource::As, LITTLE_ADDRESS_SPACE) {
        Some("ulimit -v unlimited: .NET itself reserves much address space")
    } else {
        None
    }
}

/// Runs a command; `None` if it succeeded.
fn run_within(mut command: Command) -> Result<Option<BadEnd>, Trouble> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| {
        let found = format!("'dotnet' can't be started: {}", reason(&e));
        Trouble::new(found, "reinstall it, for this machine's processor and C library")
    })?;
    let errors = child.stderr.take();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        // The text only improves the explanation and may be missing.
        let _ = errors.map(|mut errors| errors.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    match wait(&mut child) {
        Some(status) if status.success() => Ok(None),
        Some(status) => Ok(Some(BadEnd::Badly { status, said: reader.join().unwrap_or_default() })),
        None => {
            // The process may have ended just now.
            let _ = child.kill();
            let _ = child.wait();
            Ok(Some(BadEnd::Never))
        }
    }
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        #[expect(clippy::disallowed_methods, reason = "a child can be waited for with a limit only by looking")]
        thread::sleep(Duration::from_millis(10));
    }
    None
}

fn recorded_calls(folder: &Path) -> Result<u64, Trouble> {
    let recording = clrscope_recording::open(folder).ok().filter(|recording| !recording.processes.is_empty());
    let Some(recording) = recording else { return Err(not_loaded()) };
    if let Some(why) = recording.processes.iter().find_map(Process::refusal) {
        return Err(Trouble::new(why, "see the lines about limits and space below"));
    }
    match conditions(&recording, &Query::default()).map_or(0, |c| c.totals.calls) {
        0 => Err(Trouble::new("the agent loaded, but recorded no call", REPORT_IT)),
        calls => Ok(calls),
    }
}

fn not_loaded() -> Trouble {
    match disabled_by() {
        Some(name) => Trouble::new("it ran, but no agent was loaded", format!("unset {name}")),
        None => Trouble::new(
            "it ran, but the agent did not load",
            "check whether the agent's file can be loaded: ldd names missing libraries",
        ),
    }
}
