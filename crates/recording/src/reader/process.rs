//! One process's folder.

use std::path::Path;
use std::sync::Arc;

use super::blocks::{EdgeTimes, TreeSources};
use super::dictionary::Dictionary;
use super::parts::GainsLog;
use super::period::Period;
use super::recent::{self, KeptTime};
use super::segment::{NOT_BEGUN, SegmentBytes, has_content};
use super::state::{self, Clocks};
use super::threads::ShownTrees;
use super::{events, parts, stacks, threads};
use crate::layout::{PARTS, PARTS_BEFORE, block, kind};
use crate::model::{Clock, Loss, LossReason, Problem, Process, Stacks, TickClock};

/// A process with its absolute times, which place it within the run.
pub(super) struct ReadProcess {
    pub(super) process: Process,
    pub(super) mono_start: u64,
    /// Monotonic nanoseconds of the last sign of life; `None` when the state could not be read.
    pub(super) mono_last: Option<u64>,
    pub(super) unix_start: u64,
    /// Whether the agent recorded that it has stopped recording.
    pub(super) stopped: bool,
    /// The request as the user gave it; `filled` is the request with every default.
    pub(super) given: String,
    pub(super) filled: String,
}

/// Reads the folder, or only what lies in `period`; adds problems to `problems`. `None` if the
/// folder has no process, or the process has nothing in the period.
pub(super) fn read(folder: &Path, period: Option<&Period<'_>>, problems: &mut Vec<Problem>) -> Option<ReadProcess> {
    let place = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let inside = format!("{place}/");
    let mut open = |name: &str, kind: u32| SegmentBytes::open(folder, name, kind, &inside, problems);
    let log = open("process.log", kind::LOG);
    let state = open("state.seg", kind::STATE);
    let records = open("threads.seg", kind::THREADS);
    if log.is_none() && state.is_none() && records.is_none() {
        return None;
    }
    let log = log.unwrap_or_else(SegmentBytes::empty);
    let (mut dictionary, cut) = Dictionary::read(&log);
    let (arena, times) = match dictionary.process.calls {
        Some(_) => (open("tree.seg", kind::TREE), open("times.seg", kind::TIMES)),
        None => (None, None),
    };
    let logs_of_gains = [PARTS_BEFORE, PARTS].into_iter().filter(|name| folder.join(name).exists());
    let gains = Arc::new(GainsLog::new(logs_of_gains.filter_map(|name| open(name, kind::LOG)).collect()));
    let mut problem = |file: &str, what: &str| {
        problems.push(Problem { place: format!("{place}/{file}"), what: what.to_owned() });
    };
    // Where the log grew meanwhile, the record is complete but ends after the bytes that we read.
    if cut && !log.has_grown() {
        problem("process.log", "ends in the middle of a record; what stood before is here");
    }
    if dictionary.process.calls.is_none() && folder.join("tree.seg").exists() {
        match has_content(folder, "tree.seg", kind::TREE) {
            true => problem("process.log", "does not say how calls were recorded; the trees can't be read"),
            // The file is made a moment before the log has the record about it.
            false => problem("tree.seg", NOT_BEGUN),
        }
    }
    let state = state.unwrap_or_else(SegmentBytes::empty);
    let clocks = Clocks::read(&state);
    let trees = trees(&dictionary, arena, times, clocks.ns_per_tick);
    let words = std::mem::take(&mut dictionary.threads);
    let details = std::mem::take(&mut dictionary.loss_details);
    let of_period = match period {
        Some(period) => Some(period.of_process(folder, &dictionary, &gains, &clocks)?),
        None => None,
    };
    let mut parts =
        parts::read(&dictionary.boundaries, &dictionary.carried, &gains, clocks.mono_start, clocks.mono_last);
    let mut read = assemble(dictionary, &clocks);
    let process = &mut read.process;
    process.losses = state::losses(&state, clocks.mono_start);
    add_details(&mut process.losses, details);
    let records = records.unwrap_or_else(SegmentBytes::empty);
    let shown = match of_period.as_ref().map(|period| period.gains.clone()) {
        None => ShownTrees::Whole,
        Some(Some(gains)) => ShownTrees::Gains(gains),
        Some(None) => ShownTrees::None,
    };
    process.threads = threads::read(&records, words, (trees, shown), &mut parts, clocks.mono_start);
    process.parts = parts.into_iter().map(|(part, _)| part).collect();
    if let Some(calls) = &mut process.calls {
        calls.cpu_measured = process.threads.iter().any(|thread| thread.cpu_ns.is_some());
    }
    let last = clocks.kept_ns.map(|kept_ns| KeptTime::last(kept_ns, clocks.mono_start, clocks.mono_last));
    let kept = of_period.as_ref().map(|period| period.kept).or(last);
    let source = events::Source { threads: process.threads.len(), ended: clocks.ended, kept };
    process.events = events::read(folder, &place, source, problems);
    if let Some(kept) = kept {
        recent::keep_of_process(process, kept);
    }
    if of_period.is_some_and(|period| period.lacks_calls) {
        let at = process.duration_ns;
        process.losses.push(Loss::new(LossReason::PartLost, 1, at, at));
    }
    // Read after the events, so that a running program has stored the stacks to which they refer.
    process.stacks = Arc::new(read_stacks(folder, &place, problems));
    Some(read)
}

