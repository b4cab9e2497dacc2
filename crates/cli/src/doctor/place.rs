//! Checks the places of the agent and of recordings.

use std::env;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

use super::{Check, Status};
use crate::agent_file;
use crate::c_library;
use crate::errors::{Failure, reason, shown};

/// Less free space than this is soon used up.
const LITTLE_SPACE: u64 = 2 << 30;
/// Bytes that are reserved to test whether the file system can reserve space.
const TRIAL: u64 = 64 << 10;

/// Result for an agent's file.
pub(super) struct Agent {
    /// The check of the file.
    pub(super) check: Check,
    /// Path of the agent, if it can be used.
    pub(super) path: Option<PathBuf>,
}

/// Writes the agent into the cache.
pub(super) fn agent() -> Agent {
    let installed = c_library::agent_of_machine(c_library::of_machine());
    match installed.and_then(|agent| agent_file::install(agent, false)) {
        Ok(path) => {
            let found = format!("{}, which no other user can change", shown(&path));
            Agent { check: Check::ok("agent", found), path: Some(path) }
        }
        Err(failure) => Agent { check: from_failure("agent", &failure), path: None },
    }
}

fn from_failure(name: &'static str, failure: &Failure) -> Check {
    Check::bad(Status::Failed, name, format!("{}: {}", failure.what(), failure.why()), failure.hint())
}

/// Checks the folder for recordings: the requested folder, or its parent if it does not exist yet;
/// by default the current folder, which `run` uses.
pub(super) fn output(asked: Option<PathBuf>) -> Vec<Check> {
    let asked = asked.map(|folder| if folder.is_dir() { folder } else { parent(&folder) });
    let folder = match asked.map_or_else(env::current_dir, Ok) {
        Ok(folder) => folder,
        Err(error) => {
            let found = format!("the current folder is unknown: {}", reason(&error));
            return vec![Check::bad(Status::Failed, "output", found, "change to a folder that exists")];
        }
    };
    vec![promise(&folder), space(&folder)]
}

fn parent(folder: &Path) -> PathBuf {
    folder.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// Checks whether a recording can be written there as intended: with disk space reserved before
/// use.
fn promise(folder: &Path) -> Check {
    let elsewhere = "record elsewhere: clrscope run -o FOLDER/NAME.clrs";
    match try_to_reserve(folder) {
        Ok(()) => Check::ok("output", format!("recordings can be written to {}", shown(folder))),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            let found = format!(
                "the file system of {} can't reserve space: recorded data is held in memory and written late",
                shown(folder)
            );
            Check::bad(Status::Warning, "output", found, elsewhere)
        }
        Err(error) => {
            let found = format!("nothing can be written to {}: {}", shown(folder), reason(&error));
            Check::bad(Status::Failed, "output", found, elsewhere)
        }
    }
}

fn try_to_reserve(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".clrscope-doctor-{}", std::process::id()));
    let file = File::create_new(&path)?;
    let reserved = fallocate(&file, FallocateFlags::empty(), 0, TRIAL);
    fs::remove_file(&path)?;
    Ok(reserved?)
}

fn space(folder: &Path) -> Check {
    let Ok(found) = statvfs(folder) else {
        let cure = "check the file system with df";
        return Check::bad(Status::Note, "space", format!("the space in {} is unknown", shown(folder)), cure);
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    let text = format!("{:.1} GiB are free in {}", free as f64 / f64::from(1 << 30), shown(folder));
    match free < LITTLE_SPACE {
        true => Check::bad(
            Status::Warning,
            "space",
            text,
            "make room, record elsewhere with -o, or set a limit: -i calls:max=256MiB",
        ),
        false => Check::ok("space", text),
    }
}
