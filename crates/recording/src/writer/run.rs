//! The launcher's part of a recording: the command, its start and its end.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::LogWriter;
use super::clock::monotonic_ns;
use super::random_id::random_id;
use crate::codec;
use crate::layout::{HEADER_BYTES, header, state};
use crate::model::Exit;
use crate::records::{InLog, PeriodEnd, RunEnd, RunStart};

const RUN_LOG: &str = "run.log";
/// Name of `run.log` until its lock is taken.
const DRAFT: &str = ".run.log";

/// Writes `run.log`.
#[derive(Debug)]
pub struct RunWriter {
    folder: PathBuf,
    log: LogWriter,
    /// The lock that shows other processes that this process lives.
    held: Option<File>,
}

impl RunWriter {
    /// Makes the recording directory (it must not exist, its parent must) and notes the start.
    /// `unix_ns` is the time now.
    ///
    /// # Errors
    /// Errors of making folder and file.
    pub fn create(folder: &Path, command: &[String], instruments: &str, unix_ns: u64) -> io::Result<Self> {
        Self::create_as(RUN_LOG, folder, command, instruments, unix_ns)
    }

    /// Like [`create`](Self::create), but also holds the recording's lock as long as this writer
    /// lives, from the moment when other processes can see the recording. The lock tells attached
    /// processes, even in other namespaces, that a launcher waits for them. It also keeps other
    /// launchers from taking over the recording. The system releases it however this process ends.
    /// A file system without file locks has no such lock.
    ///
    /// # Errors
    /// Errors of making folder and file.
    pub fn create_held(folder: &Path, command: &[String], instruments: &str, unix_ns: u64) -> io::Result<Self> {
        let mut this = Self::create_as(DRAFT, folder, command, instruments, unix_ns)?;
        let draft = folder.join(DRAFT);
        this.held = File::open(&draft).ok().filter(|file| file.try_lock().is_ok());
        fs::rename(draft, folder.join(RUN_LOG))?;
        Ok(this)
    }

    fn create_as(name: &str, folder: &Path, command: &[String], instruments: &str, unix_ns: u64) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(folder)?;
        let log = LogWriter::create(&folder.join(name))?;
        let start = RunStart {
            command: command.to_vec(),
            mono_ns: monotonic_ns(),
            unix_ns,
            given: instruments.to_owned(),
            clrscope_version: env!("CARGO_PKG_VERSION").to_owned(),
            id: random_id(),
        };
        log.append(RunStart::LOG, codec::encode(&start).bytes());
        Ok(Self { folder: folder.to_owned(), log, held: None })
    }

    /// The recording directory.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Notes how process `pid`, the root program, ended.
    pub fn ended(&self, pid: u32, exit: Exit) {
        let (by_signal, number) = match exit {
            Exit::Code(code) => (false, code),
            Exit::Signal(signal) => (true, signal),
        };
        let end = RunEnd { mono_ns: monotonic_ns(), pid, by_signal, number };
        self.log.append(RunEnd::LOG, codec::encode(&end).bytes());
    }

    /// Notes that the period of this number, which ended at `mono_ns`, has been written.
    pub fn period_written(&self, number: u32, mono_ns: u64) {
        self.log.append(PeriodEnd::LOG, codec::encode(&PeriodEnd { number, mono_ns }).bytes());
    }

    /// Ends the recording: asks all its processes to stop recording, and returns their number.
    /// Processes that start later find the recording [over](is_over). All processes keep running.
    pub fn request_stop(&self) -> usize {
        // This must come first: a process that does not yet see it has made its state already, and
        // gets the request below.
        let file = OpenOptions::new().write(true).open(self.folder.join(RUN_LOG));
        // A missing log means the same.
        let _ = file.and_then(|file| file.write_all_at(&1_u32.to_le_bytes(), header::OVER as u64));
        request_stop(&self.folder)
    }
}

