//! Spans of time in which a thread was in one state. Consecutive samples are merged into one span.

use clrscope_recording::model::{Process, Recording, Sample, Thread};

use crate::query::{Query, QueryProblem};
use crate::samples::{Kinds, SAMPLED_CPU, SAMPLED_WALL, each_sample, lasted_ns};
use crate::select;

/// A time span during which a thread was in one state, or did one kind of work.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// The process.
    pub process: &'a Process,
    /// The thread.
    pub thread: &'a Thread,
    /// Begin, in nanoseconds since the start of the run.
    pub start_ns: u64,
    /// End, in nanoseconds since the start of the run.
    pub end_ns: u64,
    /// State of the thread (samples of `wall`) or kind of work (samples of `cpu`).
    pub kind: &'static str,
}

/// Spans of the threads, ordered by process, thread and time. They come from samples of `wall`,
/// which show what threads wait for, or from samples of `cpu` if `wall` was not recorded. A sample
/// covers the time before it, according to its weight, except what an earlier sample of the thread
/// covers.
///
/// # Errors
/// When the query matches no process or thread, or no samples were recorded.
pub fn spans<'a>(recording: &'a Recording, query: &Query) -> Result<Vec<Span<'a>>, QueryProblem> {
    let metric = [&SAMPLED_WALL, &SAMPLED_CPU].into_iter().find(|metric| metric.is_in(recording));
    let metric = metric.ok_or(QueryProblem::NotRecorded { view: "timeline", instrument: SAMPLED_CPU.instrument })?;
    let mut found: Vec<Span<'a>> = Vec::new();
    for selected in select::threads(recording, query)? {
        let process = selected.process;
        let mut samples: Vec<Sample> = Vec::new();
        each_sample(process, metric.instrument, |sample| {
            let thread = index_of(sample).and_then(|index| process.threads.get(index));
            let first_ns = process.started_ns.saturating_add(sample.time_ns);
            let in_time = query.wanted_ns(process, first_ns, first_ns.saturating_add(lasted_ns(sample))).is_some();
            if in_time && thread.is_some_and(|thread| query.wants_thread(thread)) {
                samples.push(*sample);
            }
        });
        samples.sort_by_key(|sample| (sample.thread, sample.time_ns));
        let kinds = Kinds::new(process);
        let first = found.len();
        for sample in &samples {
            let is_state = metric.instrument == SAMPLED_WALL.instrument;
            let kind = if is_state { sample.state.name() } else { kinds.kind_of_sample(sample).name() };
            let Some(thread) = index_of(sample).and_then(|index| process.threads.get(index)) else { continue };
            add(&mut found, first, Span { kind, ..span_of(process, thread, sample) }, sample.weight_ns);
        }
    }
    Ok(found)
}

fn index_of(sample: &Sample) -> Option<usize> {
    sample.thread.checked_sub(1).map(|index| index as usize)
}

/// The span that a sample covers.
fn span_of<'a>(process: &'a Process, thread: &'a Thread, sample: &Sample) -> Span<'a> {
    let at = process.started_ns.saturating_add(sample.time_ns);
    let (start_ns, end_ns) = match lasted_ns(sample) {
        0 => (at.saturating_sub(sample.weight_ns).max(process.started_ns), at),
        lasted => (at, at.saturating_add(lasted)),
    };
    Span { process, thread, start_ns, end_ns, kind: "" }
}

/// Adds a span to the list of its thread, which starts at `first`. If the previous span has the
/// same kind and ends at most `gap_ns` before this one, that span is extended instead.
fn add<'a>(found: &mut Vec<Span<'a>>, first: usize, mut span: Span<'a>, gap_ns: u64) {
    let of_thread = |before: &&mut Span<'a>| std::ptr::eq(before.thread, span.thread);
    if let Some(before) = found[first..].last_mut().filter(of_thread) {
        span.start_ns = span.start_ns.max(before.end_ns);
        span.end_ns = span.end_ns.max(span.start_ns);
        if before.kind == span.kind && span.start_ns <= before.end_ns.saturating_add(gap_ns) {
            before.end_ns = span.end_ns;
            return;
        }
    }
    found.push(span);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_kind_are_one_span_until_a_gap_or_another_kind() {
        let (process, thread) = (Process { started_ns: 5, ..Process::default() }, Thread::default());
        let mut found = Vec::new();
        for (time_ns, kind, count) in [(10, "own", 1), (20, "own", 1), (30, "gc", 1), (100, "gc", 1), (101, "gc", 3)] {
            let sample = Sample { time_ns, weight_ns: 10, count, ..Sample::default() };
            add(&mut found, 0, Span { kind, ..span_of(&process, &thread, &sample) }, sample.weight_ns);
        }
        let seen: Vec<_> = found.iter().map(|span| (span.kind, span.start_ns, span.end_ns)).collect();
        assert_eq!(seen, [("own", 5, 25), ("gc", 25, 35), ("gc", 95, 116)]);
    }
}
