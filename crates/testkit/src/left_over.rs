//! Leftovers in a process of an agent that was attached.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Leftovers: what a process has open or mapped of recordings, and the names of the agent's threads in it; nothing where it has ended.
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
