//! The runtimes that tests run on.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::{panic, thread};

use clrscope_dotnet::Version;
use clrscope_dotnet::fetch::{Fetcher, fetch};
use clrscope_dotnet::find::{self, Install, Origin};

use crate::program::clean_environment;
use crate::say::{not_run, say};
use crate::workspace::kit;

/// Environment variable with the major versions that tests use (`8,10`), for a quick run; by
/// default they use all installed versions.
const CHOICE: &str = "CLRSCOPE_TEST_RUNTIMES";

/// One runtime to test on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// The version of `Microsoft.NETCore.App`.
    pub version: Version,
    /// The folder of the installation: `DOTNET_ROOT`.
    pub root: PathBuf,
}

impl Runtime {
    /// Starts the program on exactly this runtime, without any profiler that this process's
    /// environment may name.
    pub fn command(&self, dll: &Path) -> Command {
        let words = self.words(dll);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        self.prepare(&mut command);
        command
    }

    /// The words of the command line of [`Runtime::command`], for a launcher that starts the
    /// program itself.
    pub fn words(&self, dll: &Path) -> Vec<OsString> {
        vec![self.root.join("dotnet").into(), "--fx-version".into(), self.version.to_string().into(), dll.into()]
    }

    /// Gives any command the environment of [`Runtime::command`].
    pub fn prepare(&self, command: &mut Command) {
        clean_environment(command);
        command.env("DOTNET_ROOT", &self.root);
    }

    /// Whether ASP.NET of the same version is installed next to it.
    pub fn has_web(&self) -> bool {
        self.root.join(format!("shared/Microsoft.AspNetCore.App/{}", self.version)).is_dir()
    }

    /// The major version: 8, 9 or 10.
    pub fn major(&self) -> u32 {
        self.version.major
    }
}

/// Every runtime to test on, one per major version from 8, lowest first; never empty.
///
/// Runtimes come from `DOTNET_ROOT` and from the kit next to the workspace. If neither has one, any
/// other .NET found on this machine is used, and if there is none, .NET 8 is fetched.
///
/// # Panics
/// When there is no runtime and none can be fetched.
pub fn runtimes() -> &'static [Runtime] {
    static RUNTIMES: OnceLock<Vec<Runtime>> = OnceLock::new();
    RUNTIMES.get_or_init(|| {
        let all = best_of_each(installs());
        let wanted = env::var(CHOICE).unwrap_or_default();
        let chosen: Vec<Runtime> = all.iter().filter(|runtime| is_wanted(runtime, &wanted)).cloned().collect();
        assert!(!chosen.is_empty(), "no runtime to test on: {CHOICE}={wanted} leaves none of {all:?}");
        chosen
    })
}

/// Runs a test on each runtime, names the runtime on stderr, and returns the results, lowest
/// version first. Tests run in parallel if processors are free (`Turn`).
///
/// # Panics
/// As [`runtimes`]; and when the test fails, with the panic of the first runtime on which it fails.
pub fn each_runtime<T: Send>(test: impl Fn(&Runtime) -> T + Sync) -> Vec<T> {
    let thread = thread::current();
    let name = thread.name().unwrap_or("test");
    let outcomes: Vec<_> = thread::scope(|scope| {
        let start = |runtime: &'static Runtime| {
            let test = &test;
            let run = move || {
                let _turn = Turn::wait();
                say(&format!("on .NET {} in {}", runtime.version, runtime.root.display()));
                test(runtime)
            };
            // The name is what a panic's message begins with.
            thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, run).expect("a thread can be started")
        };
        let started: Vec<_> = runtimes().iter().map(|runtime| (runtime, start(runtime))).collect();
        started.into_iter().map(|(runtime, run)| (runtime, run.join())).collect()
    });
    let or_panic = |(runtime, outcome): (&Runtime, thread::Result<T>)| {
        outcome.unwrap_or_else(|panic| {
            say(&format!("failed on .NET {}", runtime.version));
            panic::resume_unwind(panic)
        })
    };
    outcomes.into_iter().map(or_panic).collect()
}

/// The right to run a test on one runtime. A test binary has one turn per processor. So a long test
/// can use the turns that other tests have released, and no more programs run at the same time than
/// the harness has threads.
struct Turn;

/// Number of taken turns, and a condition that signals the end of one.
static TAKEN: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

impl Turn {
    /// Waits for a turn.
    fn wait() -> Self {
        let most = thread::available_parallelism().map_or(1, NonZero::get);
        let taken = TAKEN.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = TAKEN.1.wait_while(taken, |taken| *taken >= most);
        *taken.unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TAKEN.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        TAKEN.1.notify_one();
    }
}

/// Like [`each_runtime`], but only on runtimes with ASP.NET; prints a line if none has it.
///
/// # Panics
/// As [`each_runtime`]; and when no runtime has ASP.NET although the kit, which includes it, is in
/// use.
pub fn each_web_runtime(test: impl Fn(&Runtime) + Sync) {
    let is_tested = AtomicBool::new(false);
    each_runtime(|runtime| {
        if runtime.has_web() {
            is_tested.store(true, Ordering::Relaxed);
            test(runtime);
        }
    });
    if !is_tested.into_inner() {
        assert!(kit().is_none(), "the kit has ASP.NET, and none of {:?} has", runtimes());
        not_run("no ASP.NET runtime is at hand");
    }
}

/// The .NET 8 that the demo fetches, from this user's cache or fetched now. `None` if pip is
/// missing.
///
/// # Panics
/// When pip is present and fetching fails.
pub fn fetched_runtime() -> Option<Runtime> {
    let fetcher = Fetcher::of_this_process().unwrap_or_else(|failure| panic!("{failure}"));
    if fetcher.present().is_none() && !fetcher.has_pip() {
        return None;
    }
    let install = fetcher.fetch().unwrap_or_else(|failure| panic!("{failure}"));
    let version = install.runtimes.last()?.clone();
    Some(Runtime { version, root: install.root })
}

fn is_wanted(runtime: &Runtime, wanted: &str) -> bool {
    wanted.is_empty() || wanted.split(',').any(|major| major.trim() == runtime.major().to_string())
}

fn installs() -> Vec<Install> {
    let mut chosen: Vec<Install> =
        find::installs().into_iter().filter(|install| install.origin == Origin::Variable).collect();
    chosen.extend(kit().and_then(|root| Install::in_folder(root, Origin::UsualPlace)));
    if chosen.is_empty() {
        chosen = find::installs();
    }
    if chosen.iter().all(|install| install.runtimes.iter().all(|version| version.major < 8)) {
        chosen.push(fetch().unwrap_or_else(|failure| panic!("no .NET to test on, and none can be fetched\n{failure}")));
    }
    chosen
}

/// The highest patch of each major version from 8.
fn best_of_each(installs: Vec<Install>) -> Vec<Runtime> {
    let mut best: BTreeMap<u32, Runtime> = BTreeMap::new();
    for install in installs {
        for version in install.runtimes.into_iter().filter(|version| version.major >= 8) {
            let candidate = Runtime { version, root: install.root.clone() };
            let known = best.entry(candidate.major()).or_insert_with(|| candidate.clone());
            if candidate.version > known.version {
                *known = candidate;
            }
        }
    }
    best.into_values().collect()
}
