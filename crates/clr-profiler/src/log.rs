//! A text log for profilers: whole lines from all threads, each indented by the nesting depth of
//! its thread.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::PerThread;

/// One file for all threads ([`create`](Self::create)), or one for each
/// ([`create_per_thread`](Self::create_per_thread)).
///
/// In one file a line is the thread's number (1 for the first that wrote), a tab, two spaces per
/// level, text. In a thread's own file the number is in the file's name instead.
///
/// For callbacks, not for hooks: each line is one write to the file, so nothing is lost when the
/// program crashes, and lines never mix. The lock is held for that write only, and without queries
/// to the runtime, so a collection can't wait for a thread that waits for the log. A line that
/// can't be written is dropped, because there is no place to report the failure.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("nested-log-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// use clr_profiler::NestedLog;
/// let log = NestedLog::create(folder.join("log.txt"))?;
/// log.begin("module", "module load started");
/// log.line("class load started");
/// log.end("module", "module load finished");
/// let lines = "1\tmodule load started\n1\t  class load started\n1\tmodule load finished\n";
/// assert_eq!(std::fs::read_to_string(folder.join("log.txt"))?, lines);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct NestedLog {
    target: LogTarget,
    threads: PerThread<Nesting>,
}

enum LogTarget {
    One(Mutex<File>),
    /// A folder, and the number of its open files.
    Each(PathBuf, Arc<AtomicUsize>),
}

struct Nesting {
    number: usize,
    open: Mutex<Vec<&'static str>>,
    file: Mutex<Own>,
}

/// A thread's own file.
#[derive(Default)]
struct Own {
    /// Whether the file exists, so that further lines are appended.
    begun: bool,
    kept: Option<LogFile>,
}

/// A file that stays open between lines and counts as open.
struct LogFile {
    file: File,
    open: Arc<AtomicUsize>,
}

impl Drop for LogFile {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Maximum number of files that stay open: file descriptors belong to the program, which may have
/// thousands of threads. The files of further threads are opened for each line.
const KEPT_OPEN: usize = 32;

impl NestedLog {
    /// Creates one file for all threads at `path`, and replaces an existing file.
    ///
    /// # Errors
    /// When the file can't be created, or the process has no thread key left.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::new(LogTarget::One(Mutex::new(File::create(path)?)))
    }

    /// Creates a file for each thread that writes: `thread-1.txt` for the first and so on, in
    /// `folder`. Creates the folder if necessary. Replaces files of the same name; leaves other
    /// files alone.
    ///
    /// # Errors
    /// When the folder can't be created, or the process has no thread key left.
    pub fn create_per_thread(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        std::fs::create_dir_all(&folder)?;
        Self::new(LogTarget::Each(folder, Arc::default()))
    }

    fn new(target: LogTarget) -> io::Result<Self> {
        let threads = AtomicUsize::new(0);
        let make = move || Nesting {
            number: threads.fetch_add(1, Ordering::Relaxed) + 1,
            open: Mutex::default(),
            file: Mutex::default(),
        };
        Ok(Self { target, threads: PerThread::new(make, |_| ())? })
    }

    /// Writes a line at the thread's current level.
    pub fn line(&self, text: impl Display) {
        self.threads.with(|thread| self.write(thread, 0, &text));
    }

    /// Writes a line `below` levels deeper than the thread's current level.
    pub fn line_below(&self, below: usize, text: impl Display) {
        self.threads.with(|thread| self.write(thread, below, &text));
    }

    /// Writes a line and opens `group`: the thread's next lines are one level deeper.
    pub fn begin(&self, group: &'static str, text: impl Display) {
        self.line(text);
        self.threads.with(|thread| thread.open().push(group));
    }

    /// Closes the innermost open `group` of the thread, together with unclosed groups inside it,
    /// and writes a line. If no such group is open, only writes the line.
    pub fn end(&self, group: &'static str, text: impl Display) {
        self.threads.with(|thread| {
            let mut open = thread.open();
            if let Some(level) = open.iter().rposition(|other| *other == group) {
                open.truncate(level);
            }
        });
        self.line(text);
    }

