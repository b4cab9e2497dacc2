//! The single samples of an instrument, and the conditions under which they were taken.

use clrscope_recording::model::{
    Function, FunctionKind, Inlining, Process, Sample, Sampler, StackFrame, ThreadState, Tier,
};
use clrscope_recording::parallel::fold;

use super::metric::{SAMPLED_CPU, SAMPLED_WALL};
use crate::logical::stacks_without_awaiter;
use crate::metric::Metric;
use crate::metric_events::{Event, MetricEvents};

/// How an instrument took its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingConditions<'a> {
    /// The instrument: `cpu` or `wall`.
    pub instrument: &'static str,
    /// Settings and engine of the first process with samples; `None` if they were not recorded.
    pub sampler: Option<&'a Sampler>,
    /// Number of samples that the instrument took in all processes.
    pub samples: u64,
    /// Number of samples with a complete stack: every frame from the innermost to the start of the
    /// thread is present and certain.
    pub complete: u64,
    /// Number of samples with at least one frame that was found by a guess.
    pub guessed: u64,
    /// Number of samples in the profiler's own code.
    pub profiler: u64,
    /// Time that all samples represent, in nanoseconds.
    pub total_ns: u64,
    /// The part of that time on idle threads (pool threads without work, the finalizer thread and
    /// the like), in nanoseconds.
    pub idle_ns: u64,
    /// Mean interval that was achieved between two samples of a thread, in nanoseconds; 0 if
    /// unknown.
    pub reached_ns: u64,
    /// What is known about inlined methods on the stacks.
    pub inlining: InliningKnowledge,
    /// Number of samples below a method that was resumed after an `await` and whose awaiter is not
    /// known; 0 if paths are physical.
    pub unknown_awaiter: u64,
}

/// Numbers of samples by what is known about inlined methods on their stacks. All are 0 if the
/// recording has no data about inlining.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InliningKnowledge {
    /// Number of samples whose stacks have no inlined methods.
    pub none: u64,
    /// Number of samples whose stacks have frames for all inlined methods.
    pub named: u64,
    /// Number of samples with a method on their stack whose inlined methods are not known.
    pub unknown: u64,
    /// Number of methods of the program that are on stacks of samples and whose code was compiled
    /// before the recording began.
    pub older_methods: u64,
}

impl InliningKnowledge {
    /// Number of samples in the three groups together.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.none.saturating_add(self.named).saturating_add(self.unknown)
    }
}

/// Calls `visit` with every sample of an instrument in a process, in the order of the recording.
pub(crate) fn each_sample(process: &Process, instrument: &str, mut visit: impl FnMut(&Sample)) {
    for chunk in process.arenas(instrument).flat_map(|arena| &arena.chunks) {
        Sample::all(&chunk.bytes.load()).for_each(|sample| visit(&sample));
    }
}

/// Conditions of the instruments that took samples in the processes.
pub(crate) fn sampling_conditions<'a>(processes: impl Iterator<Item = &'a Process>) -> Vec<SamplingConditions<'a>> {
    let processes: Vec<&Process> = processes.collect();
    [&SAMPLED_CPU, &SAMPLED_WALL].into_iter().filter_map(|metric| of_instrument(&processes, metric)).collect()
}

fn of_instrument<'a>(processes: &[&'a Process], metric: &'static Metric) -> Option<SamplingConditions<'a>> {
    let instrument = metric.instrument;
    if processes.iter().all(|process| process.arenas(instrument).next().is_none()) {
        return None;
    }
    let samplers = processes.iter().flat_map(|process| &process.samplers);
    let sampler = samplers.filter(|sampler| sampler.instrument == instrument).max_by_key(|sampler| sampler.reached_ns);
    let mut sums = SampleSums::default();
    processes.iter().for_each(|process| sums.add(&SampleSums::for_metric(process, metric)));
    let SampleSums { samples, complete, guessed, profiler, total_ns, idle_ns, not_inlined, named, .. } = sums;
    let SampleSums { unknown, unknown_awaiter, .. } = sums;
    let older = processes.iter().map(|process| older_methods(process, metric));
    let inlining = InliningKnowledge { none: not_inlined, named, unknown, older_methods: older.sum() };
    let mut reached_ns = sampler.map_or(0, |sampler| sampler.reached_ns);
    if reached_ns == 0 {
        reached_ns = total_ns.checked_div(samples).unwrap_or(0);
    }
    Some(SamplingConditions {
        instrument,
        sampler,
        samples,
        complete,
        guessed,
        profiler,
        total_ns,
        idle_ns,
        reached_ns,
        inlining,
        unknown_awaiter,
    })
}

