//! The helper thread's work for `calls`: charges wall-clock and CPU time to each thread's current
//! edge.
//!
//! A thread's record gives the frame on top, and the frame gives the edge. Reading both costs the
//! thread nothing. A thread whose position and CPU clock did not change since the last sample is
//! sampled ever more rarely. When the CPU clock of the process shows that time is missing, all
//! threads are sampled.
//!
//! CPU time is charged where a sample finds a thread running. A thread that is not on a processor
//! is at a wait or, on a busy machine, mostly at a system call, where the scheduler preempts it. It
//! did not spend its CPU time there, so that time waits for a sample that finds the thread running.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use clrscope_agent_base::clock;
use clrscope_agent_base::helper::{Gains, Task};
use clrscope_agent_base::hooks;
use clrscope_agent_base::hooks::own;
use clrscope_recording::layout::thread;
use clrscope_recording::model::{LossReason, SampleSteps};
use clrscope_recording::writer::{ThreadRecord, TimeTable, monotonic_ns};

use super::calibrate::{Calibration, Constants};
use super::frames::{frame_at, words};
use super::hook_cost::CostExperiment;
use super::parts::PartGains;
use super::shared::Shared;
use super::slow::{stopped_top, top_of};
use super::stack_room;

/// Longest time between two samples of a thread that stands still.
const LONGEST_NS: u64 = 100_000_000;
/// Samples of all threads are at least this far apart, however much time is missing.
const ROUND_GAP_NS: u64 = 10_000_000;
/// With more threads than this even the process's CPU clock is expensive: the kernel adds up all
/// threads.
const MANY: usize = 256;
/// Time between two bursts of the calibration once it has its first numbers: bursts take a few
/// ten-thousandths of the time.
const CALIBRATION_GAP_NS: u64 = 100_000_000;

/// Time until the weight of samples is noted for the first time.
const STEPS_GAP_NS: u64 = 50_000_000;
/// Part of the run so far (one in so many) until the weight of samples is noted again. A program
/// may end without a final record, and the last samples of a run may weigh most. An hour has 200 of
/// these records.
const STEPS_PART: u64 = 16;

/// Least and most rounds of stopping. Threads that get no processor for longer are left to the
/// watch.
const STOP_ROUNDS: (u32, u32) = (10, 2_000);
/// Part of the time since the last sample (one in so many) that a running thread may be without a
/// processor: hypervisors and interrupts take some.
const AWAY: u64 = 16;
/// After this many samples with unplaced CPU time the time is charged although no sample found the
/// thread running: such a thread runs for less than a hundredth of the time.
const MOST_UNPLACED: u32 = 100;

/// No hook takes longer than this, unless it waits; then the thread is not runnable.
const HOOK_NS: u64 = 50_000;

/// One thread, as last seen.
struct WatchedThread {
    record: ThreadRecord,
    last_ns: u64,
    last_cpu_ns: u64,
    /// Time at which its CPU clock was read.
    read_ns: u64,
    edge: u64,
    due_ns: u64,
    pause_ns: u64,
    /// Whether the thread used the processor most of the time until the last sample.
    busy: bool,
    /// CPU time since a sample last found the thread running.
    unplaced: UnplacedTime,
}

/// CPU time whose place is not known yet.
#[derive(Debug, Clone, Copy, Default)]
struct UnplacedTime {
    ns: u64,
    /// Samples in which this time was found.
    samples: u32,
}

impl UnplacedTime {
    /// Adds what a sample found, and returns the CPU time to be charged now.
    fn add_sample(&mut self, found_ns: u64, is_at_work: bool) -> u64 {
        self.ns += found_ns;
        self.samples += u32::from(found_ns > 0);
        if is_at_work || self.samples >= MOST_UNPLACED { std::mem::take(self).ns } else { 0 }
    }
}

