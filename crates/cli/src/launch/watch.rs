//! Observes whether runtimes keep a library whose profiler reports nothing itself.
//!
//! A file is closed when its last mapping is removed, so the system notifies us when a runtime
//! unloads the library. A program that ends closes the file as well; so the library was rejected
//! only if the process lives on without it. Some file systems close files at once (overlays of
//! containers do); there the only evidence is checks some time after the opening.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

/// Delays of the checks after a library was opened: the runtime has accepted or rejected it long
/// before. There are two checks, because another runtime may just be starting.
const DECIDED: [Duration; 2] = [Duration::from_millis(150), Duration::from_millis(300)];
/// File name of the runtime in a process's mappings.
const RUNTIME: &str = "/libcoreclr.so";

/// Watches one library from before the program starts.
pub(crate) struct Watch(Arc<Mutex<History>>);

/// What happened to the library of the profiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No process opened the file.
    NeverOpened,
    /// A runtime rejected the library: this process runs .NET, had the library in its environment,
    /// and lived on without it.
    LetGo(u32),
    /// Every process that opened the library kept it until its end, or still has it.
    Kept,
    /// The library was opened, but what happened then could not be observed.
    Unknown,
}

/// Openings and closings so far.
#[derive(Debug, Default)]
struct History {
    opened: u32,
    closed: u32,
    /// Whether the file was closed while a process had it mapped: then closing proves nothing.
    closes_early: bool,
    /// Processes without the library when the file was closed; cleared when the file is opened
    /// again.
    suspects: BTreeSet<u32>,
    /// Processes without the library at the first late check.
    missed: BTreeSet<u32>,
    let_go: BTreeSet<u32>,
    kept: BTreeSet<u32>,
}

/// Processes that run .NET and have the library in their environment, with and without a mapping of
/// it.
#[derive(Debug, Default)]
struct Loaders {
    with: BTreeSet<u32>,
    without: BTreeSet<u32>,
}

impl Watch {
    /// Starts watching. `library` is the path that the programs get.
    ///
    /// # Errors
    /// When the system has no inotify watch left.
    pub(crate) fn on(library: &Path) -> io::Result<Self> {
        let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        inotify::add_watch(&events, library, WatchFlags::OPEN | WatchFlags::CLOSE)?;
        let history = Arc::<Mutex<History>>::default();
        let (shared, library) = (Arc::clone(&history), library.to_owned());
        thread::Builder::new().name("watch".to_owned()).spawn(move || watch(&events, &library, &shared))?;
        Ok(Self(history))
    }

    /// The outcome, from all observations until the end of the program.
    pub(crate) fn outcome(&self) -> Outcome {
        locked(&self.0).judge()
    }
}

impl History {
    fn judge(&self) -> Outcome {
        match self.let_go.iter().chain(&self.suspects).next() {
            Some(pid) => Outcome::LetGo(*pid),
            None if self.opened == 0 => Outcome::NeverOpened,
            None if self.closes_early && self.kept.is_empty() => Outcome::Unknown,
            None => Outcome::Kept,
        }
    }

    fn opened(&mut self) {
        self.opened += 1;
        // One of the suspects may be the process that opens the file again.
        self.suspects.clear();
    }

    fn closed(&mut self, loaders: Loaders) {
        self.closed += 1;
        self.closes_early |= self.closed >= self.opened && !loaders.with.is_empty();
        if !self.closes_early {
            self.suspects.extend(loaders.without);
        }
    }

    /// A late check after an opening; `again` for the second one.
    fn late_check(&mut self, loaders: Loaders, again: bool) {
        if again {
            self.let_go.extend(loaders.without.intersection(&self.missed));
            self.kept.extend(loaders.with);
        }
        self.missed = loaders.without;
    }
}

fn locked(history: &Mutex<History>) -> MutexGuard<'_, History> {
    history.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches until this process ends.
