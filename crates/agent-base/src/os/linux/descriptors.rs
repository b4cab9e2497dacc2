//! File descriptors, and a descriptor table private to a thread.
//!
//! Programs close descriptors that are not theirs, for example all of them before they execute
//! another program, and then get the same numbers again. So a descriptor that a thread of the agent
//! reads all the time must not be in the program's table: the program would close it, and the agent
//! would later close a file that the program has opened since. The agent's descriptors do not
//! reduce the number that the program may have.

use std::os::fd::RawFd;
use std::path::PathBuf;

/// A descriptor that is open both in the process's table and in a thread's own table.
pub struct CopiedDescriptor {
    number: RawFd,
    /// File of the descriptor, as the system names it.
    file: PathBuf,
}

impl CopiedDescriptor {
    fn new(number: RawFd) -> Option<Self> {
        Some(Self { number, file: file_of(number)? })
    }

    /// Closes the descriptor in the calling thread's table, unless it was closed there before and
    /// its number now belongs to another file.
    pub fn close(self) {
        if file_of(self.number).is_some_and(|file| file == self.file) {
            // SAFETY: it is no longer used in this table.
            unsafe { libc::close(self.number) };
        }
    }
}

/// File of a descriptor in the calling thread's table.
fn file_of(number: RawFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/thread-self/fd/{number}")).ok()
}

/// Gives the calling thread a descriptor table of its own, with only the `kept` descriptors of the
/// process. So a file that the program closes is really closed. Returns the kept descriptors: a
/// thread with the process's table should close them there. `None` if the system can't do this
/// (Linux before 5.9, system call filters); then nothing has changed.
pub fn keep_only(kept: &[RawFd]) -> Option<Vec<CopiedDescriptor>> {
    let copied = kept.iter().filter_map(|&number| CopiedDescriptor::new(number)).collect();
    leave_table(kept).then_some(copied)
}

fn leave_table(kept: &[RawFd]) -> bool {
    let mut kept: Vec<libc::c_uint> = kept.iter().filter_map(|&number| number.try_into().ok()).collect();
    kept.sort_unstable();
    let behind = kept.last().map_or(0, |last| last + 1);
    // The system does not copy descriptors that the same call closes.
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

/// Occupies the numbers of standard input and output, so that no file gets one of them and receives
/// printed text.
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

    /// A thread with a table of its own can still read the kept descriptors. It does not keep a
    /// pipe open whose other end waits for the program to close it, and closes nothing of the
    /// program's. Kept descriptors are closed in the program's table if they are still the same
    /// files.
    #[test]
    fn a_thread_keeps_what_it_is_told_to_and_nothing_else() {
        // Files of this test's own, as other tests of the process open files and get free numbers.
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
                    // Besides these, the folder itself and the three standard descriptors.
                    assert_eq!(std::fs::read_dir("/proc/thread-self/fd").expect("the table").count(), 2 + 1 + 3);
                }
            });
            // Dropped if an assertion fails, so that the thread ends. It once hung for ever.
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
