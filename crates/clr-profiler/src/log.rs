//! A text log for profilers: whole lines from all threads, each indented by how deep its thread is nested.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::PerThread;

/// One file for all threads. A line is the thread's number (1 for the first that wrote), a tab, two spaces per level, text.
///
/// For callbacks, not for hooks: each line is one write to the file, so nothing is lost when the program crashes, and lines
/// never mix. The lock is held for that write only, and the runtime is not asked meanwhile, so a collection can't wait for
/// a thread that waits for the log. What can't be written is dropped: there is nobody to tell.
pub struct NestedLog {
    file: Mutex<File>,
    threads: PerThread<Nesting>,
}

struct Nesting {
    number: usize,
    open: Mutex<Vec<&'static str>>,
}

impl NestedLog {
    /// An empty file at `path`, in place of one that is there.
    ///
    /// # Errors
    /// When the file can't be made, or the process has no thread key left.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let threads = AtomicUsize::new(0);
        let make = move || Nesting { number: threads.fetch_add(1, Ordering::Relaxed) + 1, open: Mutex::default() };
        Ok(Self { file: Mutex::new(File::create(path)?), threads: PerThread::new(make, |_| ())? })
    }

    /// A line at the thread's level.
    pub fn line(&self, text: impl Display) {
        self.threads.with(|thread| self.write(thread.number, thread.open().len(), &text));
    }

    /// A line, `below` levels deeper than the thread is.
    pub fn line_below(&self, below: usize, text: impl Display) {
        self.threads.with(|thread| self.write(thread.number, thread.open().len() + below, &text));
    }

    /// A line that opens `group`: the thread's next lines stand one level deeper.
    pub fn begin(&self, group: &'static str, text: impl Display) {
        self.line(text);
        self.threads.with(|thread| thread.open().push(group));
    }

    /// Closes the innermost open `group` of the thread, with those inside it that nobody closed, and writes a line. Without
    /// an open one it is just a line.
    pub fn end(&self, group: &'static str, text: impl Display) {
        self.threads.with(|thread| {
            let mut open = thread.open();
            if let Some(level) = open.iter().rposition(|other| *other == group) {
                open.truncate(level);
            }
        });
        self.line(text);
    }

    fn write(&self, thread: usize, level: usize, text: &impl Display) {
        let line = format!("{thread}\t{:width$}{text}\n", "", width = level.min(LEVELS) * 2);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        drop(file.write_all(line.as_bytes()));
    }
}

/// Deeper lines are not indented further: a runaway recursion must not fill the disk with spaces.
const LEVELS: usize = 60;

impl Nesting {
    fn open(&self) -> std::sync::MutexGuard<'_, Vec<&'static str>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
}
