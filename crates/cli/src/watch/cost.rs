//! What recording costs, and the budget for it.
//!
//! The CPU time of a program's recording is the time of the agent's threads in the program plus the
//! time of the process that writes the recordings, as the system counts them. It does not include
//! the time that callbacks, signal handlers and interrupts take on the program's own threads.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use clr_diagnostics::Process;
use clrscope_contract::request::parse_size;

/// Beginning of the names of the agent's threads.
const AGENT_THREADS: &str = "clrscope";
/// Least samples per second.
pub(super) const LEAST_RATE: u32 = 10;
/// Memory that a recording process is expected to take, while it writes a period.
const FOR_ONE: u64 = 16 << 20;

/// Limits on the cost of recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Budget {
    /// Maximum CPU time of each program's recording, and of the watch itself, as a fraction of one
    /// processor.
    pub(super) share: f64,
    /// Maximum memory in bytes of the watch and its recording processes together.
    pub(super) bytes: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { share: 0.02, bytes: 512 << 20 }
    }
}

impl Budget {
    /// Reads `2%`, `512MiB` or both.
    ///
    /// # Errors
    /// A sentence about the first text that is neither.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut budget = Self::default();
        for limit in text.split(',').map(str::trim) {
            let percent = limit.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
            match (percent, parse_size(limit)) {
                (Some(percent), _) if percent > 0.0 && percent <= 100.0 => budget.share = percent / 100.0,
                (None, Ok(bytes)) if bytes >= 2 * FOR_ONE && limit.ends_with(|c: char| c.is_ascii_alphabetic()) => {
                    budget.bytes = bytes;
                }
                _ => return Err(format!("'{limit}' is neither a percentage up to 100 % nor a size from 32MiB on")),
            }
        }
        Ok(budget)
    }

    /// Judges a recording that takes the fraction `share` of one processor, at `rate` samples per
    /// second; `None` if a lower rate would not help.
    pub(super) fn judge(self, share: f64, rate: Option<u32>) -> Verdict {
        let Some(rate) = rate.filter(|_| share > self.share) else {
            return if share > self.share { Verdict::TooMuch } else { Verdict::Kept };
        };
        if rate <= LEAST_RATE {
            return Verdict::TooMuch;
        }
        let fitting = (f64::from(rate) * self.share / share) as u32;
        Verdict::Lower(fitting.min(rate / 2).max(LEAST_RATE))
    }

    /// Whether there is room for one more recording process.
    pub(super) fn has_room(self, recording: impl Iterator<Item = u32>) -> bool {
        let recording: u64 = recording.map(|pid| memory_of(pid).max(FOR_ONE)).sum();
        self.bytes >= memory_of(std::process::id()) + recording + FOR_ONE
    }
}

/// What the budget decides about a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The recording goes on unchanged.
    Kept,
    /// The recording goes on at this lower number of samples per second.
    Lower(u32),
    /// The recording must end: it costs too much at any rate.
    TooMuch,
}

/// CPU time that the recording of a program took.
#[derive(Debug, Default)]
pub(super) struct Cost {
    /// Nanoseconds of each of the agent's threads, also of those that have ended.
    threads: HashMap<u32, u64>,
    /// Nanoseconds of recording processes that have ended.
    ended_ns: u64,
    /// Nanoseconds of the recording process that runs.
    writer_ns: u64,
    window: Option<(Instant, u64)>,
    /// CPU time in the last window, as a fraction of one processor.
    pub(super) share: Option<f64>,
}

impl Cost {
    /// CPU time in nanoseconds of the agent's threads.
    pub(super) fn agent_ns(&self) -> u64 {
        self.threads.values().sum()
    }

    /// CPU time in nanoseconds of the recording processes.
    pub(super) fn writer_ns(&self) -> u64 {
        self.ended_ns + self.writer_ns
    }

    /// Ends the window and begins the next, if the window is at least `length` long. Returns the
    /// CPU time of recording in it as a fraction of one processor; `None` if the window goes on.
    pub(super) fn over(&mut self, length: Duration, program: &Process, writer: u32) -> Option<f64> {
        if self.window.is_some_and(|(since, _)| since.elapsed() < length) {
            return None;
        }
        self.update(program, writer);
        let now = (Instant::now(), self.agent_ns() + self.writer_ns());
        let (since, before) = self.window.replace(now)?;
        let share = now.1.saturating_sub(before) as f64 / (now.0 - since).as_nanos() as f64;
        self.share = Some(share);
        Some(share)
    }

    /// Reads the CPU times from the system.
    pub(super) fn update(&mut self, program: &Process, writer: u32) {
        for (thread, time_ns) in agent_threads(program.pid()) {
            let known = self.threads.entry(thread).or_default();
            *known = time_ns.max(*known);
        }
        if let Ok(writer) = Process::open(writer) {
            self.writer_ns = self.writer_ns.max(writer.cpu_time().as_nanos() as u64);
        }
    }

