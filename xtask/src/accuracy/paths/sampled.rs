//! Runs `KnownPaths` under the agent and compares the samples with the program's notes.

use clrscope_recording::model::SamplingEngine;
use clrscope_testkit::{KnownPaths, Runtime, SampledPaths, fixture, start_of_process};

use super::outcome::{Judged, Outcome};
use super::{Condition, peer};
use crate::agents::under_agent;
use crate::measured::run as run_measured;

/// Sampler that takes the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    Perf,
    Timer,
    Wall,
    /// The runtime's own sampler, used through the common tool `dotnet-trace`.
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

    /// CPU time of each of the two threads of a run for so many samples, milliseconds. Timers go
    /// off at ticks of the kernel, 250 times a second or less often.
    fn milliseconds(self, samples: u64) -> u64 {
        let each = samples * 65 / 100;
        if self == Self::Timer { 4 * each } else { each }
    }
}

/// Names of the fixture's steps and leaves.
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
    let start_ns = start_of_process(&out).ok_or("no folder of a process")?;
    let SampledPaths { tally, weight_ns } = SampledPaths::judge(process, engine.instrument(), start_ns, &known);
    Ok(Outcome::Judged(Judged { tally, cpu_ns, weight_ns }))
}
