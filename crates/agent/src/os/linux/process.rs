//! Processes as the system describes them in `/proc`.

use std::fs;
use std::path::PathBuf;

/// The words that this process was started with.
pub(crate) fn command_line() -> Vec<String> {
    let bytes = fs::read("/proc/self/cmdline").unwrap_or_default();
    let text = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    text.split(|&b| b == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The file that this process runs; empty where the system doesn't say.
pub(crate) fn executable() -> PathBuf {
    fs::read_link("/proc/self/exe").unwrap_or_default()
}

/// Mappings of this process: the list of what is mapped into this process, a line each; empty where the system doesn't say.
pub(crate) fn mappings() -> String {
    let bytes = fs::read("/proc/self/maps").unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Start of a process, in ticks since the machine's: with the id a unique name of the process.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may hold anything, brackets and spaces too.
    let fields = text.rsplit_once(") ")?.1;
    fields.split(' ').nth(19)?.parse().ok()
}
