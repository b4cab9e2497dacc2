//! Finds the recording that the agent in a running process writes.

use std::cell::Cell;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clr_diagnostics::Process;
use clrscope_recording::writer::Command;

use crate::errors::{Failure, quoted, reason};

/// The segment that every recorded process has mapped.
const STATE: &str = "/state.seg";
/// Part of the file name of the agent's library.
const AGENT: &str = "libclrscope_agent";
/// Suffix of the path of a mapped file that was removed.
pub(crate) const DELETED: &str = " (deleted)";

/// The folder of process `pid` in the recording that the agent in it writes; `what` names the
/// caller's action for messages.
///
/// # Errors
/// When there is no such process, it belongs to another user, or no agent in it is recording.
pub(crate) fn process_folder(pid: u32, what: &str) -> Result<PathBuf, Failure> {
    let failed = |why: String, hint: &str| Failure::new(format!("{what} of process {pid}"), why, hint);
    let root = PathBuf::from(format!("/proc/{pid}"));
    let maps = match fs::read(root.join("maps")) {
        Ok(maps) => maps,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound) => {
            return Err(failed("there is no such process".to_owned(), "'clrscope ps' lists .NET programs"));
        }
        // ESRCH: the process has ended and was not reaped yet.
        Err(error) if error.raw_os_error() == Some(3) => return Err(failed("it has ended".to_owned(), STARTED)),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(failed("it belongs to another user".to_owned(), "give the command as that user, or as root"));
        }
        Err(error) => return Err(failed(reason(&error), "check that /proc is there")),
    };
    match MappedParts::find(&maps) {
        MappedParts::State(folder) => Ok(seen_from_here(&root, folder)),
        MappedParts::RemovedState => Err(failed("its recording is over, and was moved away".to_owned(), STARTED)),
        MappedParts::Agent => Err(failed("the agent in it records nothing now".to_owned(), STEPPED_ASIDE)),
        MappedParts::Nothing if maps.is_empty() => Err(failed("it has ended".to_owned(), STARTED)),
        MappedParts::Nothing => Err(failed("it does not run under the agent".to_owned(), STARTED)),
    }
}

/// Time after which a stopped process is reported as stopped: debuggers and tracers often stop
/// programs for moments.
const STOPPED_FOR: Duration = Duration::from_secs(1);

/// Detects whether a process has been stopped for some time, by a signal or a debugger. Callers
/// poll it while they wait for the process.
#[derive(Debug, Default)]
pub(crate) struct StopWatch(Cell<Option<Instant>>);

impl StopWatch {
    /// Whether the process was stopped at every call for a second.
    pub(crate) fn is_stopped(&self, pid: u32) -> bool {
        let is_stopped = Process::open(pid).is_ok_and(|process| process.is_stopped());
        let since = is_stopped.then(|| self.0.get().unwrap_or_else(Instant::now));
        self.0.set(since);
        since.is_some_and(|since| since.elapsed() >= STOPPED_FOR)
    }
}

/// Failure of the action `what` because the process is stopped.
pub(crate) fn stopped(what: String, pid: u32) -> Failure {
    let why = "it is stopped by a signal or a debugger, and can't answer";
    Failure::new(what, why, format!("resume it: kill -CONT {pid}"))
}

/// Whether the agent in process `pid` is recording; `false` if that can't be found out.
pub(crate) fn is_recorded(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/maps")).is_ok_and(|maps| matches!(MappedParts::find(&maps), MappedParts::State(_)))
}

/// Whether a process of this machine records into this process folder; `true` if that can't be
/// found out.
pub(crate) fn records_into(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let Some(pid) = name.strip_prefix('p').and_then(|rest| rest.split('-').next()) else { return true };
    match fs::read(format!("/proc/{pid}/maps")) {
        Ok(maps) => match MappedParts::find(&maps) {
            MappedParts::State(found) => found.file_name() == folder.file_name(),
            _ => false,
        },
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    }
}

const STARTED: &str =
    "attach to it first, with what is to be recorded: 'clrscope attach PID'; or start the program with 'clrscope run'";
const STEPPED_ASIDE: &str = "attach to it: 'clrscope attach PID'; if it was started with 'clrscope run', 'clrscope \
                             report' of that recording says why";

/// Parts of the agent that a process has mapped.
#[derive(Debug, PartialEq, Eq)]
enum MappedParts {
    /// The state segment, in this folder.
    State(PathBuf),
    /// The state segment of a recorded process, but its file was removed.
    RemovedState,
    /// Only the agent's library.
    Agent,
    Nothing,
}

impl MappedParts {
    /// Finds the parts in the lines of a `maps` file.
    fn find(maps: &[u8]) -> Self {
        let text = String::from_utf8_lossy(maps);
        // Five fields precede the path.
        let paths = || text.lines().filter_map(|line| Some(&line[line.find('/')?..]));
        let states = || paths().filter(|path| path.trim_end_matches(DELETED).ends_with(STATE));
        let state = states().find(|path| !path.ends_with(DELETED));
        if let Some(folder) = state.and_then(|path| path.strip_suffix(STATE)) {
            return Self::State(PathBuf::from(folder.replace("\\012", "\n")));
        }
        match (states().next(), paths().any(|path| path.contains(AGENT))) {
            (Some(_), _) => Self::RemovedState,
            (None, true) => Self::Agent,
            (None, false) => Self::Nothing,
        }
    }
}

/// Translates the folder of a process, which may be in a container, to a path of ours.
fn seen_from_here(root: &Path, folder: PathBuf) -> PathBuf {
    let relative = std::ffi::OsStr::from_bytes(folder.as_os_str().as_bytes().trim_ascii_start());
    let within = root.join("root").join(Path::new(relative).strip_prefix("/").unwrap_or(Path::new(relative)));
    if within.is_dir() { within } else { folder }
}

/// Checks a name for a part of a recording: one or more words, not a number, at most `longest`
/// bytes.
///
/// # Errors
/// When the text can't be a name.
pub(crate) fn part_name(name: &str, longest: usize) -> Result<(), Failure> {
    let why = if let Some(why) = Command::names_no_part(name) {
        why.to_owned()
    } else if name.len() > longest {
        format!("it is longer than {longest} bytes")
    } else if name.chars().any(char::is_control) {
        "it has a control character".to_owned()
    } else {
        return Ok(());
    };
    Err(Failure::usage(format!("a part can't be named {}", quoted(name)), why, "write a short name, such as warm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_recorded_process_is_found_among_what_it_has_mapped() {
        let agent = "7f0-7f1 r-xp 00000000 08:01 12   /home/a b/libclrscope_agent.so\n";
        let state = "7f2-7f3 rw-s 00000000 08:01 13   /srv/my app.clrs.d/p7-1/state.seg";
        let found = |text: &str| MappedParts::find(text.as_bytes());
        assert_eq!(found(&format!("{agent}{state}\n")), MappedParts::State("/srv/my app.clrs.d/p7-1".into()));
        assert_eq!(found(&format!("{agent}{state} (deleted)\n")), MappedParts::RemovedState);
        assert_eq!(found(agent), MappedParts::Agent);
        assert_eq!(found("7f0-7f1 rw-p 00000000 00:00 0\n7f5-7f6 rw-p 0 00:00 0   [heap]\n"), MappedParts::Nothing);
    }

    #[test]
    fn names_of_parts_are_no_numbers_and_fit_on_a_line() {
        assert_eq!(part_name("warm up", 10), Ok(()));
        for bad in ["", " ", "12", "longer than ten", "a\nb"] {
            assert!(part_name(bad, 10).is_err(), "{bad:?}");
        }
    }
}
