//! The engines that take samples: perf events of the kernel, and timers with a signal.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use clrscope_recording::model::SamplingEngine;

use super::Sampler;
use super::object_copies;
use super::os::perf::{self, EventSettings, PerfEvents};
use super::os::signal::{self, Shared};
use super::raw::{RawSample, Registers};

/// Words of the ring of signal handlers, enough for hundreds of stacks. The system backs them when
/// they are used.
const RING_WORDS: usize = 1 << 20;

/// The engine that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineRequest {
    /// The best engine that the system allows.
    #[default]
    Auto,
    /// Perf events, or timers where perf events are not available.
    Perf,
    /// Timers that send a signal.
    Timer,
}

/// The engine that takes the samples.
pub(super) enum Engine {
    /// Perf events.
    Perf(PerfEvents),
    /// Timers.
    Timers(&'static Shared),
    /// No engine: the system allows neither.
    None,
}

/// The engine that was chosen, and why.
#[derive(Debug, Clone, Default)]
pub(super) struct EngineChoice {
    pub(super) engine: SamplingEngine,
    pub(super) interval_ns: u64,
    pub(super) kernel: bool,
    pub(super) why_engine: String,
    pub(super) why_no_kernel: String,
}

impl Engine {
    /// Chooses the engine that best fulfils the instruments' requests within the system's limits.
    /// Perf events are opened for the calling thread and the threads that it starts later.
    pub(super) fn choose(sampler: &Sampler, at_launch: bool) -> (Self, EngineChoice) {
        let cpu = sampler.cpu.get();
        let wall = sampler.wall.get();
        let intervals = cpu.map(|wanted| wanted.interval_ns).into_iter().chain(wall.map(|wanted| wanted.interval_ns));
        let interval_ns = intervals.min().unwrap_or(1_000_000);
        let wanted = cpu.map_or(EngineRequest::Auto, |wanted| wanted.engine);
        let kernel = cpu.is_none_or(|wanted| wanted.kernel);
        let mut choice = EngineChoice { interval_ns, ..EngineChoice::default() };
        if wanted != EngineRequest::Timer {
            match Self::perf(interval_ns, kernel, at_launch) {
                Ok(events) => {
                    choice.engine = SamplingEngine::Perf;
                    choice.kernel = events.kernel;
                    if kernel && !events.kernel {
                        choice.why_no_kernel = why_no_kernel();
                    }
                    return (Self::Perf(events), choice);
                }
                Err(why) => choice.why_engine = why,
            }
        }
        match Self::timers(&mut choice, kernel) {
            Some(engine) => (engine, choice),
            None => {
                choice.why_engine =
                    "the signal by which the runtime stops threads has a handler that is not the runtime's".into();
                (Self::None, choice)
            }
        }
    }

    /// Changes to timers, as perf events have turned out to be expensive (`why`). `None` if timers
    /// are not available. `kernel`: frames of the kernel were requested.
    pub(super) fn change_to_timers(choice: &EngineChoice, kernel: bool, why: String) -> Option<(Self, EngineChoice)> {
        let mut choice = EngineChoice { interval_ns: choice.interval_ns, why_engine: why, ..EngineChoice::default() };
        Some((Self::timers(&mut choice, kernel)?, choice))
    }

    fn timers(choice: &mut EngineChoice, kernel: bool) -> Option<Self> {
        let shared = signal::install(choice.interval_ns, RING_WORDS)?;
        choice.engine = SamplingEngine::Timer;
        choice.kernel = false;
        if kernel {
            choice.why_no_kernel = "timers see user mode only".into();
        }
        Some(Self::Timers(shared))
    }

    fn perf(interval_ns: u64, kernel: bool, at_launch: bool) -> Result<PerfEvents, String> {
        if !at_launch {
            let why = "perf events cover only threads that start later, and this program was already running";
            return Err(why.into());
        }
        PerfEvents::open(EventSettings { interval_ns, kernel }).map_err(|error| {
            let cure = match perf::paranoid() {
                Some(level) if level > 2 => {
                    format!(
                        "kernel.perf_event_paranoid is {level}, and 2 would allow perf events of one's own processes"
                    )
                }
                _ => "a container's list of system calls may have to name perf_event_open".to_owned(),
            };
            format!("perf events are not available ({error}): {cure}")
        })
    }

    /// Starts or stops sampling.
    pub(super) fn enable(&self, is_on: bool) {
        match self {
            Self::Perf(events) => events.enable(is_on),
            Self::Timers(shared) => {
                if is_on {
                    // If other code has taken the signal, the draining thread notices that.
                    signal::stand_in_front();
                }
                shared.is_on.store(is_on, Ordering::SeqCst);
            }
            Self::None => {}
        }
    }

    /// Gives back the resources of the program that the engine has taken, until it is enabled
    /// again. Call it after the last timer was deleted.
    pub(super) fn let_go(&self) {
        if let Self::Timers(shared) = self {
            shared.objects.end();
            signal::put_back();
        }
    }

    /// File descriptors that the engine has open.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        match self {
            Self::Perf(events) => events.descriptors(),
            Self::Timers(_) | Self::None => Vec::new(),
        }
    }

    /// Gives every available sample to `take`. Returns the numbers of samples lost in the kernel
    /// and in the ring.
    pub(super) fn drain(&mut self, sample: &mut RawSample, mut take: impl FnMut(&mut RawSample)) -> (u64, u64) {
        match self {
            Self::Perf(events) => (events.drain(sample, take), 0),
            Self::Timers(shared) => {
                let mut words = Vec::new();
                while shared.ring.read(&mut words) {
                    sample.clear();
                    if decode(&words, sample).is_some() {
                        take(sample);
                    }
                }
                (0, shared.ring.take_lost())
            }
            Self::None => (0, 0),
        }
    }
}

/// The words of a sample as the signal's handler writes them.
fn decode(words: &[u64], sample: &mut RawSample) -> Option<()> {
    let ([time_ns, weight_ns, os_id, ip, sp, bp, frames, words_of_stack, this], rest) = words.split_first_chunk()?;
    (sample.time_ns, sample.weight_ns, sample.os_id) = (*time_ns, *weight_ns, *os_id as u32);
    sample.registers = Registers { ip: *ip as usize, sp: *sp as usize, bp: *bp as usize };
    let (frames, rest) = rest.split_at_checked(2 * *frames as usize)?;
    sample.frames.extend(frames.as_chunks().0.iter().map(|[frame, address]| (*frame as usize, *address as usize)));
    let (stack, objects) = rest.split_at_checked(*words_of_stack as usize)?;
    sample.stack.extend_from_slice(stack);
    if *this != 0 {
        object_copies::decode(*this as usize, objects, &mut sample.objects);
    }
    Some(())
}

fn why_no_kernel() -> String {
    match perf::paranoid() {
        Some(level) if level > 1 => {
            format!("kernel.perf_event_paranoid is {level}: with 1, or as root, stacks go on into the kernel")
        }
        _ => "the system does not allow samples of the kernel".to_owned(),
    }
}
