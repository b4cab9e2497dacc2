//! The thread that takes samples from the engine, finds their frames, and records them.

use std::time::Duration;

use clr_profiler::OwnThread;
use clrscope_agent_base::os::clock::{own_cpu_ns, process_cpu_ns};
use clrscope_agent_base::os::{descriptors, process, threads};
use clrscope_recording::model::{Activity, LossReason, Sample, Sampler as SamplerRecord, ThreadState};
use clrscope_recording::writer::monotonic_ns;

use super::engine::{Engine, EngineChoice, EngineRequest};
use super::frames::{FoundStack, Frames};
use super::kernel_time::KernelTime;
use super::known_threads::KnownThreads;
use super::os::perf::kernel_start;
use super::os::task::sample_here;
use super::output::Output;
use super::poll::Poll;
use super::raw::RawSample;
use super::runtime_work::Spans;
use super::switches::Switches;
use super::targets::is_own;
use super::walked::FrameMarks;
use super::{Sampler, State, lock};
use crate::code::CodeMap;

/// Pause between two rounds, unless threads have to be looked at more often.
const PAUSE: Duration = Duration::from_millis(10);
/// Least time between two times at which samples are taken from the engine.
const DRAIN_NS: u64 = 5_000_000;
/// Pause between two checks which threads exist: where new threads need work, and where the check
/// only finds ended ones.
const THREADS_NS: u64 = 50_000_000;
const ENDED_NS: u64 = 250_000_000;
/// Pause until the next check of the threads, as a multiple of the check's duration, and the
/// longest pause.
const BETWEEN_LOOKS: u64 = 200;
const LONGEST_NS: u64 = 1_000_000_000;
/// Pause between two checks of handlers and mappings.
const CHECK_NS: u64 = 1_000_000_000;

/// The state of the draining thread.
pub(super) struct Drain {
    sampler: &'static Sampler,
    engine: Engine,
    choice: EngineChoice,
    frames: Frames,
    threads: KnownThreads,
    raw: RawSample,
    /// Recent work of the runtime.
    work: Spans,
    cpu: Option<Output>,
    wall: Option<(Output, Poll)>,
    /// Time in the kernel, if perf events don't sample it.
    kernel_time: Option<KernelTime>,
    switches: Switches,
    next_threads_ns: u64,
    next_drain_ns: u64,
    next_check_ns: u64,
    /// Whether sampling was given up because other code has taken the signal.
    has_given_up: bool,
    #[cfg(feature = "stops-on-demand")]
    stops: Option<super::stops::Stops>,
}

impl Drain {
    pub(super) fn new(sampler: &'static Sampler, engine: Engine, choice: EngineChoice, map: CodeMap) -> Self {
        let frames = Frames::new(sampler, map);
        let cpu = sampler.cpu.get().map(|wanted| Output::new(sampler.writer, &wanted.store));
        let wall = sampler.wall.get().map(|wanted| {
            (Output::new(sampler.writer, &wanted.store), Poll::new(wanted.interval_ns, sampler.start_ns))
        });
        let unseen = matches!(engine, Engine::Perf(_)) && !choice.kernel;
        let interval_ns = choice.interval_ns;
        let kernel_time = unseen.then(|| KernelTime::new(interval_ns, threads::thread_id(), &threads::all()));
        let mut drain = Self {
            kernel_time,
            sampler,
            engine,
            choice,
            frames,
            threads: KnownThreads::new(sampler.writer),
            raw: RawSample::default(),
            work: Spans::default(),
            cpu,
            wall,
            switches: Switches::default(),
            next_threads_ns: 0,
            next_drain_ns: 0,
            next_check_ns: 0,
            has_given_up: false,
            #[cfg(feature = "stops-on-demand")]
            stops: super::stops::Stops::asked_for(),
        };
        drain.tell(false);
        drain.copy_objects();
        drain
    }

