//! What an attached agent has left in a process after it detached.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Kilobytes of written private memory of a process; 0 if the process has ended.
pub fn private_kilobytes(pid: u32) -> u64 {
    let memory = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let kilobytes = |name: &str| {
        let line = memory.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
    };
    kilobytes("Private_Dirty:") + kilobytes("Swap:")
}

/// Kilobytes of private memory of a process outside the range that the runtime reserves for its
/// managed heap: memory of the runtime and of libraries, and the C heap. 0 if the process has
/// ended. The managed heap is excluded because its size varies by a megabyte on its own.
pub fn unmanaged_kilobytes(pid: u32) -> u64 {
    /// Maximum total size of adjacent mappings that are counted. Larger ones are the range of the
    /// managed heap: 48 GiB on .NET 9, 256 GiB on 8 and 10.
    const RESERVED: u64 = 1 << 30;
    let memory = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default();
    let mut ranges: Vec<(u64, u64, u64)> = Vec::new();
    for line in memory.lines() {
        let mut words = line.split_whitespace();
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        if let Some((Some(start), Some(end))) = first.split_once('-').map(|(start, end)| (hex(start), hex(end))) {
            match ranges.last_mut() {
                Some(range) if range.1 == start => range.1 = end,
                _ => ranges.push((start, end, 0)),
            }
        } else if matches!(first, "Private_Dirty:" | "Swap:")
            && let Some(range) = ranges.last_mut()
        {
            range.2 += second.parse().unwrap_or(0);
        }
    }
    ranges.iter().filter(|(start, end, _)| end - start <= RESERVED).map(|(_, _, kilobytes)| kilobytes).sum()
}

/// Leftovers in a process: open or mapped files of recordings, and names of the agent's threads;
/// empty if the process has ended.
pub fn left_over(pid: u32) -> BTreeSet<String> {
    let process = Path::new("/proc").join(pid.to_string());
    let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
    let maps = maps.lines().filter(|line| line.contains(".clrs.d/")).map(str::to_owned).collect::<Vec<_>>();
    let entries = |name: &str| fs::read_dir(process.join(name)).into_iter().flatten().flatten();
    let links =
        entries("fd").filter_map(|entry| fs::read_link(entry.path()).ok()).map(|path| path.display().to_string());
    let names = entries("task").filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let of_agent = names.filter(|name| name.starts_with("clrscope"));
    links.filter(|link| link.contains(".clrs")).chain(maps).chain(of_agent).collect()
}
