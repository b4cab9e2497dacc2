//! The thread that takes samples from the engine, finds their frames, and records them.

use std::time::Duration;

use clr_profiler::OwnThread;
use clrscope_recording::model::{Activity, LossReason, Sample, Sampler as SamplerRecord, StackFrame, ThreadState};
use clrscope_recording::writer::{Chunk, EventStore, monotonic_ns};

use super::engine::{Choice, Engine};
use super::kernel_time::KernelTime;
use super::known_threads::KnownThreads;
use super::os::perf::kernel_start;
use super::os::task::sample_here;
use super::poll::Poll;
use super::raw::RawSample;
use super::targets::is_own;
use super::unwind::{Ending, StackUnwinder, Touched};
use super::{Sampler, State, lock};
use crate::os::memory::copy_if_there;
use crate::os::threads;
use crate::services::code::arch::follows_system_call;
use crate::services::code::{CodeMap, Place};

/// Between two rounds.
const PAUSE: Duration = Duration::from_millis(10);
/// Between two looks which threads there are.
const THREADS_NS: u64 = 50_000_000;
/// Between two looks at handlers and mappings.
const CHECK_NS: u64 = 1_000_000_000;
/// Bytes of a chunk of samples.
const CHUNK: usize = 64 << 10;

/// The state of the draining thread.
pub(super) struct Drain {
    sampler: &'static Sampler,
    engine: Engine,
    choice: Choice,
    frames: Frames,
    threads: KnownThreads,
    raw: RawSample,
    cpu: Option<Output>,
    wall: Option<(Output, Poll)>,
    /// Where perf events don't sample the kernel.
    kernel_time: Option<KernelTime>,
    next_threads_ns: u64,
    next_check_ns: u64,
    /// Whether somebody else has taken the signal.
    has_given_up: bool,
}

/// From samples to numbers of stacks.
pub(super) struct Frames {
    sampler: &'static Sampler,
    map: CodeMap,
    unwinder: StackUnwinder,
    kernel_start: Option<usize>,
    frames: Vec<StackFrame>,
}

/// A stack that was found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FoundStack {
    /// The number in the recording; 0 for none.
    pub(super) number: u32,
    pub(super) is_complete: bool,
    pub(super) touched: Touched,
}

/// Where the samples of an instrument go.
pub(super) struct Output {
    sampler: &'static Sampler,
    store: &'static EventStore,
    chunk: Option<Chunk>,
    /// Nanoseconds of all samples, and how many there were.
    sum_ns: u64,
    count: u64,
}

impl Frames {
    /// The stack of a sample.
    pub(super) fn of(&mut self, sample: &RawSample) -> FoundStack {
        self.frames.clear();
        for &address in &sample.kernel {
            let offset = self.kernel_start.and_then(|start| address.checked_sub(start)).unwrap_or(0);
            self.frames.push(self.map.kernel(u32::try_from(offset).unwrap_or(0)));
        }
        if sample.in_kernel && sample.kernel.is_empty() {
            self.frames.push(self.map.kernel(0));
        }
        let (ending, touched) = match sample.registers.ip {
            // A thread of the kernel's, or one that is about to end: there is no user mode to go on in.
            0 => (Ending::Complete, Touched::default()),
            _ => self.unwinder.walk(&mut self.map, sample, &mut self.frames),
        };
        let number = self.sampler.stacks.number_of(&self.frames, ending != Ending::Complete);
        FoundStack { number, is_complete: ending == Ending::Complete, touched }
    }

    /// What a thread waits for in a call of the kernel that locks, events and sleeps are all made of, by the methods that
    /// [`of`](Self::of) met last.
    pub(super) fn state_of_last(&self, stack: FoundStack) -> ThreadState {
        let names = self.unwinder.innermost.iter().map(|body| self.map.name(body)).collect();
        state_by_names(names, stack.touched.own_code)
    }

    /// The innermost frame in user mode alone.
    fn of_leaf(&mut self, sample: &RawSample) -> FoundStack {
        let place = self.map.place(sample.registers.ip, sample.time_ns);
        let frame = self.map.frame(&place, sample.registers.ip, false);
        FoundStack { number: self.sampler.stacks.number_of(&[frame], false), ..FoundStack::default() }
    }

    /// Whether the instruction before is a call of the kernel: a signal that comes there was due in the kernel.
    fn follows_system_call(&mut self, sample: &RawSample) -> bool {
        let ip = sample.registers.ip;
        let mut before = [0; 2];
        matches!(self.map.place(ip, sample.time_ns), Place::Native(..))
            && copy_if_there(ip.saturating_sub(before.len()), &mut before)
            && follows_system_call(&before)
    }
}