pub(super) struct Sampler {
    shared: &'static Shared,
    times: TimeTable,
    /// Whether this thread charges wall time; otherwise the hooks do.
    charges_wall: bool,
    interval_ns: u64,
    seen: usize,
    live: Vec<WatchedThread>,
    balance: Balance,
    ticks: u64,
    stop_rounds: u32,
    /// CPU time of each thread when it was first asked to stop.
    stopped_at_cpu: HashMap<u32, u64>,
    is_off: bool,
    calibration: Option<Calibration>,
    calibration_due_ns: u64,
    constants: Option<Constants>,
    /// Experiments on the cost of hooks, where nothing but `calls` uses them.
    experiment: Option<CostExperiment>,
    busy: Vec<ThreadRecord>,
    steps: Steps,
    gains: PartGains,
}

/// Weight of samples: sums of the times that samples charged, and of their squares.
#[derive(Default)]
struct Steps {
    wall: (f64, f64),
    cpu: (f64, f64),
    /// Time at which the weight is noted next, ever more rarely.
    due_ns: u64,
}

impl Steps {
    /// Adds a sample: the wall time that passed at an unknown place, and the CPU time that was
    /// charged. The later a sample, the more it weighs, so none comes too late to count.
    fn add(&mut self, wall_ns: u64, cpu_ns: u64) {
        for (sums, ns) in [(&mut self.wall, wall_ns as f64), (&mut self.cpu, cpu_ns as f64)] {
            *sums = (sums.0 + ns, sums.1 + ns * ns);
        }
    }

    fn means(&self) -> SampleSteps {
        let mean = |(sum, squares): (f64, f64)| if sum > 0.0 { (squares / sum) as u64 } else { 0 };
        SampleSteps { wall_ns: mean(self.wall), cpu_ns: mean(self.cpu) }
    }
}

/// Compares the CPU time of the process with what was charged.
#[derive(Default)]
struct Balance {
    process_ns: u64,
    charged_ns: u64,
    next_round_ns: u64,
}

impl Sampler {
    pub(super) fn new(shared: &'static Shared, times: TimeTable, charges_wall: bool, interval_ns: u64) -> Self {
        Self {
            shared,
            times,
            charges_wall,
            interval_ns,
            seen: 0,
            live: Vec::new(),
            balance: Balance::default(),
            ticks: 0,
            stop_rounds: 0,
            stopped_at_cpu: HashMap::new(),
            is_off: false,
            calibration: None,
            calibration_due_ns: 0,
            constants: None,
            experiment: None,
            busy: Vec::new(),
            steps: Steps::default(),
            gains: PartGains::new(shared.writer.gains()),
        }
    }

    /// Makes the sampler measure the cost of hooks in the program itself, too.
    pub(super) fn with_cost_experiment(self) -> Self {
        Self { experiment: Some(CostExperiment::new(self.shared, !self.charges_wall, monotonic_ns())), ..self }
    }

    fn meet_new_threads(&mut self) {
        while let Some(record) = self.shared.writer.threads().begun_at(&mut self.seen) {
            if record.u32(thread::ROOT).load(Ordering::Acquire) == 0 {
                // This thread is still beginning. Threads begin in order, except that the record of
                // a failed thread stays empty.
                if record.u32(thread::OS_ID).load(Ordering::Relaxed) == 0
                    && self.seen + 1 < self.shared.writer.threads().begun()
                {
                    self.seen += 1;
                    continue;
                }
                return;
            }
            self.seen += 1;
            let created = record.u64(thread::CREATED).load(Ordering::Relaxed);
            self.live.push(WatchedThread {
                record,
                last_ns: created,
                last_cpu_ns: 0,
                read_ns: created,
                edge: 0,
                due_ns: 0,
                pause_ns: self.interval_ns,
                busy: false,
                unplaced: UnplacedTime::default(),
            });
        }
    }

