//! Looks for the .NET processes of the host again and again. Most processes do not run .NET and
//! never will, so these are checked only now and then.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

use clr_diagnostics::Process;

/// Time in which a new process is looked at each time: a program takes a moment to start its
/// runtime, and a shell to become a program.
const YOUNG: Duration = Duration::from_secs(5);
/// An older process is looked at once in so many looks.
const OLD_EVERY: u64 = 10;

/// What all looks have seen so far.
#[derive(Debug, Default)]
pub(super) struct Looks {
    known: HashMap<u32, Known>,
    number: u64,
}

/// A process that was seen.
#[derive(Debug)]
struct Known {
    since: Instant,
    /// Start of the process, where it runs .NET and was returned.
    returned: Option<u64>,
}

impl Looks {
    /// Number of looks so far.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The .NET processes that were not returned by an earlier call.
    pub(super) fn new_processes(&mut self) -> Vec<Process> {
        self.number += 1;
        let pids = pids();
        self.known.retain(|pid, _| pids.contains(pid));
        let mut found: Vec<Process> = pids.into_iter().filter_map(|pid| self.look_at(pid)).collect();
        found.sort_by_key(Process::pid);
        found
    }

    /// Forgets a process id: a process that has it from now on is a new process.
    pub(super) fn forget(&mut self, pid: u32) {
        self.known.remove(&pid);
    }

    fn look_at(&mut self, pid: u32) -> Option<Process> {
        let number = self.number;
        let known = self.known.entry(pid).or_insert_with(|| Known { since: Instant::now(), returned: None });
        let is_turn = (u64::from(pid) + number).is_multiple_of(OLD_EVERY);
        let is_young = known.returned.is_none() && known.since.elapsed() < YOUNG;
        if !is_turn && !is_young {
            return None;
        }
        let process = Process::open(pid).ok()?;
        if known.returned == Some(process.started()) || !process.is_dotnet() {
            return None;
        }
        known.returned = Some(process.started());
        Some(process)
    }
}

fn pids() -> HashSet<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}
