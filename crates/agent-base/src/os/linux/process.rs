//! Processes as the system describes them in `/proc`.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

/// The words that this process was started with.
pub fn command_line() -> Vec<String> {
    let bytes = fs::read("/proc/self/cmdline").unwrap_or_default();
    let text = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    text.split(|&b| b == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The file that this process runs; empty where the system doesn't say.
pub fn executable() -> PathBuf {
    fs::read_link("/proc/self/exe").unwrap_or_default()
}

/// Mappings of this process: the list of what is mapped into this process, a line each; empty where the system doesn't say.
pub fn mappings() -> String {
    let bytes = fs::read("/proc/self/maps").unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Mappings of this process with what of each is in memory, as `/proc/PID/smaps` has them; empty
/// where the system doesn't say. Takes some milliseconds for each 100 MB, and other threads wait
/// meanwhile that change mappings.
pub fn resident_mappings() -> String {
    let bytes = fs::read("/proc/self/smaps").unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Bytes of this process that are in memory, now and at most so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resident {
    /// Now.
    pub bytes: u64,
    /// The most at a time since the process began, by the system's own count.
    pub most_bytes: u64,
}

/// Bytes of this process that are in memory; zeros where the system doesn't say.
pub fn resident() -> Resident {
    parse_resident(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn parse_resident(status: &str) -> Resident {
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    Resident { bytes: bytes("VmRSS:").unwrap_or(0), most_bytes: bytes("VmHWM:").unwrap_or(0) }
}

/// Threads of the machine that run or wait for a processor, for each processor; 1 where the system doesn't say.
pub fn runnable_per_processor() -> u32 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    runnable(&text).unwrap_or(1).div_ceil(processors()).max(1)
}

/// Processors that this process may use, by its affinity and its control group; 1 where the system doesn't say.
pub fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |processors| processors.get() as u32)
}

/// The fourth word of the list of loads is `runnable/all`.
fn runnable(loads: &str) -> Option<u32> {
    loads.split(' ').nth(3)?.split('/').next()?.parse().ok()
}

/// Start of a process, in ticks since the machine's: with the id a unique name of the process.
pub fn start_of(pid: u32) -> Option<u64> {
    field(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, 22)
}

/// Niceness of this process, -20 to 19; 0 where the system doesn't say.
pub fn niceness() -> i32 {
    fs::read_to_string("/proc/self/stat").ok().and_then(|status| field(&status, 19)).unwrap_or(0)
}

/// The field with this number, as the manual counts them from 1, of a process's status.
fn field<T: FromStr>(status: &str, number: usize) -> Option<T> {
    // The name, the second, may hold anything, brackets and spaces too.
    let after_name = status.rsplit_once(") ")?.1;
    after_name.split(' ').nth(number.checked_sub(3)?)?.parse().ok()
}

/// Times that threads of this process were taken off a processor so far. Takes longer the more threads there are.
pub fn thread_switches() -> Option<u64> {
    // SAFETY: zeroes are valid numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: fills in one record of numbers.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } != 0;
    (!failed).then(|| usage.ru_nvcsw.unsigned_abs() + usage.ru_nivcsw.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_status_stand_behind_a_name_of_any_kind() {
        let status = "7 (a) b (c) S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 -5 12 0 4711 9";
        assert_eq!((field::<i32>(status, 19), field::<u64>(status, 22)), (Some(-5), Some(4711)));
        assert_eq!((field::<u64>(status, 90), field::<u64>("", 3)), (None, None));
        assert!((-20..=19).contains(&niceness()) && start_of(std::process::id()).is_some());
    }

    #[test]
    fn resident_bytes_are_read_from_the_status() {
        let status = "Name:\tVmRSS:\nVmHWM:\t    2048 kB\nVmRSS:\t     512 kB\n";
        assert_eq!(parse_resident(status), Resident { bytes: 512 << 10, most_bytes: 2 << 20 });
        assert_eq!(parse_resident("VmRSS:\tmany kB\n"), Resident::default());
        assert!(resident().bytes > 0 && resident().most_bytes >= 1 << 20);
    }

    #[test]
    fn what_runs_is_the_fourth_of_the_loads() {
        assert_eq!(runnable("51.20 18.01 8.40 1203/4711 99\n"), Some(1203));
        assert_eq!((runnable(""), runnable("1 2 3 x/4")), (None, None));
        assert!(runnable_per_processor() >= 1);
    }
}