    /// Makes signal handlers copy the objects that lead to a method's awaiters.
    fn copy_objects(&mut self) {
        if let Engine::Timers(shared) = &self.engine {
            self.frames.copy_objects(&shared.objects);
        }
    }

    /// Runs until the thread is told to end.
    pub(super) fn run(&mut self, thread: &OwnThread) {
        self.leave_table_of_descriptors();
        if self.choice.kernel {
            self.frames.kernel_start = kernel_start();
        }
        self.sampler.meet_runtime_threads();
        if let Some(sample) = sample_here() {
            self.frames.update();
            self.frames.learn_start_of_threads(&sample);
        }
        let pause = self.wall.as_ref().map_or(PAUSE, |(_, poll)| PAUSE.min(poll.interval()));
        loop {
            match self.sampler.state() {
                State::On => self.round(),
                State::Stopping => self.stop(),
                State::Off => {}
                State::Ended => return,
            }
            if !thread.sleep(pause) {
                break;
            }
            if self.sampler.state() == State::On && self.is_off() {
                self.start_again();
            }
        }
        self.stop();
        self.sampler.set_state(State::Ended);
    }

    /// Gives this thread a descriptor table separate from the program's, where the system can.
    fn leave_table_of_descriptors(&self) {
        let mut own = self.engine.descriptors();
        own.extend(self.kernel_time.iter().flat_map(KernelTime::descriptors));
        lock(&self.sampler.left_open).extend(descriptors::keep_only(&own).into_iter().flatten());
    }

    fn round(&mut self) {
        let now = monotonic_ns();
        self.frames.update();
        self.frames.map.awaiters().look_up_wanted();
        self.look_at_waits(now);
        #[cfg(feature = "stops-on-demand")]
        if let Some(stops) = &mut self.stops {
            stops.round(&self.sampler.info, &mut self.frames);
        }
        if now < self.next_drain_ns {
            return;
        }
        self.next_drain_ns = now + DRAIN_NS;
        let type_loads = self.sampler.type_loads.take_samples(self.frames.knows_type_loads());
        type_loads.iter().for_each(|sample| self.frames.learn_type_load(sample));
        if now >= self.next_threads_ns {
            let began = own_cpu_ns().unwrap_or(0);
            self.update_threads();
            // With thousands of threads a check takes milliseconds.
            let took_ns = own_cpu_ns().unwrap_or(0).saturating_sub(began);
            let least_ns = if self.meets_threads() { THREADS_NS } else { ENDED_NS };
            self.next_threads_ns = now + (BETWEEN_LOOKS * took_ns).clamp(least_ns, LONGEST_NS);
        } else if let Some(targets) = self.sampler.targets.get() {
            lock(targets).look_at_few();
        }
        self.drain();
        if matches!(self.engine, Engine::Timers(_)) && !self.has_given_up && !super::os::signal::is_ours() {
            self.give_up(now);
        }
        if now >= self.next_check_ns {
            self.next_check_ns = now + CHECK_NS;
            self.check(now);
        }
    }

    /// Looks at threads that wait, before anything else in a round. If there are no more processors
    /// than busy threads, this thread displaces one of them, and a thread with a short wait would
    /// already be ready to run after any longer work here.
    fn look_at_waits(&mut self, now: u64) {
        let Some((output, poll)) = &mut self.wall else { return };
        self.sampler.work.copy_into(&mut self.work);
        poll.round(now, output, &mut self.frames, &self.work);
    }

    /// Whether each new thread needs work here. With perf events, new threads have inherited the
    /// events.
    fn meets_threads(&self) -> bool {
        matches!(self.engine, Engine::Timers(_)) || self.kernel_time.is_some() || self.wall.is_some()
    }

