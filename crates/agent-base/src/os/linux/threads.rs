//! Threads of this process.

use std::time::Duration;

/// The system's id of the calling thread. Async-signal-safe.
pub fn thread_id() -> u32 {
    // By number: the C library has a function for it since 2.30 only, and the agent is to load with
    // 2.17. SAFETY: gettid(2) takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// The system's name of a thread of this process; empty once the thread is gone. Allocates.
pub fn name_of(os_id: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/self/task/{os_id}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// Whether the system's name of the calling thread begins with `beginning`. Does not allocate.
pub fn own_name_starts_with(beginning: &[u8]) -> bool {
    let mut name = [0_u8; 16];
    // SAFETY: writes at most sixteen bytes (prctl(2)).
    let known = unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) } == 0;
    known && name.starts_with(beginning)
}

/// Ids of all threads of this process, in ascending order. Allocates.
pub fn all() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let mut all: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    all.sort_unstable();
    all
}

/// Whether a thread is in `all`, a list that [`all`] returned.
pub fn is_among(all: &[u32], os_id: u32) -> bool {
    all.binary_search(&os_id).is_ok()
}

/// Lets the calling thread sleep; a signal ends the sleep early. For hooks: async-signal-safe.
pub fn nap(time: Duration) {
    let time = libc::timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    // SAFETY: reads one timespec.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
}

/// Stack pointer of a thread that waits in the kernel, for example because the runtime has
/// suspended it. `None` if the thread runs.
pub fn stack_pointer(os_id: u32) -> Option<usize> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{os_id}/syscall")).ok()?;
    parse_stack_pointer(&text)
}

/// `number six-arguments stack-pointer instruction`, or `running`.
fn parse_stack_pointer(text: &str) -> Option<usize> {
    let word = text.split_ascii_whitespace().rev().nth(1)?;
    usize::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_pointers_are_read_from_the_system_s_words() {
        assert_eq!(parse_stack_pointer("202 0x1 0x2 0x0 0x0 0x0 0x0 0x7ffd10 0x7f00aa\n"), Some(0x7ffd10));
        assert_eq!(parse_stack_pointer("running\n"), None);
    }
}
