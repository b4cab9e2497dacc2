//! The clock of a recording.

use std::sync::atomic::{AtomicI64, Ordering};

/// Value of [`OFFSET_NS`] before the offset is read.
const NOT_READ: i64 = i64::MIN;
/// Nanoseconds by which `CLOCK_MONOTONIC` of this process is ahead of the machine's.
static OFFSET_NS: AtomicI64 = AtomicI64::new(NOT_READ);

/// `CLOCK_MONOTONIC` of the machine in nanoseconds. Async-signal-safe.
///
/// A process in a time namespace reads a clock that is ahead of the machine's or behind it. The
/// launcher and the agents of one recording may be in different namespaces, and the kernel stamps
/// perf events without the offset (`time_namespaces(7)`; `perf_event_clock` in
/// kernel/events/core.c).
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    (now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64).wrapping_sub(offset_ns() as u64)
}

fn offset_ns() -> i64 {
    let known = OFFSET_NS.load(Ordering::Relaxed);
    if known != NOT_READ {
        return known;
    }
    let read = read_offset().unwrap_or(0);
    OFFSET_NS.store(read, Ordering::Relaxed);
    read
}

/// The first line of the process's list of offsets. Kernels without time namespaces have no such
/// file.
fn read_offset() -> Option<i64> {
    let mut text = [0_u8; 128];
    // SAFETY: a path that ends with a zero, a buffer of that length, and a descriptor that is
    // closed; none of these calls allocates, and what they do to `errno` is undone, as a signal
    // handler may come here first.
    let length = unsafe {
        let errno = *libc::__errno_location();
        let file = libc::open(c"/proc/self/timens_offsets".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = if file < 0 { -1 } else { libc::read(file, text.as_mut_ptr().cast(), text.len()) };
        if file >= 0 {
            libc::close(file);
        }
        *libc::__errno_location() = errno;
        length
    };
    parsed(text.get(..usize::try_from(length).ok()?)?)
}

/// Nanoseconds of a line `monotonic SECONDS NANOSECONDS`.
fn parsed(text: &[u8]) -> Option<i64> {
    let line = text.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    if words.next()? != b"monotonic" {
        return None;
    }
    let mut number = || std::str::from_utf8(words.next()?).ok()?.parse::<i64>().ok();
    let (seconds, nanoseconds) = (number()?, number()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_as_the_kernel_writes_them() {
        assert_eq!(parsed(b"monotonic     1000000         5\nboottime 0 0\n"), Some(1_000_000_000_000_005));
        assert_eq!(parsed(b"monotonic -7 0\nboottime -7 0\n"), Some(-7_000_000_000));
        assert_eq!(parsed(b"monotonic 9999999999999 0\n"), None);
        assert_eq!(parsed(b"boottime 1 0\n"), None);
        assert_eq!(parsed(b""), None);
    }

    #[test]
    fn the_clock_goes_on() {
        let first = monotonic_ns();
        assert!(first > 0 && monotonic_ns() >= first);
    }
}