/// The state of a thread that stands in these methods of the framework, innermost first, and perhaps in code that called
/// them.
fn state_by_names(names: Vec<String>, has_callers: bool) -> ThreadState {
    /// The first that fits counts.
    const METHODS: [(&str, ThreadState); 9] = [
        ("System.Threading.Thread::Sleep", ThreadState::Sleeping),
        ("System.Threading.Thread::Join", ThreadState::Waiting),
        ("System.Threading.Monitor::Wait", ThreadState::Waiting),
        ("System.Threading.Monitor::ObjWait", ThreadState::Waiting),
        ("System.Threading.Monitor::", ThreadState::Lock),
        ("System.Threading.Lock::", ThreadState::Lock),
        ("System.Threading.SpinLock::", ThreadState::Lock),
        ("System.Threading.ReaderWriterLockSlim::", ThreadState::Lock),
        ("System.Threading.Mutex::", ThreadState::Lock),
    ];
    let known = |name: &String| METHODS.iter().find(|(method, _)| name.starts_with(method)).map(|(_, state)| *state);
    let in_threading = names.first().is_some_and(|name| name.starts_with("System.Threading."));
    // The runtime itself takes locks of objects, right below the method that wants one.
    let otherwise = match has_callers || !names.is_empty() {
        true if !in_threading => ThreadState::Lock,
        _ => ThreadState::Waiting,
    };
    names.iter().find_map(known).unwrap_or(otherwise)
}

impl Output {
    fn new(sampler: &'static Sampler, store: &'static EventStore) -> Self {
        Self { sampler, store, chunk: None, sum_ns: 0, count: 0 }
    }

    /// Stores a sample; one that finds no room is counted.
    pub(super) fn write(&mut self, sample: &Sample) {
        let now = monotonic_ns();
        let bytes = sample.to_bytes();
        self.sum_ns += sample.weight_ns;
        self.count += u64::from(sample.count);
        if self.chunk.is_some_and(|chunk| chunk.append(&bytes, now)) {
            return;
        }
        self.chunk = self.store.take(0, CHUNK, now).or_else(|| {
            // The helper thread may be behind; here is time to do its work.
            let _ = self.store.keep_ahead();
            self.store.take(0, CHUNK, now)
        });
        if !self.chunk.is_some_and(|chunk| chunk.append(&bytes, now)) {
            self.sampler.writer.state().lose(LossReason::EventDropped, 1, now);
        }
    }
}

impl Drain {
    pub(super) fn new(sampler: &'static Sampler, engine: Engine, choice: Choice, map: CodeMap) -> Self {
        let frames = Frames { sampler, map, unwinder: StackUnwinder::new(), kernel_start: None, frames: Vec::new() };
        let cpu = sampler.cpu.get().map(|wanted| Output::new(sampler, &wanted.store));
        let wall = sampler
            .wall
            .get()
            .map(|wanted| (Output::new(sampler, &wanted.store), Poll::new(wanted.interval_ns, sampler.start_ns)));
        let unseen = matches!(engine, Engine::Perf(_)) && !choice.kernel;
        let interval_ns = choice.interval_ns;
        let kernel_time = unseen.then(|| KernelTime::new(interval_ns, threads::thread_id(), &threads::all()));
        let drain = Self {
            kernel_time,
            sampler,
            engine,
            choice,
            frames,
            threads: KnownThreads::new(sampler.writer),
            raw: RawSample::default(),
            cpu,
            wall,
            next_threads_ns: 0,
            next_check_ns: 0,
            has_given_up: false,
        };
        drain.tell(false);
        drain
    }

    /// Runs until the thread is told to end.
    pub(super) fn run(&mut self, thread: &OwnThread) {
        if self.choice.kernel {
            self.frames.kernel_start = kernel_start();
        }
        if let Some(sample) = sample_here() {
            self.frames.map.update();
            self.frames.unwinder.learn_start_of_threads(&mut self.frames.map, &sample);
        }
        loop {
            match self.sampler.state() {
                State::On => self.round(),
                State::Stopping => self.stop(),
                State::Off => {}
                State::Ended => return,
            }
            if !thread.sleep(PAUSE) {
                break;
            }
            if self.sampler.state() == State::On && self.is_off() {
                self.start_again();
            }
        }
        self.stop();
        self.sampler.set_state(State::Ended);
    }

