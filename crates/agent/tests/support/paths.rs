//! Samples of `KnownPaths`, judged by what it noted.

use std::collections::HashMap;

use clrscope_recording::model::{LossReason, Process, Sample, StackFrame, ThreadState};
use clrscope_testkit::{KnownPaths, Tally};

/// Judges the samples of an instrument; `start_ns` is the process's start by the monotonic clock.
pub(crate) fn judge(process: &Process, instrument: &str, start_ns: u64, known: &KnownPaths) -> Tally {
    let walker = |name: &str| name.strip_prefix("walker ")?.parse::<usize>().ok();
    let walkers: HashMap<u32, usize> =
        process.threads.iter().filter_map(|thread| Some((thread.id, walker(&thread.name)?))).collect();
    let mut tally = Tally::default();
    let chunks = process.arenas(instrument).flat_map(|arena| &arena.chunks);
    for sample in chunks.flat_map(|chunk| Sample::all(&chunk.bytes.load()).collect::<Vec<_>>()) {
        let Some(&walker) = walkers.get(&sample.thread) else { continue };
        let (time_ns, names) = (start_ns + sample.time_ns, outermost_first(process, sample.stack));
        if sample.state == ThreadState::Running {
            tally.add(known, known.moment(walker, time_ns), &names, sample.is_certain(), u64::from(sample.count));
        } else {
            let time = (walker, time_ns, time_ns + sample.weight_ns);
            tally.add_still(known, time, &names, sample.is_certain(), u64::from(sample.count));
        }
    }
    let lost = [LossReason::SampleRingFull, LossReason::PerfLost, LossReason::EventDropped];
    let losses = process.losses.iter().filter(|loss| lost.contains(&loss.reason));
    tally.add_lost(losses.map(|loss| loss.count).sum());
    tally
}

/// Names of the methods of a stack, outermost first.
fn outermost_first(process: &Process, stack: u32) -> Vec<&str> {
    let name = |frame| match frame {
        StackFrame::Method { function, .. } => Some(process.functions.get(function as usize)?.name.as_str()),
        _ => None,
    };
    let mut names: Vec<&str> = process.stacks.frames(stack).filter_map(name).collect();
    names.reverse();
    names
}