/// Whether the launcher has ended the recording in `folder`, or the recording no longer exists. A
/// process checks this before it makes its segments, and once more afterwards.
#[must_use]
pub fn is_over(folder: &Path) -> bool {
    let mut word = [0; 4];
    match File::open(folder.join(RUN_LOG)).and_then(|file| file.read_exact_at(&mut word, header::OVER as u64)) {
        Ok(()) => word != [0; 4],
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Whether the launcher that [held](RunWriter::create_held) the recording in `folder` has ended, or
/// has removed the recording.
#[must_use]
pub fn is_abandoned(folder: &Path) -> bool {
    match File::open(folder.join(RUN_LOG)) {
        Ok(file) => file.try_lock_shared().is_ok(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Takes over the recording in `folder`, whose launcher has ended: no other process can take it
/// over while the returned value lives. `None` if a launcher or another such process holds the
/// recording, if it no longer exists, or if the file system has no locks.
#[must_use]
pub fn take_abandoned(folder: &Path) -> Option<File> {
    let path = folder.join(RUN_LOG);
    File::open(&path).and_then(|file| lock_at(file, &path)).ok()
}

/// Locks `file`, which was opened at `path`, for as long as it stays open.
///
/// # Errors
/// When another process has locked it, or has removed it from `path`.
pub fn lock_at(file: File, path: &Path) -> io::Result<File> {
    file.try_lock()?;
    // The process that had the lock before may have removed the file.
    let is_there = fs::metadata(path)?.ino() == file.metadata()?.ino();
    if is_there { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Progress of the end of a process's recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// The process records.
    Recording,
    /// The process no longer records.
    Stopped,
    /// The runtime has detached the agent, or the agent sleeps.
    Detached,
}

/// The lowest [`Standing`] of all processes that record into `folder`: how far the slowest one has
/// finished. `None` if no process records into the folder.
#[must_use]
pub fn standing(folder: &Path) -> Option<Standing> {
    states(folder).filter_map(|path| standing_of(&path).ok()).min()
}

fn standing_of(path: &Path) -> io::Result<Standing> {
    Ok(match u32::from_le_bytes(read_state(path, state::STOPPED)?) {
        0 => Standing::Recording,
        state::DETACHED => Standing::Detached,
        _ => Standing::Stopped,
    })
}

/// How often triggers have fired so far, in all processes: each time, the recording in `folder` is
/// to be written out.
#[must_use]
pub fn triggered(folder: &Path) -> u64 {
    let count =
        |path: PathBuf| read_state(&path, state::TRIGGERED).map_or(0, |word| u64::from(u32::from_le_bytes(word)));
    states(folder).map(count).sum()
}

fn read_state<const BYTES: usize>(path: &Path, at: usize) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    File::open(path)?.read_exact_at(&mut bytes, (HEADER_BYTES + at) as u64)?;
    Ok(bytes)
}

/// Monotonic nanoseconds of the last sign of life of the process whose folder is `process`; `None`
/// if that can't be read.
#[must_use]
pub fn last_sign_ns(process: &Path) -> Option<u64> {
    read_state(&process.join("state.seg"), state::MONO_LAST).map(u64::from_le_bytes).ok()
}

/// Folders of the processes that record into `folder` and gave a sign of life in the last second.
pub fn living_processes(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let is_alive =
        |process: &PathBuf| monotonic_ns().saturating_sub(last_sign_ns(process).unwrap_or(0)) < 1_000_000_000;
    process_folders(folder).filter(is_alive)
}

/// Folders of the processes that record, or have recorded, into `folder`.
pub fn process_folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.join("state.seg").is_file())
}

fn states(folder: &Path) -> impl Iterator<Item = PathBuf> {
    process_folders(folder).map(|process| process.join("state.seg"))
}

/// Asks every process that records into `folder` to stop. Returns their number.
pub fn request_stop(folder: &Path) -> usize {
    states(folder).filter(|path| ask_to_stop(path).is_ok()).count()
}

fn ask_to_stop(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(&1_u32.to_le_bytes(), (HEADER_BYTES + state::STOP) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_held_for_as_long_as_its_launcher_lives() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path().join("x.clrs.d");
        assert!(is_abandoned(&folder), "it is not there");
        let writer = RunWriter::create_held(&folder, &[], "", 0).expect("a recording");
        assert!(!is_abandoned(&folder) && !is_over(&folder));
        assert_eq!(standing(&folder), None);
        drop(writer);
        assert!(is_abandoned(&folder));
        let taken = take_abandoned(&folder).expect("it is free");
        assert!(take_abandoned(&folder).is_none(), "one process at a time");
        drop(taken);
        assert!(take_abandoned(&folder).is_some());
        assert!(take_abandoned(temp.path()).is_none(), "it is no recording");
    }

    #[test]
    fn a_recording_is_never_seen_before_it_is_held() {
        let temp = tempfile::tempdir().expect("a folder");
        for number in 0..20 {
            let folder = temp.path().join(format!("{number}.clrs.d"));
            let looks = std::thread::scope(|scope| {
                let looking = scope.spawn(|| {
                    while !folder.join(RUN_LOG).is_file() {
                        std::thread::yield_now();
                    }
                    take_abandoned(&folder).is_some()
                });
                let writer = RunWriter::create_held(&folder, &[], "", 0).expect("a recording");
                let was_taken = looking.join().expect("no panic");
                drop(writer);
                was_taken
            });
            assert!(!looks);
        }
    }
}
