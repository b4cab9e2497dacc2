//! All programs of the host, and totals of what was recorded.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clr_diagnostics::Process;

use super::cost::{OwnCost, are_threads_timed};
use super::judge::Identity;
use super::looks::Looks;
use super::program::{Counts, Program, Rules, Step};
use super::recorder::Recorder;
use super::{WatchPlan, finish_left_over, folders_in};
use crate::errors::Failure;
use crate::periods::{Clock, Pushing, Scope, Watched};
use crate::terminal::say;

/// Longest wait for the recordings to end: an agent may need half a minute to leave, and a receiver
/// may not answer.
const FOR_ENDING: Duration = Duration::from_secs(100);
/// Pause between two looks meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Pause between two writes of the status where nothing happens.
const STATUS_EVERY: Duration = Duration::from_secs(5);
/// Pause between two looks at the folders where nothing is recorded.
const TIDY_EVERY: Duration = Duration::from_secs(60);
/// Part of the time that looking through the recordings may take.
const FOR_TIDYING: u32 = 20;

/// State of the watch for this host.
pub(super) struct Host {
    pub(super) plan: WatchPlan,
    pub(super) clock: Clock,
    looks: Looks,
    /// Programs that the user's patterns chose, by process id.
    pub(super) programs: BTreeMap<u32, Program>,
    /// .NET processes that were not chosen.
    others: HashMap<u32, Process>,
    /// Rates that the budget has lowered, by the program's name.
    rates: HashMap<String, u32>,
    pub(super) tally: Tally,
    pub(super) own: OwnCost,
    tidied: Instant,
    /// Time that the last look through the recordings took.
    tidying: Duration,
    /// When the status was written, and whether it has changed since.
    written: Option<Instant>,
    is_changed: bool,
    /// Recordings when they were looked through last.
    recordings: u64,
    /// Pushes what killed recorders have left.
    pushing: Option<Pushing>,
}

/// Totals of what was seen and recorded.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    /// Number of chosen programs that were recorded and have ended.
    pub(super) ended: u64,
    /// Number of chosen programs that ended before they could be recorded.
    pub(super) too_short: u64,
    /// Number of recordings that `--keep` deleted.
    pub(super) deleted: u64,
    /// Counts for programs that have ended.
    pub(super) counts: Counts,
    /// CPU nanoseconds of the agents in programs that have ended, and (next field) of the processes
    /// that recorded these programs.
    pub(super) agent_ns: u64,
    pub(super) writer_ns: u64,
}

impl Host {
    pub(super) fn new(plan: WatchPlan, pushing: Option<Pushing>) -> Self {
        if !are_threads_timed() {
            say("clrscope: this system does not report the CPU time of threads: agents do not count in --budget");
        }
        let now = Instant::now();
        Self {
            plan,
            clock: Clock::start(),
            looks: Looks::default(),
            programs: BTreeMap::new(),
            others: HashMap::new(),
            rates: HashMap::new(),
            tally: Tally::default(),
            own: OwnCost::new(),
            tidied: now,
            tidying: Duration::ZERO,
            written: None,
            is_changed: true,
            recordings: 0,
            pushing,
        }
    }

    /// Number of looks so far.
    pub(super) fn looks(&self) -> u64 {
        self.looks.number()
    }

    /// Looks at all programs. Returns the time until the next look.
    pub(super) fn look(&mut self) -> Duration {
        for process in self.looks.new_processes() {
            self.add(process);
        }
        self.others.retain(|pid, process| {
            let is_there = process.is_alive();
            if !is_there {
                self.looks.forget(*pid);
            }
            is_there
        });
        self.step_all(false);
        self.tidy();
        if let Some(share) = self.own.keep(self.plan.budget) {
            say(&format!(
                "clrscope: looking for programs took {:.1} % of a processor: scans are rarer from now on",
                share * 100.0
            ));
        }
        self.own.pause
    }

    /// Whether the status file must be written now. If so, the status counts as written.
    pub(super) fn take_status(&mut self) -> bool {
        let is_due = self.is_changed || self.written.is_none_or(|written| written.elapsed() >= STATUS_EVERY);
        if is_due {
            (self.written, self.is_changed) = (Some(Instant::now()), false);
        }
        is_due
    }

    fn add(&mut self, process: Process) {
        let identity = Identity::of(&process);
        match identity.is_chosen(&self.plan.programs, self.plan.trust_writable) {
            Ok(true) => {
                let rate = *self.rates.get(&identity.name()).unwrap_or(&self.plan.rate);
                self.programs.insert(process.pid(), Program::new(process, &identity, rate));
            }
            Ok(false) => drop(self.others.insert(process.pid(), process)),
            Err(why) => {
                say(&format!("clrscope: no program is chosen: {why}"));
                self.others.insert(process.pid(), process);
            }
        }
    }

