//! Truth 5: a method is made slower. Its sampled time must rise by the program's additional time,
//! and no other method's sampled time may rise.

use clrscope_recording::model::SamplingEngine;
use clrscope_testkit::{Runtime, Slower, fixture, methods, runtimes, samples};

use crate::accuracy::page::Page;
use crate::agents::under_agent;
use crate::measured::run as run_measured;

/// Engines, each with the CPU milliseconds of a run: timers go off at ticks of the kernel.
const ENGINES: [(SamplingEngine, &str, u64); 2] =
    [(SamplingEngine::Perf, "cpu:engine=perf,rate=4000", 15_000), (SamplingEngine::Timer, "cpu:engine=timer", 40_000)];
/// A quick look takes so many times less.
const QUICKER: u64 = 5;

/// Runs the program with each engine on each runtime and prints the tables. Returns the number of
/// parts whose sampled time is off.
pub(in crate::accuracy) fn run(quick: bool, page: &mut Page) -> Result<usize, String> {
    let mut missed = 0;
    for runtime in runtimes() {
        for (engine, request, milliseconds) in ENGINES {
            let milliseconds = if quick { milliseconds / QUICKER } else { milliseconds };
            Page::progress(format_args!("slower methods: {request} on .NET {}", runtime.version));
            missed += run_one(runtime, (engine, request), milliseconds, page)?;
        }
    }
    Ok(missed)
}

fn run_one(
    runtime: &Runtime,
    (engine, request): (SamplingEngine, &str),
    milliseconds: u64,
    page: &mut Page,
) -> Result<usize, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let out = folder.path().join("run.clrs.d");
    let mut command = runtime.command(&fixture("Slower"));
    under_agent(command.arg(milliseconds.to_string()), request, &out);
    let mut slower = Slower::parse(&run_measured(&mut command)?.stdout);
    let recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
    let process = recording.processes.first().ok_or("no process was recorded")?;
    if process.samplers.first().is_none_or(|sampler| sampler.engine != engine) {
        page.line(format_args!("\n{request}: not to be had here"));
        return Ok(0);
    }
    let (mut count, mut sum_ns) = (0_u64, 0);
    for sample in samples(process, "cpu") {
        let mut names = methods(process, sample.stack);
        names.reverse();
        slower.add(&names, sample.weight_ns);
        (count, sum_ns) = (count + u64::from(sample.count), sum_ns + sample.weight_ns);
    }
    page.line(format_args!(
        "\n{request} on .NET {}: {count} samples, {:.2} % of them on no whole path of a round",
        runtime.version,
        slower.odd_percent()
    ));
    page.line(format_args!("  phase        part                  ms: predicted   samples       off    bound"));
    let mut missed = 0;
    for part in slower.parts(sum_ns as f64 / count.max(1) as f64) {
        missed += usize::from(!part.is_met());
        // Of the others the table has those alone that are off.
        if part.is_slower || !part.is_met() {
            let [predicted, sampled, bound] = [part.predicted, part.sampled, part.bound].map(|ns| ns / 1e6);
            let verdict = if part.is_met() { "met" } else { "MISSED" };
            page.line(format_args!(
                "  {:12} {:20} {predicted:>14.1} {sampled:>9.1} {:>+9.1} {bound:>8.1}   {verdict}",
                part.phase,
                part.part,
                sampled - predicted
            ));
        }
    }
    Ok(missed)
}
