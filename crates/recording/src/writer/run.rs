//! The launcher's part of a recording: what was started, when, and how it ended.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};

use super::LogWriter;
use super::process::monotonic_ns;
use crate::codec;
use crate::layout::{HEADER_BYTES, header, state};
use crate::model::Exit;
use crate::records::{InLog, RunEnd, RunStart};

const RUN_LOG: &str = "run.log";

/// Writes `run.log`.
#[derive(Debug)]
pub struct RunWriter {
    folder: PathBuf,
    log: LogWriter,
}

impl RunWriter {
    /// Makes the recording directory (it must not exist, its parent must) and notes the start.
    /// `unix_ns` is the time now.
    ///
    /// # Errors
    /// Errors of making folder and file.
    pub fn create(folder: &Path, command: &[String], instruments: &str, unix_ns: u64) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(folder)?;
        let log = LogWriter::create(&folder.join(RUN_LOG))?;
        let start = RunStart {
            command: command.to_vec(),
            mono_ns: monotonic_ns(),
            unix_ns,
            given: instruments.to_owned(),
            clrscope_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        log.append(RunStart::LOG, codec::encode(&start).bytes());
        Ok(Self { folder: folder.to_owned(), log })
    }

    /// The recording directory.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Notes how the root program, process `pid`, ended.
    pub fn ended(&self, pid: u32, exit: Exit) {
        let (by_signal, number) = match exit {
            Exit::Code(code) => (false, code),
            Exit::Signal(signal) => (true, signal),
        };
        let end = RunEnd { mono_ns: monotonic_ns(), pid, by_signal, number };
        self.log.append(RunEnd::LOG, codec::encode(&end).bytes());
    }

    /// Ends the recording: every process of it is asked to stop recording, those that start from now on
    /// find it [over](is_over). All go on running. How many were asked.
    pub fn request_stop(&self) -> usize {
        // First this: a process that does not find it has its state there already, and is asked below.
        let file = OpenOptions::new().write(true).open(self.folder.join(RUN_LOG));
        // A log that is gone says the same.
        let _ = file.and_then(|file| file.write_all_at(&1_u32.to_le_bytes(), header::OVER as u64));
        request_stop(&self.folder)
    }
}

/// Whether the launcher of the recording in `folder` has ended it, or it is not there any more. A process
/// asks before it makes its segments and once more after.
#[must_use]
pub fn is_over(folder: &Path) -> bool {
    let mut word = [0; 4];
    match File::open(folder.join(RUN_LOG)).and_then(|file| file.read_exact_at(&mut word, header::OVER as u64)) {
        Ok(()) => word != [0; 4],
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Asks every process that records into `folder` to stop. How many were asked.
pub fn request_stop(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let states = entries.flatten().map(|entry| entry.path().join("state.seg"));
    states.filter(|path| ask_to_stop(path).is_ok()).count()
}

fn ask_to_stop(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(&1_u32.to_le_bytes(), (HEADER_BYTES + state::STOP) as u64)
}