    /// Looks at each program; at the end only at those that are recorded.
    fn step_all(&mut self, is_end: bool) {
        let has_room = self.plan.budget.has_room(self.programs.values().filter_map(Program::recorder_pid));
        let rules = Rules { plan: &self.plan, watched: Watched::by_this_process(self.clock), has_room, is_end };
        let mut ended = Vec::new();
        for (pid, program) in self.programs.iter_mut().filter(|(_, one)| !is_end || one.recorder_pid().is_some()) {
            let standing = |program: &Program| (program.counts, program.why_left().map(str::to_owned));
            let before = standing(program);
            if let Step::Ended(was_recorded) = program.look(&rules) {
                ended.push((*pid, was_recorded));
            }
            self.is_changed |= before != standing(program);
            if program.rate < self.plan.rate {
                self.rates.insert(program.name.clone(), program.rate);
            }
        }
        for (pid, was_recorded) in ended {
            self.remove(pid, was_recorded);
        }
    }

    fn remove(&mut self, pid: u32, was_recorded: bool) {
        let Some(program) = self.programs.remove(&pid) else { return };
        self.looks.forget(pid);
        let was_left = program.why_left().is_some();
        match was_recorded {
            true => self.tally.ended += 1,
            false if !was_left => self.tally.too_short += 1,
            false => {}
        }
        self.tally.counts.add(program.counts);
        self.tally.agent_ns += program.cost.agent_ns();
        self.tally.writer_ns += program.cost.writer_ns();
        self.is_changed = true;
    }

    /// Totals of what was recorded so far.
    pub(super) fn counts(&self) -> Counts {
        let mut all = self.tally.counts;
        self.programs.values().for_each(|program| all.add(program.counts));
        all
    }

    /// Deletes recordings that are beyond the limits; now and then also writes what killed
    /// processes have left, and removes empty folders.
    fn tidy(&mut self) {
        let since = self.tidied.elapsed();
        let is_long_ago = since >= TIDY_EVERY;
        let has_new = self.counts().recordings > self.recordings && since >= self.tidying * FOR_TIDYING;
        if !is_long_ago && !has_new {
            return;
        }
        self.tidied = Instant::now();
        self.recordings = self.counts().recordings;
        if is_long_ago {
            let used: BTreeSet<PathBuf> =
                self.programs.values().map(|program| program.folder(&self.plan.folder)).collect();
            for folder in folders_in(&self.plan.folder).filter(|folder| !used.contains(folder)) {
                finish_left_over(&folder, self.pushing.as_ref());
                // Only an empty folder can be removed.
                let _ = std::fs::remove_dir(folder);
            }
        }
        self.tally.deleted += self.plan.keep.apply(Scope::Below(&self.plan.folder), self.clock.now());
        self.tidying = self.tidied.elapsed();
    }

    /// Ends all recordings and waits for their end.
    pub(super) fn end(&mut self) {
        let began = Instant::now();
        self.programs.values_mut().filter_map(Program::recorder).for_each(Recorder::end);
        while self.recorded() > 0 && began.elapsed() < FOR_ENDING {
            thread::park_timeout(LOOK_EVERY);
            self.step_all(true);
        }
        self.tally.deleted += self.plan.keep.apply(Scope::Below(&self.plan.folder), self.clock.now());
    }

    /// Number of programs that are recorded now.
    fn recorded(&self) -> usize {
        self.programs.values().filter(|program| program.recorder_pid().is_some()).count()
    }

    /// Prints what was recorded.
    ///
    /// # Errors
    /// When some recordings have not ended in time.
    pub(super) fn conclude(&self) -> Result<(), Failure> {
        if !self.plan.quiet {
            say(&format!("clrscope: {}", self.in_words()));
        }
        match self.recorded() {
            0 => Ok(()),
            left => Err(Failure::new(
                format!("{left} recordings have not ended"),
                format!("their programs did not answer within {} s", FOR_ENDING.as_secs()),
                "they end with their programs, or when these resume",
            )),
        }
    }

    /// What was recorded, in a sentence.
    fn in_words(&self) -> String {
        let (counts, tally) = (self.counts(), &self.tally);
        let recorded = self.programs.values().filter(|program| program.counts.attached > 0).count() as u64;
        format!(
            "{} programs recorded, {} recordings written ({}), {} programs ended too soon",
            recorded + tally.ended,
            counts.recordings,
            clrscope_analysis::numbers::bytes(counts.bytes),
            tally.too_short
        )
    }
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.attached += other.attached;
        self.recordings += other.recordings;
        self.bytes += other.bytes;
    }
}
