//! Samples of recordings with their method names, and samples of `KnownPaths` judged by its notes.

use std::collections::HashMap;
use std::path::Path;

use clrscope_recording::model::{LossReason, Process, Sample, StackFrame, ThreadState};

use crate::{KnownPaths, Tally};

/// Samples of `KnownPaths`, judged.
#[derive(Debug, Default)]
pub struct SampledPaths {
    /// Samples compared with the program's notes. Lost samples are included as not equal.
    pub tally: Tally,
    /// Nanoseconds that all samples of the walker threads represent.
    pub weight_ns: u64,
}

impl SampledPaths {
    /// Judges the samples of an instrument; `start_ns` is the process's start by the monotonic
    /// clock, from [`start_of_process`].
    pub fn judge(process: &Process, instrument: &str, start_ns: u64, known: &KnownPaths) -> Self {
        let walker = |name: &str| name.strip_prefix("walker ")?.parse::<usize>().ok();
        let walkers: HashMap<u32, usize> =
            process.threads.iter().filter_map(|thread| Some((thread.id, walker(&thread.name)?))).collect();
        let mut names: HashMap<u32, Vec<&str>> = HashMap::new();
        let mut judged = Self::default();
        for sample in samples(process, instrument) {
            let Some(&walker) = walkers.get(&sample.thread) else { continue };
            judged.weight_ns += sample.weight_ns;
            let names = names.entry(sample.stack).or_insert_with(|| methods(process, sample.stack));
            let (time_ns, count) = (start_ns + sample.time_ns, u64::from(sample.count));
            if sample.state == ThreadState::Running {
                judged.tally.add(known, known.moment(walker, time_ns), names, sample.is_certain(), count);
            } else {
                let time = (walker, time_ns, time_ns + sample.weight_ns);
                judged.tally.add_still(known, time, names, sample.is_certain(), count);
            }
        }
        let lost = [LossReason::SampleRingFull, LossReason::PerfLost, LossReason::EventDropped];
        let losses = process.losses.iter().filter(|loss| lost.contains(&loss.reason));
        judged.tally.add_lost(losses.map(|loss| loss.count).sum());
        judged
    }
}

/// Samples of an instrument, in recorded order.
pub fn samples(process: &Process, instrument: &str) -> impl Iterator<Item = Sample> {
    let chunks = process.arenas(instrument).flat_map(|arena| &arena.chunks);
    chunks.flat_map(|chunk| Sample::all(&chunk.bytes.load()).collect::<Vec<_>>())
}

/// Names of the methods of a stack, outermost first.
pub fn methods(process: &Process, stack: u32) -> Vec<&str> {
    let name = |frame| match frame {
        StackFrame::Method { function, .. } => Some(process.functions.get(function as usize)?.name.as_str()),
        _ => None,
    };
    let mut names: Vec<&str> = process.stacks.frames(stack).filter_map(name).collect();
    names.reverse();
    names
}

/// Monotonic nanoseconds at the start of the only process of a recording directory, from the name
/// of the process's folder (`pPID-START`).
pub fn start_of_process(recording: &Path) -> Option<u64> {
    let names = recording.read_dir().ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut starts = names.filter_map(|name| name.strip_prefix('p')?.split_once('-')?.1.parse().ok());
    starts.next()
}