    fn look_at_all(&mut self, now: u64, forced: bool) {
        let mut at = 0;
        while at < self.live.len() {
            if !forced && self.live[at].due_ns > now {
                at += 1;
            } else if self.sample(at, now) {
                self.live.swap_remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Samples one thread; returns whether it has ended.
    fn sample(&mut self, at: usize, now: u64) -> bool {
        let watched = &mut self.live[at];
        let record = watched.record;
        let ended = record.u64(thread::ENDED).load(Ordering::Acquire);
        if let Some(top) = top_of(record) {
            stack_room::look_at(record, top);
        }
        let os_id = record.u32(thread::OS_ID).load(Ordering::Relaxed);
        let cpu = if ended != 0 {
            Some(record.u64(thread::CPU).load(Ordering::Relaxed))
        } else {
            clock::thread_cpu_ns(os_id)
        };
        let read_ns = monotonic_ns();
        // A frame of an ended thread may belong to another thread by now.
        let edge = if ended != 0 { watched.edge } else { position(record) };
        let cpu_ns = cpu.unwrap_or(watched.last_cpu_ns).max(watched.last_cpu_ns);
        let until = if ended != 0 { ended } else { now };
        let (wall_delta, cpu_delta) = (until.saturating_sub(watched.last_ns), cpu_ns - watched.last_cpu_ns);
        let still = edge == watched.edge && cpu_delta == 0;
        let stood_at = watched.edge;
        let had_rested = watched.pause_ns > self.interval_ns;
        watched.pause_ns = if still { (watched.pause_ns * 2).min(LONGEST_NS) } else { self.interval_ns };
        (watched.last_ns, watched.last_cpu_ns, watched.edge) = (until.max(watched.last_ns), cpu_ns, edge);
        watched.busy = cpu_delta * 2 > wall_delta;
        let since = read_ns.saturating_sub(std::mem::replace(&mut watched.read_ns, read_ns));
        let is_running = || clock::thread_cpu_ns(os_id).is_some_and(|later_ns| later_ns > cpu_ns);
        let is_at_work = cpu_delta > 0 && (cpu_delta >= since - since / AWAY || is_running());
        let placed = watched.unplaced.add_sample(cpu_delta, ended != 0 || is_at_work);
        watched.due_ns = now + watched.pause_ns;
        record.u64(thread::CPU).store(cpu_ns, Ordering::Relaxed);
        record.u32(thread::CPU_KNOWN).store(1, Ordering::Relaxed);
        self.balance.charged_ns += cpu_delta;
        let stood = if edge == stood_at || stood_at == 0 { 0 } else { self.stood_ns(wall_delta, cpu_delta) };
        // A thread that did no work was at its position all the time, or for most of it where the
        // pause had grown long.
        let unsure = match (cpu_delta, had_rested) {
            (0, _) => 0,
            (_, true) => wall_delta.min(cpu_delta + self.interval_ns),
            (_, false) => wall_delta,
        };
        self.steps.add(unsure, placed);
        self.charge(record, stood_at, stood, 0);
        self.charge(record, edge, wall_delta - stood, placed);
        ended != 0
    }

    /// Time that a thread, which has moved since the last sample, stood at its previous position.
    /// Where the pause had grown long, this is the whole pause except the time in which the thread
    /// ran: at most its CPU time plus the usual interval.
    fn stood_ns(&self, wall_delta: u64, cpu_delta: u64) -> u64 {
        let stood = wall_delta.saturating_sub(cpu_delta + self.interval_ns);
        if stood > self.interval_ns { stood } else { 0 }
    }

    /// Charges all unplaced CPU time to the threads' current positions.
    fn place_all(&mut self) {
        for at in 0..self.live.len() {
            let watched = &mut self.live[at];
            let (record, edge, UnplacedTime { ns, .. }) =
                (watched.record, watched.edge, std::mem::take(&mut watched.unplaced));
            self.steps.add(0, ns);
            self.charge(record, edge, 0, ns);
        }
    }

    fn charge(&mut self, record: ThreadRecord, edge: u64, wall: u64, cpu: u64) {
        let wall = if self.charges_wall { wall } else { 0 };
        if wall == 0 && cpu == 0 {
            return;
        }
        let edge = match edge {
            0 => self.shared.edge(record.u32(thread::ROOT).load(Ordering::Relaxed), 0),
            edge => std::ptr::with_exposed_provenance_mut(edge as usize),
        };
        if !self.times.charge(self.shared.edge_id(edge), wall, cpu) {
            self.shared.writer.state().lose(LossReason::TimesFull, 1, monotonic_ns());
        }
    }

    /// Samples all threads when the process used more CPU time than was charged.
    fn check_balance(&mut self, now: u64) {
        if self.live.len() > MANY && !self.ticks.is_multiple_of(8) {
            return;
        }
        let Some(process_ns) = clock::process_cpu_ns() else { return };
        let missing = process_ns.saturating_sub(self.balance.process_ns).saturating_sub(self.balance.charged_ns);
        if missing > self.interval_ns / 2 && now >= self.balance.next_round_ns {
            self.look_at_all(now, true);
            let cost = monotonic_ns().saturating_sub(now);
            self.balance =
                Balance { process_ns, charged_ns: 0, next_round_ns: now + ROUND_GAP_NS.max(cost.saturating_mul(50)) };
        }
    }

    /// Measures the cost of hooks, in bursts of microseconds.
    fn calibrate(&mut self, now: u64) {
        if now < self.calibration_due_ns {
            return;
        }
        let has_clock = !self.charges_wall;
        let calibration = self.calibration.get_or_insert_with(|| Calibration::new(has_clock, now));
        if let Some(cost) = calibration.burst(now, self.shared.arena.used()) {
            self.shared.writer.hook_cost(&cost);
        }
        self.constants = calibration.constants(now);
        // The first bursts come closer together, so that a short run has more than one.
        let so_far = now.saturating_sub(calibration.began_ns);
        self.calibration_due_ns = now + CALIBRATION_GAP_NS.min(so_far / 8);
    }

    /// Measures the cost of hooks for one of the threads that are running now.
    fn experiment(&mut self, now: u64) {
        let (Some(experiment), Some(constants)) = (&mut self.experiment, &self.constants) else { return };
        self.busy.clear();
        self.busy.extend(self.live.iter().filter(|watched| watched.busy).map(|watched| watched.record));
        if let Some(cost) = experiment.visit(now, &self.busy, constants) {
            self.shared.writer.pair_cost(&cost);
        }
    }

    fn keep_arena_ahead(&mut self) {
        // A refusal is counted where a path finds no memory.
        let _ = self.shared.arena.keep_ahead();
    }

    fn report_lost_carries(&self, now: u64) {
        let lost = self.shared.lost_carries.swap(0, Ordering::Relaxed);
        if lost > 0 {
            self.shared.writer.state().lose(LossReason::DictionaryFull, lost, now);
        }
    }
}

impl Task for Sampler {
    fn tick(&mut self, now: u64) {
        self.ticks += 1;
        self.keep_arena_ahead();
        self.meet_new_threads();
        self.look_at_all(now, false);
        self.check_balance(now);
        self.experiment(now);
    }

    fn slow_tick(&mut self, now: u64) {
        self.report_lost_carries(now);
        self.calibrate(now);
        if now >= self.steps.due_ns {
            let begun = self.calibration.as_ref().map_or(now, |calibration| calibration.began_ns);
            self.steps.due_ns = now + (now.saturating_sub(begun) / STEPS_PART).max(STEPS_GAP_NS);
            self.shared.writer.sample_steps(&self.steps.means());
        }
    }

    fn end(&mut self) {
        self.place_all();
    }

    fn write_out(&mut self) {
        // This is tried again at the next round.
        let _ = self.shared.arena.segment().write_out();
        let _ = self.times.segment().write_out();
        self.gains.write_out();
    }

    fn stop(&mut self) -> bool {
        self.place_all();
        hooks::stopped_flag().store(1, Ordering::SeqCst);
        let mut all_off = true;
        for index in 0..self.shared.writer.threads().len() {
            if let Some(record) = self.shared.writer.threads().record(index) {
                let before = record.u64(own::TOP).swap(stopped_top(), Ordering::SeqCst);
                all_off &= self.is_off || before == stopped_top() && self.has_moved_on(record);
            }
        }
        self.stop_rounds += 1;
        self.is_off |= self.stop_rounds > STOP_ROUNDS.0 && all_off || self.stop_rounds > STOP_ROUNDS.1;
        self.is_off
    }

    fn gains(&mut self) -> Gains {
        self.gains.step(self.shared, &self.times)
    }

    fn begin_period(&mut self) {
        self.gains.begin_period();
    }

    fn has_gains(&self) -> bool {
        true
    }

    /// Every thread starts at the root of its tree, and nothing is charged for the time in between.
    fn start_again(&mut self, now: u64) {
        (self.stop_rounds, self.is_off) = (0, false);
        self.stopped_at_cpu.clear();
        for index in 0..self.shared.writer.threads().len() {
            let Some(record) = self.shared.writer.threads().record(index) else { continue };
            if record.u32(thread::ROOT).load(Ordering::Acquire) != 0
                && record.u64(thread::ENDED).load(Ordering::Acquire) == 0
            {
                record.u64(own::LAST_TICKS).store(clock::ticks(), Ordering::Relaxed);
                let frames = record.u64(own::FRAMES).load(Ordering::Relaxed);
                record.u64(own::TOP).store(frames, Ordering::SeqCst);
            }
        }
        for watched in &mut self.live {
            let cpu_ns = clock::thread_cpu_ns(watched.record.u32(thread::OS_ID).load(Ordering::Relaxed));
            let last_cpu_ns = cpu_ns.unwrap_or(watched.last_cpu_ns);
            *watched = WatchedThread {
                last_ns: now,
                last_cpu_ns,
                read_ns: now,
                edge: 0,
                due_ns: 0,
                pause_ns: self.interval_ns,
                busy: false,
                unplaced: UnplacedTime::default(),
                ..*watched
            };
        }
        let process_ns = clock::process_cpu_ns().unwrap_or(self.balance.process_ns);
        self.balance = Balance { process_ns, ..Balance::default() };
    }
}

impl Sampler {
    /// Whether the thread has left the hook, if any, that it was running when the recording ended.
    /// Such a hook still stores the top that it had computed, and the thread would record again. On
    /// a busy machine the thread may stay preempted in the hook for a long time.
    fn has_moved_on(&mut self, record: ThreadRecord) -> bool {
        let os_id = record.u32(thread::OS_ID).load(Ordering::Relaxed);
        if os_id == 0 || record.u64(thread::ENDED).load(Ordering::Acquire) != 0 {
            return true;
        }
        let Some(now) = clock::thread_cpu_ns(os_id) else { return true };
        let began = *self.stopped_at_cpu.entry(os_id).or_insert(now);
        now > began + HOOK_NS || !clock::is_runnable(os_id)
    }
}

/// The thread's current edge.
fn position(record: ThreadRecord) -> u64 {
    let top = frame_at(record.u64(own::TOP).load(Ordering::Acquire));
    // SAFETY: the top of a thread that has not ended points into its shadow stack, or to the frame
    // of stopped threads.
    let (_, word) = unsafe { words(top) };
    word.load(Ordering::Relaxed) as u64 & !3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_that_comes_very_late_weighs_as_much_as_it_charged() {
        let mut steps = Steps::default();
        (0..100).for_each(|_| steps.add(1_000_000, 1_000_000));
        assert_eq!(steps.means(), SampleSteps { wall_ns: 1_000_000, cpu_ns: 1_000_000 });
        // On a busy machine the helper thread gets no processor for half a second, and the program
        // a fifth of one.
        steps.add(500_000_000, 100_000_000);
        let ms = |ns: u64| ns / 1_000_000;
        assert_eq!(
            (ms(steps.means().wall_ns), ms(steps.means().cpu_ns)),
            ((100 + 250_000) / 600, (100 + 10_000) / 200)
        );
    }

    #[test]
    fn cpu_time_waits_for_a_sample_that_finds_the_thread_at_work() {
        let mut unplaced = UnplacedTime::default();
        assert_eq!(
            [unplaced.add_sample(300, false), unplaced.add_sample(0, false), unplaced.add_sample(200, true)],
            [0, 0, 500]
        );
        assert_eq!(unplaced.add_sample(0, true), 0);
        // A thread that is never found running is charged its time all the same.
        let found: Vec<u64> =
            (0..2 * MOST_UNPLACED).map(|_| unplaced.add_sample(1, false)).filter(|&ns| ns > 0).collect();
        assert_eq!(found, [u64::from(MOST_UNPLACED); 2]);
    }
}
