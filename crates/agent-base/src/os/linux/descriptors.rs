//! Descriptors of files: a table of a thread's own.
//!
//! Programs close descriptors that are not theirs, all of them for instance before they become
//! another program, and get the same numbers again. What a thread of the agent reads all the time
//! must not stand in their table then: the program would close it, and the agent would close what
//! the program has opened since. Others count: a program may have as many descriptors as it is
//! allowed, no fewer.

use std::os::fd::RawFd;
use std::path::PathBuf;

/// A descriptor that stands in the process's table as well as in that of a thread.
pub struct CopiedDescriptor {
    number: RawFd,
    /// File of the descriptor, as the system writes it.
    file: PathBuf,
}

impl CopiedDescriptor {
    fn new(number: RawFd) -> Option<Self> {
        Some(Self { number, file: file_of(number)? })
    }

    /// Closes it in the calling thread's table, unless it was closed there before and the number is
    /// that of another file.
    pub fn close(self) {
        if file_of(self.number).is_some_and(|file| file == self.file) {
            // SAFETY: it is no longer used in this table.
            unsafe { libc::close(self.number) };
        }
    }
}

/// File of a descriptor of the calling thread's table.
fn file_of(number: RawFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/thread-self/fd/{number}")).ok()
}

/// Gives the calling thread a table of its own, with those of the process's descriptors in it that
/// it is to keep, and nothing else that the program has opened: files that it closes are closed.
/// Returns what it keeps, for a thread with the process's table to close there; `None` where the
/// system can't (Linux before 5.9, filters of system calls): then all is as it was.
pub fn keep_only(kept: &[RawFd]) -> Option<Vec<CopiedDescriptor>> {
    let copied = kept.iter().filter_map(|&number| CopiedDescriptor::new(number)).collect();
    leave_table(kept).then_some(copied)
}

fn leave_table(kept: &[RawFd]) -> bool {
    let mut kept: Vec<libc::c_uint> = kept.iter().filter_map(|&number| number.try_into().ok()).collect();
    kept.sort_unstable();
    let behind = kept.last().map_or(0, |last| last + 1);
    // The system does not copy what it is to close in the same call.
    if !close_range(behind, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE) {
        return false;
    }
    let mut first = 0;
    for number in kept {
        if first < number {
            close_range(first, number - 1, 0);
        }
        first = number + 1;
    }
    take_standard_numbers();
    true
}

fn close_range(first: libc::c_uint, last: libc::c_uint, flags: libc::c_uint) -> bool {
    // SAFETY: numbers only. With `CLOSE_RANGE_UNSHARE`, and after it, descriptors of the calling
    // thread alone are closed, and the caller has none but those that it keeps. By number: the C
    // library has this only since 2.34.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) == 0 }
}

/// Takes the numbers of standard input and output, so that no file gets one of them: what is
/// printed would go there.
fn take_standard_numbers() {
    for _ in 0..3 {
        // SAFETY: a path that ends; the descriptor is the calling thread's own.
        let number = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        if number > 2 {
            // SAFETY: opened above.
            unsafe { libc::close(number) };
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write, pipe};
    use std::os::fd::IntoRawFd;
    use std::path::Path;
    use std::sync::mpsc;

    use super::*;

    /// A thread with a table of its own reads on from what it keeps, does not keep a pipe open
    /// whose other end waits for the program to close it, and closes nothing of the program's. What
    /// both have is closed in the program's table where it is still that.
    #[test]
    fn a_thread_keeps_what_it_is_told_to_and_nothing_else() {
        // Files of this test's own: other tests of the process open files and get numbers that are
        // free.
        let folder = tempfile::tempdir().expect("a folder");
        let [own_file, reused_file, other_file] = ["own", "reused", "other"].map(|name| folder.path().join(name));
        let (own, reused, other) = (open(&own_file), open(&reused_file), open(&other_file));
        let (mut from, mut into) = pipe().expect("a pipe");
        into.write_all(b"all").expect("written");
        let (left, are_left) = mpsc::channel();
        let (goes_on, may_go_on) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let copied = keep_only(&[own, reused]);
                let has_own = copied.is_some();
                left.send(copied).expect("somebody waits");
                let _ = may_go_on.recv();
                if has_own {
                    assert!(is_readable(own) && is_readable(reused));
                    // Besides these, the folder itself and the three that stand for input and
                    // output.
                    assert_eq!(std::fs::read_dir("/proc/thread-self/fd").expect("the table").count(), 2 + 1 + 3);
                }
            });
            // Dropped where an assertion fails, so that the thread ends: it hung for ever once.
            let goes_on = goes_on;
            let Some(copied) = are_left.recv().expect("an answer") else {
                return clrscope_testkit::not_run("the system gives threads no table of their own");
            };
            // SAFETY: both are open here; the number is that of the other file now.
            assert_eq!(unsafe { libc::dup2(other, reused) }, reused);
            copied.into_iter().for_each(CopiedDescriptor::close);
            assert_ne!(file_of(own), Some(own_file), "ours is closed");
            assert_eq!(file_of(reused), Some(other_file), "the program's is not");
            drop(into);
            let mut text = String::new();
            from.read_to_string(&mut text).expect("nobody has the other end any more");
            assert_eq!(text, "all");
            goes_on.send(()).expect("it waits");
        });
    }

    fn open(file: &Path) -> RawFd {
        std::fs::write(file, "text").expect("a file");
        File::open(file).expect("a file").into_raw_fd()
    }

    fn is_readable(number: RawFd) -> bool {
        let mut byte = 0_u8;
        // SAFETY: one byte of this function's own.
        unsafe { libc::pread(number, (&raw mut byte).cast(), 1, 0) == 1 }
    }
}