/// The stack table, if there is one.
fn read_stacks(folder: &Path, place: &str, problems: &mut Vec<Problem>) -> Stacks {
    const FILE: &str = "stacks.seg";
    if !folder.join(FILE).exists() {
        return Stacks::default();
    }
    let inside = format!("{place}/");
    let bytes = SegmentBytes::open(folder, FILE, kind::STACKS, &inside, problems);
    let (stacks, problem) = stacks::read(&bytes.unwrap_or_else(SegmentBytes::empty));
    problems.extend(problem.map(|what| Problem { place: format!("{inside}{FILE}"), what }));
    stacks
}

/// Adds each detail to the loss with the same reason. If there is no such loss, because its count
/// did not reach the disk, the detail becomes a loss that counts once.
fn add_details(losses: &mut Vec<Loss>, details: Vec<(LossReason, String)>) {
    for (reason, detail) in details {
        match losses.iter_mut().find(|loss| loss.reason == reason) {
            Some(loss) => loss.details.push(detail),
            None => losses.push(Loss { details: vec![detail], ..Loss::new(reason, 1, 0, 0) }),
        }
    }
}

/// Trees of the process's threads, not decoded yet.
fn trees(
    dictionary: &Dictionary,
    arena: Option<SegmentBytes>,
    times: Option<SegmentBytes>,
    ns_per_tick: f64,
) -> TreeSources {
    let arena = arena.unwrap_or_else(SegmentBytes::empty);
    let times = EdgeTimes::read(&times.unwrap_or_else(SegmentBytes::empty), arena.len());
    let tsc = dictionary.process.calls.as_ref().is_some_and(|calls| calls.clock == Clock::Tsc);
    let stride = if tsc { block::STRIDE_TSC } else { block::STRIDE_SAMPLED };
    TreeSources { arena, stride, times, carries: dictionary.carries(), ns_per_tick }
}

fn assemble(dictionary: Dictionary, clocks: &Clocks) -> ReadProcess {
    let mut process = dictionary.process;
    process.duration_ns = clocks.mono_last - clocks.mono_start;
    process.cpu_ns = Some(clocks.cpu_ns).filter(|&ns| ns > 0);
    process.complete = clocks.ended;
    process.ticks = TickClock { start: clocks.ticks_start, ns_per_tick: clocks.ns_per_tick };
    if process.pid == 0 {
        process.pid = clocks.pid;
    }
    for remark in &mut process.remarks {
        remark.time_ns = remark.time_ns.saturating_sub(clocks.mono_start);
    }
    ReadProcess {
        process,
        mono_start: clocks.mono_start,
        mono_last: (clocks.mono_start > 0).then_some(clocks.mono_last),
        unix_start: clocks.unix_start,
        stopped: clocks.stopped,
        given: dictionary.given,
        filled: dictionary.filled,
    }
}