    fn write(&self, thread: &Nesting, below: usize, text: &impl Display) {
        let level = thread.open().len() + below;
        let width = level.min(LEVELS) * 2;
        match &self.target {
            LogTarget::One(file) => {
                let line = format!("{}\t{:width$}{text}\n", thread.number, "");
                drop(lock(file).write_all(line.as_bytes()));
            }
            LogTarget::Each(folder, open) => {
                let line = format!("{:width$}{text}\n", "");
                drop(lock(&thread.file).write(folder, thread.number, open, line.as_bytes()));
            }
        }
    }
}

impl Own {
    fn write(&mut self, folder: &Path, number: usize, open: &Arc<AtomicUsize>, line: &[u8]) -> io::Result<()> {
        if let Some(kept) = &mut self.kept {
            return kept.file.write_all(line);
        }
        let path = folder.join(format!("thread-{number}.txt"));
        let mut file = if self.begun { OpenOptions::new().append(true).open(path) } else { File::create(path) }?;
        self.begun = true;
        file.write_all(line)?;
        let claimed = open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < KEPT_OPEN).then_some(n + 1));
        self.kept = claimed.ok().map(|_| LogFile { file, open: Arc::clone(open) });
        Ok(())
    }
}

/// Deeper lines are not indented further: a runaway recursion must not fill the disk with spaces.
const LEVELS: usize = 60;

impl Nesting {
    fn open(&self) -> MutexGuard<'_, Vec<&'static str>> {
        lock(&self.open)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_indented_by_what_is_open_on_their_thread() {
        let folder = clrscope_testkit::scratch();
        let path = folder.path().join("log.txt");
        let log = NestedLog::create(&path).unwrap();
        log.begin("load", "load A");
        log.begin("jit", "jit f");
        std::thread::scope(|scope| {
            scope.spawn(|| log.line("elsewhere"));
        });
        log.line_below(1, "deep");
        log.end("load", "loaded A");
        log.end("jit", "nothing open");
        let expected = "1\tload A\n1\t  jit f\n2\telsewhere\n1\t      deep\n1\tloaded A\n1\tnothing open\n";
        assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
    }

    #[test]
    fn lines_of_many_threads_stay_whole() {
        let folder = clrscope_testkit::scratch();
        let path = folder.path().join("log.txt");
        let log = NestedLog::create(&path).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|n| log.line(format_args!("line {n} end"))));
            }
        });
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), 2000);
        assert!(text.lines().all(|line| line.contains("\tline ") && line.ends_with(" end")));
    }

    #[test]
    fn each_thread_has_a_file_of_its_own_with_its_own_nesting() {
        let folder = clrscope_testkit::scratch();
        let path = folder.path().join("logs");
        let log = NestedLog::create_per_thread(&path).unwrap();
        log.begin("load", "load A");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                log.begin("jit", "jit f");
                log.line("inside");
            });
        });
        log.end("load", "loaded A");
        let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
        assert_eq!(read("thread-1.txt"), "load A\nloaded A\n");
        assert_eq!(read("thread-2.txt"), "jit f\n  inside\n");
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 2);
    }

    #[test]
    fn more_threads_than_files_may_stay_open_lose_no_line() {
        let folder = clrscope_testkit::scratch();
        let log = Arc::new(NestedLog::create_per_thread(folder.path()).unwrap());
        let threads = KEPT_OPEN + 8;
        let all_are_there = Arc::new(std::sync::Barrier::new(threads));
        let write = |_| {
            let (log, all_are_there) = (Arc::clone(&log), Arc::clone(&all_are_there));
            std::thread::spawn(move || {
                log.line("first");
                all_are_there.wait();
                log.line("second");
            })
        };
        // Joined, not scoped: a thread's file is closed late in its life.
        let running: Vec<_> = (0..threads).map(write).collect();
        running.into_iter().for_each(|thread| thread.join().unwrap());
        for number in 1..=threads {
            let text = std::fs::read_to_string(folder.path().join(format!("thread-{number}.txt"))).unwrap();
            assert_eq!(text, "first\nsecond\n");
        }
        let LogTarget::Each(_, open) = &log.target else { unreachable!("the log has a folder") };
        assert_eq!(open.load(Ordering::Relaxed), 0, "files of threads that have ended are closed");
    }
}
