//! A log for developers of the agent, written where `CLRSCOPE_LOG` asks for it: one line per event,
//! in `agent-PID.log` of the recording directory.
//!
//! Lines are queued under a lock that is held only for a push. Start-up and the helper thread write
//! them to the file, with signals blocked. So logging is allowed during start-up, in callbacks that
//! may block, and on the helper thread. Hooks and callbacks during a collection must not log. The
//! file is opened for each write, because programs close descriptors that are not theirs.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clrscope_contract::developer_log::{LEVELS, VARIABLE, file_name};
use clrscope_recording::writer::monotonic_ns;

use crate::os::threads::thread_id;

/// Most bytes of lines that wait to be written. Further lines are dropped and counted.
const MOST_WAITING: usize = 1 << 20;
/// Most processes with the same id that may each have a log.
const MOST_OF_ONE_ID: u32 = 100;

/// Severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// The agent failed at something.
    Error = 1,
    /// The runtime or the system did something unexpected.
    Warn = 2,
    /// Start, end, and decisions.
    Info = 3,
    /// Also each function that is seen for the first time.
    Debug = 4,
}

impl Level {
    fn name(self) -> &'static str {
        LEVELS[self as usize - 1]
    }
}

/// The level that is wanted; 0 if no log is wanted.
static WANTED: AtomicU8 = AtomicU8::new(0);
static QUEUE: Mutex<Queue> = Mutex::new(Queue::new());

struct Queue {
    lines: String,
    left_out: u64,
    file: Option<PathBuf>,
}

impl Queue {
    const fn new() -> Self {
        Self { lines: String::new(), left_out: 0, file: None }
    }

    fn push(&mut self, line: &str) {
        match self.lines.len() + line.len() <= MOST_WAITING {
            true => self.lines.push_str(line),
            false => self.left_out += 1,
        }
    }

    /// Returns the text to be written, with a note on lines that were dropped.
    fn drain(&mut self) -> String {
        let mut lines = std::mem::take(&mut self.lines);
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            lines.push_str(&format!("... {left_out} lines found no room\n"));
        }
        lines
    }
}

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The level that a value of the variable means. An unknown word means `info`.
fn level_of(value: &str) -> u8 {
    let found = LEVELS.iter().position(|level| *level == value);
    found.map_or(Level::Info as u8, |at| at as u8 + 1)
}

/// Starts the log if `CLRSCOPE_LOG` asks for it. Lines stay in memory until [`write_into`] names
/// the folder.
pub fn begin() {
    if let Some(value) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        begin_with(&value.to_string_lossy());
    }
}

/// Like [`begin`], with this value of `CLRSCOPE_LOG` instead of the one in the environment.
pub fn begin_with(value: &str) {
    WANTED.store(level_of(value), Ordering::Relaxed);
    if !LEVELS.contains(&value) {
        log(Level::Warn, || {
            format!("{VARIABLE}={value} is not a level, so info is used (known: {})", LEVELS.join(", "))
        });
    }
}

/// Whether lines of this level are written. Costs one load.
#[inline]
pub fn wants(level: Level) -> bool {
    level as u8 <= WANTED.load(Ordering::Relaxed)
}

/// Logs the result of `text`, if the level is enabled. May allocate, and waits for a short lock.
pub fn log(level: Level, text: impl FnOnce() -> String) {
    if !wants(level) {
        return;
    }
    let now = monotonic_ns();
    let thread = thread_id();
    let text = text().replace('\n', " ");
    let line = format!("{}.{:06} {:5} [{thread}] {text}\n", now / 1_000_000_000, now / 1_000 % 1_000_000, level.name());
    queue().push(&line);
}

/// Creates the log file in `folder` if there is none yet, and writes the queued lines. Waits for
/// the disk. If the folder does not exist, nothing is written.
pub fn write_into(folder: &Path) {
    if WANTED.load(Ordering::Relaxed) == 0 {
        return;
    }
    if queue().file.is_none() {
        let made = create(folder).ok();
        queue().file = made;
    }
    flush();
}

/// A file of our own: others may be able to put links there.
fn create(folder: &Path) -> io::Result<PathBuf> {
    for number in 0..MOST_OF_ONE_ID {
        let path = folder.join(file_name(std::process::id(), number));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other.map(|_| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Writes the queued lines. Waits for the disk, and must run with signals blocked, as a file size
/// limit raises a signal. Lines that can't be written are lost, which is acceptable for a log.
pub fn flush() {
    if WANTED.load(Ordering::Relaxed) == 0 {
        return;
    }
    let (file, lines) = {
        let mut queue = queue();
        let Some(file) = queue.file.clone() else { return };
        (file, queue.drain())
    };
    if !lines.is_empty() {
        let opened = OpenOptions::new().append(true).custom_flags(libc::O_NOFOLLOW).open(file);
        let _ = opened.and_then(|mut file| file.write_all(lines.as_bytes()));
    }
}

/// Ends the log of an attached agent that detaches. The next agent may write another log, in
/// another folder. Call it with signals blocked.
pub fn let_go() {
    flush();
    WANTED.store(0, Ordering::Relaxed);
    *queue() = Queue::new();
}

/// Ends the log in a forked child, whose parent may have held the lock. Async-signal-safe.
pub fn withdraw() {
    WANTED.store(0, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_one_another_and_other_words_mean_info() {
        let levels = [Level::Error, Level::Warn, Level::Info, Level::Debug];
        assert_eq!(levels.map(Level::name), LEVELS);
        assert_eq!(LEVELS.map(level_of), levels.map(|level| level as u8));
        assert_eq!(level_of("loud"), Level::Info as u8);
    }

    #[test]
    fn lines_beyond_the_room_are_counted() {
        let mut queue = Queue::new();
        let line = "x".repeat(1_000);
        (0..2_000).for_each(|_| queue.push(&line));
        let taken = queue.drain();
        assert_eq!(taken.matches('x').count() / 1_000, MOST_WAITING / 1_000);
        assert!(taken.ends_with(&format!("... {} lines found no room\n", 2_000 - MOST_WAITING / 1_000)));
        assert_eq!(queue.drain(), "");
    }
}
