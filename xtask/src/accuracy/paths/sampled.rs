//! A run of `KnownPaths` under the agent, and its samples beside what it noted.

use std::collections::HashMap;
use std::path::Path;

use clrscope_recording::model::{LossReason, Process, Sample, SamplingEngine, StackFrame, ThreadState};
use clrscope_testkit::{KnownPaths, Runtime, Tally, fixture};

use super::outcome::{Judged, Outcome};
use super::{Condition, peer};
use crate::agents::under_agent;
use crate::measured::run as run_measured;

/// Taker of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    Perf,
    Timer,
    Wall,
    /// The runtime's own sampler, by the tool that people use.
    DotnetTrace,
}

impl Engine {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Perf => "cpu, perf",
            Self::Timer => "cpu, timer",
            Self::Wall => "wall",
            Self::DotnetTrace => "dotnet-trace",
        }
    }

    fn request(self) -> &'static str {
        match self {
            Self::Perf => "cpu:engine=perf",
            Self::Timer => "cpu:engine=timer",
            Self::Wall | Self::DotnetTrace => "wall:rate=1000",
        }
    }

    fn instrument(self) -> &'static str {
        if self == Self::Wall { "wall" } else { "cpu" }
    }

    /// CPU time of each of the two threads of a run for so many samples, milliseconds. Timers go off at ticks of the kernel, 250 times a second or
    /// less often.
    fn milliseconds(self, samples: u64) -> u64 {
        let each = samples * 65 / 100;
        if self == Self::Timer { 4 * each } else { each }
    }
}

/// Names of steps and leaves, as the fixture says them.
#[derive(Debug, Default)]
pub(super) struct Shapes(pub(super) Vec<String>);

/// Runs the fixture once.
pub(super) fn run(
    runtime: &Runtime,
    condition: &Condition,
    engine: Engine,
    (samples, seed): (u64, u64),
    shapes: &mut Shapes,
) -> Result<Outcome, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (out, notes) = (folder.path().join("run.clrs.d"), folder.path().join("notes"));
    if engine == Engine::DotnetTrace {
        return peer::run(runtime, condition, (engine.milliseconds(samples), seed));
    }
    let milliseconds = engine.milliseconds(samples);
    let mut command = runtime.command(&fixture("KnownPaths"));
    command.arg(&notes).args([milliseconds, seed].map(|number| number.to_string())).args(condition.way);
    command.envs(condition.environment.iter().copied());
    under_agent(&mut command, engine.request(), &out);
    if let Err(why) = run_measured(&mut command) {
        return Ok(Outcome::Broken(why));
    }
    let recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
    let process = recording.processes.first().ok_or("no process was recorded")?;
    let sampler = process.samplers.iter().find(|sampler| sampler.instrument == engine.instrument());
    let by = sampler.map(|sampler| sampler.engine).unwrap_or_default();
    if engine == Engine::Perf && by != SamplingEngine::Perf {
        return Ok(Outcome::NotHere);
    }
    let known = KnownPaths::read(&notes);
    shapes.0 = known.shapes().map(|shape| shape.name.clone()).collect();
    let cpu_ns = if engine == Engine::Wall { 0 } else { 2 * milliseconds * 1_000_000 };
    Ok(Outcome::Judged(judge(process, engine.instrument(), start_of(&out)?, &known, cpu_ns)))
}

/// Monotonic nanoseconds at the start of the one process of a recording, which the name of its folder ends with: `pPID-START`.
fn start_of(out: &Path) -> Result<u64, String> {
    let entries = std::fs::read_dir(out).map_err(|error| error.to_string())?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut starts = names.filter_map(|name| name.strip_prefix('p')?.split_once('-')?.1.parse().ok());
    starts.next().ok_or_else(|| "no folder of a process".to_owned())
}

fn judge(process: &Process, instrument: &str, start_ns: u64, known: &KnownPaths, cpu_ns: u64) -> Judged {
    let walkers: HashMap<u32, usize> = process
        .threads
        .iter()
        .filter_map(|thread| Some((thread.id, thread.name.strip_prefix("walker ")?.parse().ok()?)))
        .collect();
    let mut names: HashMap<u32, Vec<&str>> = HashMap::new();
    let (mut tally, mut weight_ns) = (Tally::default(), 0);
    let chunks = process.arenas(instrument).flat_map(|arena| &arena.chunks);
    for sample in chunks.flat_map(|chunk| Sample::all(&chunk.bytes.load()).collect::<Vec<_>>()) {
        let Some(&walker) = walkers.get(&sample.thread) else { continue };
        weight_ns += sample.weight_ns;
        let names = names.entry(sample.stack).or_insert_with(|| methods(process, sample.stack));
        let (time_ns, count) = (start_ns + sample.time_ns, u64::from(sample.count));
        if sample.state == ThreadState::Running {
            tally.add(known, known.moment(walker, time_ns), names, sample.is_certain(), count);
        } else {
            let time = (walker, time_ns, time_ns + sample.weight_ns);
            tally.add_still(known, time, names, sample.is_certain(), count);
        }
    }
    let lost = [LossReason::SampleRingFull, LossReason::PerfLost, LossReason::EventDropped];
    let losses = process.losses.iter().filter(|loss| lost.contains(&loss.reason));
    tally.add_lost(losses.map(|loss| loss.count).sum());
    Judged { tally, cpu_ns, weight_ns }
}

/// Names of the methods of a stack, outermost first.
pub(super) fn methods(process: &Process, stack: u32) -> Vec<&str> {
    let name = |frame| match frame {
        StackFrame::Method { function, .. } => Some(process.functions.get(function as usize)?.name.as_str()),
        _ => None,
    };
    let mut names: Vec<&str> = process.stacks.frames(stack).filter_map(name).collect();
    names.reverse();
    names
}