/// Number of methods of the program that are on stacks of the samples and have some code that was
/// compiled before the recording began.
fn older_methods(process: &Process, metric: &'static Metric) -> u64 {
    let Some(measured) = MetricEvents::for_metric(process, metric) else { return 0 };
    *process.derived.get(&format!("older methods of {}", metric.instrument), || {
        let (table, mut older) = (&measured.table, vec![false; process.functions.len()]);
        let mut met = vec![false; table.len()];
        for stack in 0..measured.stacks() as u32 {
            let mut next = measured.position_of_stack(stack);
            while let Some(place) = next.filter(|place| !std::mem::replace(&mut met[*place], true)) {
                if let Some(StackFrame::Method { function, tier: Tier::Unknown, .. }) = table.frame_at(place)
                    && let Some(older) = older.get_mut(function as usize)
                {
                    *older = true;
                }
                next = table.caller_of(place);
            }
        }
        let is_program = |function: &Function| {
            let module = process.modules.get(function.module as usize);
            function.kind == FunctionKind::Managed && module.is_some_and(|module| !module.framework)
        };
        older.iter().zip(&process.functions).filter(|(older, function)| **older && is_program(function)).count() as u64
    })
}

/// Sums of all samples of an instrument.
#[derive(Debug, Clone, Copy, Default)]
struct SampleSums {
    samples: u64,
    complete: u64,
    guessed: u64,
    profiler: u64,
    total_ns: u64,
    idle_ns: u64,
    not_inlined: u64,
    named: u64,
    unknown: u64,
    unknown_awaiter: u64,
}

impl SampleSums {
    /// Returns the sums over a process, which are computed once.
    fn for_metric(process: &Process, metric: &'static Metric) -> Self {
        let Some(measured) = MetricEvents::for_metric(process, metric) else { return Self::default() };
        *process.derived.get(&format!("samples of {}", metric.instrument), || {
            let mut all = Self::default();
            let without_awaiter = stacks_without_awaiter(process, &measured);
            let is_without = |stack: u32| without_awaiter.get(stack as usize).copied().unwrap_or(false);
            let parts = fold(measured.blocks.len(), Self::default, |sums, at| {
                let events = measured.blocks[at].events();
                events.for_each(|event| sums.add(&Self::of_event(&event, is_without(event.stack))));
            });
            parts.iter().for_each(|part| all.add(part));
            all
        })
    }

    fn of_event(event: &Event, is_without_awaiter: bool) -> Self {
        let (flags, count) = (Sample::flagged(event.flags), u64::from(event.samples));
        let when = |is: bool, amount: u64| if is { amount } else { 0 };
        Self {
            samples: count,
            complete: when(flags.is_certain(), count),
            guessed: when(flags.guessed, count),
            profiler: when(flags.profiler, count),
            total_ns: event.amount,
            idle_ns: when(flags.state == ThreadState::Idle, event.amount),
            not_inlined: when(flags.inlining == Inlining::None, count),
            named: when(flags.inlining == Inlining::Named, count),
            unknown: when(flags.inlining == Inlining::Unknown, count),
            unknown_awaiter: when(is_without_awaiter, count),
        }
    }

    fn add(&mut self, other: &Self) {
        let mine = self.each();
        mine.into_iter().zip({ *other }.each()).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    }

    fn each(&mut self) -> [&mut u64; 10] {
        let Self {
            samples,
            complete,
            guessed,
            profiler,
            total_ns,
            idle_ns,
            not_inlined,
            named,
            unknown,
            unknown_awaiter,
        } = self;
        [samples, complete, guessed, profiler, total_ns, idle_ns, not_inlined, named, unknown, unknown_awaiter]
    }
}