    fn round(&mut self) {
        let now = monotonic_ns();
        if self.frames.map.update() {
            self.frames.unwinder.forget();
        }
        if now >= self.next_threads_ns {
            self.next_threads_ns = now + THREADS_NS;
            self.update_threads();
        }
        self.drain();
        if matches!(self.engine, Engine::Timers(_)) && !self.has_given_up && !super::os::signal::is_ours() {
            self.give_up(now);
        }
        if now >= self.next_check_ns {
            self.next_check_ns = now + CHECK_NS;
            self.check(now);
        }
        if let Some((output, poll)) = &mut self.wall {
            poll.round(now, output, &mut self.frames);
        }
    }

    /// Looks which threads there are.
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
        self.fill_in_kernel(&alive);
        self.threads.update(&alive);
        if let Some((output, poll)) = &mut self.wall {
            poll.meet(&alive, output, &mut self.frames, &mut self.threads);
        }
    }

    /// Records the time in the kernel that was not sampled, as such.
    fn fill_in_kernel(&mut self, alive: &[u32]) {
        let Self { kernel_time, frames, threads, cpu, wall, sampler, choice, .. } = self;
        let Some(kernel_time) = kernel_time else { return };
        let time_ns = monotonic_ns().saturating_sub(sampler.start_ns);
        kernel_time.update(alive, |os_id, weight_ns| {
            let thread = threads.with_id(os_id);
            if thread.is_own {
                return;
            }
            let stack = frames.of(&RawSample { in_kernel: true, ..RawSample::default() });
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

    /// Looks after what others may have changed.
    fn check(&mut self, _now: u64) {
        if let Engine::Timers(shared) = &self.engine {
            super::os::signal::keep_out_of_hardware_exceptions(true);
            shared.frameless.set(self.frames.map.frameless_code());
        }
        self.tell(false);
    }

    /// Gives up, since somebody else handles the signal now: what timers send would be taken for that program's own
    /// signals.
    fn give_up(&mut self, now: u64) {
        self.has_given_up = true;
        self.engine.enable(false);
        if let Some(targets) = self.sampler.targets.get() {
            lock(targets).give_up();
        }
        let text = "the program handles the signal that samples were taken by: from here on there are none";
        self.sampler.writer.note(now, text);
    }

    fn drain(&mut self) {
        let Self { engine, raw, frames, threads, cpu, wall, sampler, kernel_time, .. } = self;
        let by_signal = matches!(engine, Engine::Timers(_));
        let (lost_in_kernel, lost) = engine.drain(raw, |sample| {
            if by_signal {
                sample.in_kernel = frames.follows_system_call(sample);
                if let Some(targets) = sampler.targets.get().filter(|_| sample.stack.is_empty()) {
                    lock(targets).find_stack(sample.os_id, sample.registers.sp);
                }
            }
            let thread = threads.with_id(sample.os_id);
            // Nobody asks where in the profiler its own threads are.
            let found = if thread.is_own {
                FoundStack { is_complete: true, ..frames.of_leaf(sample) }
            } else {
                frames.of(sample)
            };
            let record = Sample {
                time_ns: sample.time_ns.saturating_sub(sampler.start_ns),
                weight_ns: sample.weight_ns,
                thread: thread.serial(),
                stack: found.number,
                count: 1,
                state: ThreadState::Running,
                activity: match found.touched {
                    Touched { compiler: true, .. } => Activity::Jit,
                    Touched { collector: true, .. } => Activity::Gc,
                    _ => Activity::None,
                },
                complete: found.is_complete,
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
        for (reason, count) in [(LossReason::PerfLost, lost_in_kernel), (LossReason::SampleRingFull, lost)] {
            if count > 0 {
                sampler.writer.state().lose(reason, count, monotonic_ns());
            }
        }
    }

    fn is_off(&self) -> bool {
        self.next_threads_ns == u64::MAX
    }

    /// Stops the engine, and records what it has taken.
    fn stop(&mut self) {
        if !self.is_off() {
            self.engine.enable(false);
            if let Some(targets) = self.sampler.targets.get() {
                lock(targets).clear();
            }
            self.frames.map.update();
            self.drain();
            self.fill_in_kernel(&threads::all());
            if let Some((output, poll)) = &mut self.wall {
                poll.finish(output);
            }
            self.tell(true);
            self.next_threads_ns = u64::MAX;
        }
        self.sampler.change_state(State::Stopping, State::Off);
    }

    fn start_again(&mut self) {
        self.next_threads_ns = 0;
        self.engine.enable(true);
    }

    /// Notes how samples are taken. `at_end`: with the interval that was reached.
    fn tell(&self, at_end: bool) {
        let record = |instrument: &str, interval_ns: u64, output: &Output| {
            let reached_ns = if at_end { output.sum_ns.checked_div(output.count).unwrap_or(0) } else { 0 };
            let Choice { engine, kernel, why_engine, why_no_kernel, .. } = self.choice.clone();
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