fn watch(events: &OwnedFd, library: &Path, history: &Mutex<History>) {
    // Times of the checks, the soonest first, and whether each is the second one after an opening.
    let mut checks: Vec<(Instant, bool)> = Vec::new();
    let mut buffer = [MaybeUninit::uninit(); 512];
    loop {
        let wait = checks.first().map(|(when, _)| when.saturating_duration_since(Instant::now()));
        let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
        if poll(&mut [PollFd::new(events, PollFlags::IN)], wait.as_ref()).is_err_and(|e| e != rustix::io::Errno::INTR) {
            return;
        }
        let mut reader = Reader::new(events, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::OPEN) {
                locked(history).opened();
                checks.extend(DECIDED.iter().zip([false, true]).map(|(after, again)| (Instant::now() + *after, again)));
                checks.sort_unstable();
            } else if event.events().intersects(ReadFlags::CLOSE_NOWRITE | ReadFlags::CLOSE_WRITE) {
                // Done without the lock, so that a reader of the result does not wait.
                let loaders = loaders_of(library);
                locked(history).closed(loaders);
            }
        }
        while checks.first().is_some_and(|(when, _)| *when <= Instant::now()) {
            let (_, again) = checks.remove(0);
            let loaders = loaders_of(library);
            locked(history).late_check(loaders, again);
        }
    }
}

fn loaders_of(library: &Path) -> Loaders {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut loaders = Loaders::default();
    for pid in numbers {
        match has_it(pid, library) {
            Ok(Some(true)) => loaders.with.insert(pid),
            Ok(Some(false)) => loaders.without.insert(pid),
            // The process belongs to another user, or has just ended.
            Ok(None) | Err(_) => continue,
        };
    }
    loaders
}

/// Whether the process has the library mapped; `None` if its environment does not name the library
/// or it does not run .NET.
fn has_it(pid: u32, library: &Path) -> io::Result<Option<bool>> {
    let place = PathBuf::from(format!("/proc/{pid}"));
    let path = library.as_os_str().as_encoded_bytes();
    let environment = fs::read(place.join("environ"))?;
    let names_it =
        environment.split(|&byte| byte == 0).any(|entry| entry.strip_prefix(b"CORECLR_PROFILER_PATH=") == Some(path));
    let maps = if names_it { fs::read(place.join("maps"))? } else { Vec::new() };
    let has = |name: &[u8]| maps.split(|&byte| byte == b'\n').any(|line| line.ends_with(name));
    // A mapping shows the resolved path of a library that was loaded through a link.
    let own = fs::canonicalize(library)?;
    Ok((names_it && has(RUNTIME.as_bytes())).then(|| has(own.as_os_str().as_encoded_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaders(with: &[u32], without: &[u32]) -> Loaders {
        Loaders { with: with.iter().copied().collect(), without: without.iter().copied().collect() }
    }

    fn history(happen: impl FnOnce(&mut History)) -> Outcome {
        let mut history = History::default();
        happen(&mut history);
        history.judge()
    }

    #[test]
    fn a_process_that_lives_on_when_the_file_is_closed_has_let_it_go() {
        let seen = history(|history| {
            history.opened();
            history.closed(loaders(&[], &[7]));
        });
        assert_eq!(seen, Outcome::LetGo(7));
    }

    #[test]
    fn a_process_that_is_gone_when_the_file_is_closed_had_it_to_the_end() {
        assert_eq!(history(History::opened), Outcome::Kept);
        let seen = history(|history| {
            history.opened();
            history.closed(Loaders::default());
        });
        assert_eq!(seen, Outcome::Kept);
        assert_eq!(history(|_| ()), Outcome::NeverOpened);
    }

    #[test]
    fn a_process_that_was_only_starting_is_no_suspect() {
        let seen = history(|history| {
            history.opened();
            // The first process ends; the second opens the file soon.
            history.closed(loaders(&[], &[8]));
            history.opened();
            history.closed(Loaders::default());
        });
        assert_eq!(seen, Outcome::Kept);
    }

    #[test]
    fn where_files_are_closed_at_once_only_late_looks_tell() {
        let closed_early = |late: [Loaders; 2]| {
            history(|history| {
                history.opened();
                history.closed(loaders(&[7], &[]));
                let [first, second] = late;
                history.late_check(first, false);
                history.late_check(second, true);
            })
        };
        assert_eq!(closed_early([Loaders::default(), Loaders::default()]), Outcome::Unknown);
        assert_eq!(closed_early([loaders(&[7], &[]), loaders(&[7], &[])]), Outcome::Kept);
        assert_eq!(closed_early([loaders(&[], &[7]), loaders(&[], &[7])]), Outcome::LetGo(7));
        assert_eq!(closed_early([loaders(&[], &[7]), loaders(&[7], &[])]), Outcome::Kept, "it was only starting");
    }
}