    /// Checks which threads exist.
    fn update_threads(&mut self) {
        let alive = threads::all();
        if alive.is_empty() {
            return;
        }
        if let Engine::Timers(shared) = &self.engine {
            shared.took_over.set(self.frames.map.code_that_took_over());
        }
        if let Some(targets) = self.sampler.targets.get() {
            let mut targets = lock(targets);
            targets.update(&alive, is_own);
            let refused = targets.take_refused();
            if refused > 0 {
                self.sampler.writer.state().lose(LossReason::ThreadUnsampled, refused, monotonic_ns());
            }
        }
        self.fill_in_kernel(&alive, false);
        self.threads.update(&alive);
        if let Some((output, poll)) = &mut self.wall {
            poll.meet(&alive, output, &mut self.frames, &mut self.threads, &self.work);
        }
    }

    /// Records the time in the kernel that could not be sampled.
    fn fill_in_kernel(&mut self, alive: &[u32], is_last: bool) {
        let Self { kernel_time, frames, threads, cpu, wall, sampler, choice, .. } = self;
        let Some(kernel_time) = kernel_time else { return };
        let time_ns = monotonic_ns().saturating_sub(sampler.start_ns);
        kernel_time.update(alive, is_last, |os_id, weight_ns| {
            let thread = threads.with_id(os_id);
            if thread.is_own {
                return;
            }
            let stack = frames.stack_of_sample(&RawSample { in_kernel: true, ..RawSample::default() });
            let record = Sample {
                time_ns: time_ns.saturating_sub(weight_ns),
                weight_ns,
                thread: thread.serial(),
                stack: stack.number,
                count: (weight_ns / choice.interval_ns.max(1)).max(1) as u32,
                state: ThreadState::Running,
                kernel: true,
                ..Sample::default()
            };
            if let Some(output) = cpu {
                output.write(&record);
            }
            if let Some((output, poll)) = wall {
                poll.ran(os_id, &record, stack, output);
            }
        });
    }

    /// Checks what other code may have changed.
    fn check(&mut self, _now: u64) {
        self.change_engine_if_dear();
        self.tell(false);
    }

    /// Switches to timers where perf events cost more than the samples are worth, unless perf
    /// events were explicitly requested.
    fn change_engine_if_dear(&mut self) {
        let cpu = self.sampler.cpu.get();
        let is_choice = cpu.is_none_or(|wanted| wanted.engine == EngineRequest::Auto);
        if !is_choice || !matches!(self.engine, Engine::Perf(_)) {
            return;
        }
        let (Some(switches), Some(cpu_ns)) = (process::thread_switches(), process_cpu_ns()) else { return };
        let Some(a_second) = self.switches.look(switches, cpu_ns) else { return };
        let why = format!(
            "began with perf events, and changed to timers: with {a_second} thread switches a second of CPU time, perf \
             events take several percent; engine=perf keeps them"
        );
        let kernel = cpu.is_none_or(|wanted| wanted.kernel);
        let Some((engine, choice)) = Engine::change_to_timers(&self.choice, kernel, why) else { return };
        self.engine.enable(false);
        self.drain();
        let sampler = self.sampler;
        (self.engine, self.choice, self.kernel_time) = (engine, choice, None);
        sampler.prepare(&self.engine);
        self.copy_objects();
        self.engine.enable(true);
        self.next_threads_ns = 0;
    }

    /// Gives up, since other code handles the signal now and would take timer signals for the
    /// program's own.
    fn give_up(&mut self, now: u64) {
        self.has_given_up = true;
        self.engine.enable(false);
        if let Some(targets) = self.sampler.targets.get() {
            lock(targets).give_up();
        }
        let text = "the program has installed its own handler for the sampling signal: sampling stops here";
        self.sampler.writer.note(now, text);
    }

