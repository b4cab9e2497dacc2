//! `clrscope watch`: records the .NET programs of a host, for as long as it runs.
//!
//! Each program is recorded by a process of its own, `clrscope attach --every`. A fault or a hang
//! in one recording stays there, the memory of packing goes back to the system with the process,
//! the system counts its cost, and a watch that is killed ends its recordings in an orderly way:
//! the system tells the processes of its end. The watch itself only looks, decides and counts.
//!
//! | module | what it holds |
//! |---|---|
//! | this one | the plan, from start to end |
//! | `lock` | one watch at a time |
//! | `looks` | finds .NET processes, at little cost |
//! | `judge` | which of them are left alone |
//! | `program` | one program and what was recorded of it |
//! | `recorder` | the process that records a program |
//! | `cost` | what recording takes, and the budget |
//! | `host` | all programs: the loop's body |
//! | `status` | the file that says how it stands |

mod cost;
mod host;
mod judge;
mod lock;
mod looks;
mod program;
mod recorder;
mod status;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clrscope_contract::request::Programs;

pub(crate) use cost::Budget;
use host::Host;
use lock::HostLock;

use crate::errors::{Failure, reason, shown};
use crate::launch::Signals;
use crate::periods::{Keep, Pushing, write_left_over};
use crate::push::PushPlan;
use crate::terminal::say;

/// What `clrscope watch` records, and how.
#[derive(Debug)]
pub(crate) struct WatchPlan {
    /// Selection of the programs to record.
    pub(crate) programs: Programs,
    /// Whether files that others can write are accepted.
    pub(crate) trust_writable: bool,
    /// Options of `attach` for each program. The place, the rate and the options about the watch
    /// are appended.
    pub(crate) options: Vec<OsString>,
    /// Samples per second at first; the budget may lower this rate.
    pub(crate) rate: u32,
    /// Whether an instrument takes samples at this rate, so that a lower rate costs less.
    pub(crate) has_rate: bool,
    /// Length of a period.
    pub(crate) every: Duration,
    /// Limits on the recordings that are kept, for all programs together.
    pub(crate) keep: Keep,
    /// Folder that contains one folder per program.
    pub(crate) folder: PathBuf,
    /// Time after which the watch ends; `None` if only a signal ends it.
    pub(crate) ends_after: Option<Duration>,
    /// Limits on the cost of recording.
    pub(crate) budget: Budget,
    /// File of the lock; `None` for the usual file.
    pub(crate) lock: Option<PathBuf>,
    /// Where recordings are pushed to. The recorders push their own; the watch pushes what killed
    /// ones have left.
    pub(crate) push: Option<PushPlan>,
    /// Whether to print only warnings and errors.
    pub(crate) quiet: bool,
}

/// Watches until a signal arrives or the time is over.
///
/// # Errors
/// When another watch runs, or the folder can't be used.
pub(crate) fn watch(mut plan: WatchPlan) -> Result<(), Failure> {
    plan.push.as_ref().map_or(Ok(()), PushPlan::check)?;
    crate::programs::check(&plan.programs, plan.trust_writable)?;
    let _lock = HostLock::take(plan.lock.as_deref())?;
    plan.folder = make_folder(&plan.folder)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let (flag, waiting) = (Arc::clone(&is_over), thread::current());
    let _signals = Signals::without_program(move || {
        flag.store(true, Ordering::Release);
        waiting.unpark();
    })
    .map_err(|error| Failure::new("cannot handle signals", reason(&error), "run 'clrscope doctor'"))?;
    let pushing = plan.push.clone().map(Pushing::start).transpose();
    let pushing = pushing.map_err(|error| Failure::new("cannot push", reason(&error), "run 'clrscope doctor'"))?;
    folders_in(&plan.folder).for_each(|folder| finish_left_over(&folder, pushing.as_ref()));
    if !plan.quiet {
        say(&format!("clrscope: watches this host, recording into {}; Ctrl-C ends it", shown(&plan.folder)));
    }
    let ends = plan.ends_after.map(|time| Instant::now() + time);
    let mut host = Host::new(plan, pushing);
    while !is_over.load(Ordering::Acquire) && ends.is_none_or(|end| Instant::now() < end) {
        let next = host.look();
        if host.take_status() {
            // A full disk must not end the watch.
            let _ = status::write(&host, true);
        }
        let left = ends.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        thread::park_timeout(next.min(left));
    }
    host.end();
    let _ = status::write(&host, false);
    host.conclude()
}

/// Makes the folder, unless it is there. Returns its absolute path.
fn make_folder(folder: &Path) -> Result<PathBuf, Failure> {
    let failed = |why: String| {
        let what = format!("cannot record into {}", shown(folder));
        Failure::new(what, why, "name a folder with -o: each program gets one in it")
    };
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(reason(&error))),
        Err(_) if !folder.is_dir() => return Err(failed("it is a file".to_owned())),
        _ => {}
    }
    fs::canonicalize(folder).map_err(|error| failed(reason(&error)))
}

/// Writes what killed recorders have left in a program's folder, and pushes it.
fn finish_left_over(folder: &Path, pushing: Option<&Pushing>) {
    write_left_over(folder, pushing.is_some());
    pushing.into_iter().for_each(|pushing| pushing.add_left_in(folder));
}

/// The folders of programs in the folder of a watch.
fn folders_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}