    /// Notes that the recording process has ended. The next process begins a new window.
    pub(super) fn writer_ended(&mut self) {
        self.ended_ns += std::mem::take(&mut self.writer_ns);
        self.window = None;
    }
}

/// The agent's threads in a process, each with its CPU time in nanoseconds.
fn agent_threads(pid: u32) -> impl Iterator<Item = (u32, u64)> {
    // Threads without a name of their own have that of the program.
    let program = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(move |task| {
        let read = |name: &str| fs::read_to_string(task.path().join(name)).ok();
        let id = task.file_name().to_str()?.parse().ok()?;
        read("comm").filter(|name| name.starts_with(AGENT_THREADS) && *name != program)?;
        Some((id, read("schedstat")?.split(' ').next()?.parse().ok()?))
    })
}

/// Whether the system reports the CPU time of threads.
pub(super) fn are_threads_timed() -> bool {
    fs::read_to_string("/proc/self/schedstat").is_ok()
}

/// Private memory of a process, in bytes.
pub(super) fn memory_of(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// CPU time that the watch itself uses.
#[derive(Debug)]
pub(super) struct OwnCost {
    began: Instant,
    began_ns: u64,
    window: (Instant, u64),
    /// Pause between two looks.
    pub(super) pause: Duration,
    /// CPU time in the last window, as a fraction of one processor.
    pub(super) share: f64,
}

/// Usual pause between two looks.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Time over which the watch measures itself.
const WINDOW: Duration = Duration::from_secs(20);

impl OwnCost {
    pub(super) fn new() -> Self {
        let now = (Instant::now(), own_ns());
        Self { began: now.0, began_ns: now.1, window: now, pause: PAUSE, share: 0.0 }
    }

    /// CPU nanoseconds of the watch itself so far, and their average as a fraction of one
    /// processor.
    pub(super) fn so_far(&self) -> (u64, f64) {
        let took = own_ns();
        let of_loop = took.saturating_sub(self.began_ns) as f64;
        (took, of_loop / (self.began.elapsed().as_nanos() as f64).max(1.0))
    }

    /// Lengthens the pause between looks while the watch costs more than the budget. When that
    /// begins, returns the CPU time as a fraction of one processor.
    pub(super) fn keep(&mut self, budget: Budget) -> Option<f64> {
        if self.window.0.elapsed() < WINDOW {
            return None;
        }
        let now = (Instant::now(), own_ns());
        let (since, before) = std::mem::replace(&mut self.window, now);
        self.share = now.1.saturating_sub(before) as f64 / (now.0 - since).as_nanos() as f64;
        if self.share > budget.share && self.pause < LONGEST_PAUSE {
            let is_first = self.pause == PAUSE;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            return is_first.then_some(self.share);
        }
        if self.share < budget.share / 4.0 {
            self.pause = (self.pause / 2).max(PAUSE);
        }
        None
    }
}

/// CPU nanoseconds of this process, without those of recording processes.
fn own_ns() -> u64 {
    let own = Process::open(std::process::id());
    own.map_or(0, |process| process.cpu_time().as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_a_percentage_and_a_size() {
        assert_eq!(Budget::parse("2%,512MiB"), Ok(Budget::default()));
        assert_eq!(Budget::parse("0.5 %"), Ok(Budget { share: 0.005, ..Budget::default() }));
        assert_eq!(Budget::parse("1GiB"), Ok(Budget { bytes: 1 << 30, ..Budget::default() }));
        for bad in ["", "2", "0%", "101%", "-1%", "1MiB", "x", "2%,"] {
            assert!(Budget::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_costs_too_much_is_lowered_and_then_ended() {
        let budget = Budget::default();
        assert_eq!(budget.judge(0.019, Some(100)), Verdict::Kept);
        assert_eq!(budget.judge(0.021, Some(100)), Verdict::Lower(50));
        assert_eq!(budget.judge(0.08, Some(100)), Verdict::Lower(25));
        assert_eq!(budget.judge(0.9, Some(100)), Verdict::Lower(LEAST_RATE));
        assert_eq!(budget.judge(0.021, Some(LEAST_RATE)), Verdict::TooMuch);
        assert_eq!(budget.judge(0.021, None), Verdict::TooMuch);
        assert_eq!(budget.judge(0.001, None), Verdict::Kept);
    }

    #[test]
    fn threads_of_the_agent_are_known_by_their_name_and_timed() {
        let (stop, is_over) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().name("clrscope-drain".to_owned());
        let working = thread.spawn(move || while is_over.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {});
        let took = || agent_threads(std::process::id()).map(|(_, time_ns)| time_ns).sum::<u64>();
        let began = Instant::now();
        while took() < 50_000_000 && began.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        assert!(took() >= 50_000_000 && took() < began.elapsed().as_nanos() as u64 * 2);
        drop(stop);
        working.expect("a thread").join().expect("no panic");
        assert_eq!(took(), 0);
        assert!(are_threads_timed() && memory_of(std::process::id()) > 0);
    }
}
