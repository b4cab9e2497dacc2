//! Samples as they were taken, before anything is summed.

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Sample, Sampler, ThreadState};

/// Conditions under which an instrument took its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingConditions<'a> {
    /// The instrument: `cpu` or `wall`.
    pub instrument: &'static str,
    /// Settings and engine, as the first process with samples has them; `None` where they were not recorded.
    pub sampler: Option<&'a Sampler>,
    /// Samples in all processes.
    pub samples: u64,
    /// Samples with a stack that is whole, from the innermost frame to the start of the thread.
    pub complete: u64,
    /// Samples in the profiler's own code.
    pub profiler: u64,
    /// Time that all samples stand for, nanoseconds.
    pub total_ns: u64,
    /// The part of that time which idle threads took: those of the pool, the finalizer and the like without work.
    pub idle_ns: u64,
    /// Nanoseconds between two samples of a thread, as reached in the mean; 0 where nobody knows.
    pub reached_ns: u64,
}

/// Hands every sample of an instrument in a process to `visit`.
pub(crate) fn each_sample(process: &Process, instrument: &str, mut visit: impl FnMut(&Sample)) {
    for chunk in process.arenas(instrument).flat_map(|arena| &arena.chunks) {
        Sample::all(&chunk.bytes.load()).for_each(|sample| visit(&sample));
    }
}

/// Conditions of the instruments that took samples in the processes.
pub(crate) fn sampling_conditions<'a>(processes: impl Iterator<Item = &'a Process>) -> Vec<SamplingConditions<'a>> {
    let processes: Vec<&Process> = processes.collect();
    let all = [instrument::CPU, instrument::WALL];
    all.into_iter().filter_map(|instrument| of_instrument(&processes, instrument)).collect()
}

fn of_instrument<'a>(processes: &[&'a Process], instrument: &'static str) -> Option<SamplingConditions<'a>> {
    if processes.iter().all(|process| process.arenas(instrument).next().is_none()) {
        return None;
    }
    let samplers = processes.iter().flat_map(|process| &process.samplers);
    let sampler = samplers.filter(|sampler| sampler.instrument == instrument).max_by_key(|sampler| sampler.reached_ns);
    let mut found = SamplingConditions {
        instrument,
        sampler,
        samples: 0,
        complete: 0,
        profiler: 0,
        total_ns: 0,
        idle_ns: 0,
        reached_ns: sampler.map_or(0, |sampler| sampler.reached_ns),
    };
    let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
    for process in processes {
        each_sample(process, instrument, |sample| {
            let count = u64::from(sample.count);
            add(&mut found.samples, count);
            add(&mut found.complete, if sample.complete { count } else { 0 });
            add(&mut found.profiler, if sample.profiler { count } else { 0 });
            add(&mut found.total_ns, sample.weight_ns);
            add(&mut found.idle_ns, if sample.state == ThreadState::Idle { sample.weight_ns } else { 0 });
        });
    }
    if found.reached_ns == 0 {
        found.reached_ns = found.total_ns.checked_div(found.samples).unwrap_or(0);
    }
    Some(found)
}