    fn drain(&mut self) {
        let Self { engine, raw, work, frames, threads, cpu, wall, sampler, kernel_time, .. } = self;
        sampler.work.copy_into(work);
        let by_signal = matches!(engine, Engine::Timers(_));
        let (lost_in_kernel, lost) = engine.drain(raw, |sample| {
            if by_signal {
                sample.in_kernel = frames.follows_system_call(sample);
                if let Some(targets) = sampler.targets.get().filter(|_| sample.frames.is_empty()) {
                    lock(targets).find_stack(sample.os_id, sample.registers.sp);
                }
            }
            let thread = threads.with_id(sample.os_id);
            // The place of a profiler thread within the profiler is of no interest.
            let found = if thread.is_own {
                FoundStack { is_complete: true, ..frames.of_leaf(sample) }
            } else {
                frames.of_running(sample)
            };
            let record = Sample {
                time_ns: sample.time_ns.saturating_sub(sampler.start_ns),
                weight_ns: sample.weight_ns,
                thread: thread.serial(),
                stack: found.number,
                count: 1,
                state: ThreadState::Running,
                activity: match found.touched {
                    FrameMarks { compiler: true, .. } => Activity::Jit,
                    FrameMarks { collector: true, .. } => Activity::Gc,
                    FrameMarks { type_load, .. } => match work.activity(sample.os_id, sample.time_ns) {
                        Activity::None if type_load => Activity::TypeLoading,
                        other => other,
                    },
                },
                complete: found.is_complete,
                guessed: found.touched.guessed,
                inlining: found.touched.inlining,
                kernel: sample.in_kernel,
                profiler: thread.is_own || found.touched.agent,
            };
            if let Some(kernel_time) = kernel_time {
                kernel_time.sampled(sample.os_id, sample.weight_ns);
            }
            if let Some(output) = cpu {
                output.write(&record);
            }
            if let Some((output, poll)) = wall {
                poll.ran(sample.os_id, &record, found, output);
            }
        });
        if let Engine::Timers(shared) = engine
            && frames.map.takes_over_anew()
        {
            shared.took_over.set(frames.map.code_that_took_over());
        }
        for (reason, count) in [(LossReason::PerfLost, lost_in_kernel), (LossReason::SampleRingFull, lost)] {
            if count > 0 {
                sampler.writer.state().lose(reason, count, monotonic_ns());
            }
        }
    }

    fn is_off(&self) -> bool {
        self.next_threads_ns == u64::MAX
    }

    /// Stops the engine, and records the samples that it has taken.
    fn stop(&mut self) {
        if !self.is_off() {
            self.engine.enable(false);
            if let Some(targets) = self.sampler.targets.get() {
                lock(targets).clear();
            }
            self.engine.let_go();
            self.frames.update();
            self.drain();
            self.fill_in_kernel(&threads::all(), true);
            if let Some((output, poll)) = &mut self.wall {
                poll.finish(output);
            }
            #[cfg(feature = "stops-on-demand")]
            self.stops.iter().for_each(super::stops::Stops::finish);
            self.tell(true);
            self.next_threads_ns = u64::MAX;
        }
        self.sampler.change_state(State::Stopping, State::Off);
    }

    fn start_again(&mut self) {
        self.next_threads_ns = 0;
        self.copy_objects();
        self.engine.enable(true);
    }

    /// Notes how samples are taken. `at_end`: also the actual interval.
    fn tell(&self, at_end: bool) {
        let record = |instrument: &str, interval_ns: u64, output: &Output| {
            let reached_ns = if at_end { output.sum_ns.checked_div(output.count).unwrap_or(0) } else { 0 };
            let EngineChoice { engine, kernel, why_engine, why_no_kernel, .. } = self.choice.clone();
            let instrument = instrument.to_owned();
            SamplerRecord { instrument, engine, interval_ns, reached_ns, kernel, why_engine, why_no_kernel }
        };
        if let (Some(wanted), Some(output)) = (self.sampler.cpu.get(), &self.cpu) {
            self.sampler.writer.sampler(&record("cpu", wanted.interval_ns, output));
        }
        if let (Some(wanted), Some((output, _))) = (self.sampler.wall.get(), &self.wall) {
            self.sampler.writer.sampler(&record("wall", wanted.interval_ns, output));
        }
    }
}
