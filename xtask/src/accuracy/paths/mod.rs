//! Compares the stacks of samples with call paths that the program knows: truth 2 of the proof of
//! the stack walker.
//!
//! `KnownPaths` calls along random paths, whose leaves note them. For every available runtime and
//! each engine, at least a given number of samples is taken while a leaf is on the stack. The own
//! methods of each sample must be the methods of the path, in order; a lost sample counts as not
//! equal. This is repeated under conditions that give methods other kinds of code, and once while
//! the runtime suspends threads all the time.

pub(super) mod callers;
mod outcome;
mod peer;
mod sampled;
pub(super) mod slower;
pub(super) mod stops;
mod tables;

use clrscope_testkit::{Runtime, Tally, runtimes};

use super::page::Page;
use super::shares::Plan;
use outcome::Outcome;
use sampled::{Engine, Shapes};

/// Minimum number of samples for each runtime, engine and condition.
const LEAST: u64 = 10_000;
/// Samples of a series whose threads the runtime stops nearly all the time, by takers of samples
/// that are slower then: 10,000 took minutes, or the machine's load made hours of them.
const FEWER: u64 = 2_000;
/// Samples of each for a quick look, which proves nothing.
const QUICK: u64 = 1_000;
/// Share of them that must be equal, in percent.
const GOAL: f64 = 99.9;
/// Runs for a series at most: a run that gives next to no samples would go on for ever otherwise.
const MOST_RUNS: u64 = 8;

/// Circumstances of a run.
struct Condition {
    /// Words for tables.
    name: &'static str,
    /// The fixture's way.
    way: &'static [&'static str],
    /// Settings of the runtime.
    environment: &'static [(&'static str, &'static str)],
    /// Engines that samples are taken by, with the number of samples that each takes at least.
    engines: &'static [(Engine, u64)],
}

/// All engines.
const ALL: &[(Engine, u64)] =
    &[(Engine::Perf, LEAST), (Engine::Timer, LEAST), (Engine::Wall, LEAST), (Engine::DotnetTrace, LEAST)];
/// All engines where threads are stopped nearly all the time.
const STOPPED: &[(Engine, u64)] =
    &[(Engine::Perf, LEAST), (Engine::Timer, FEWER), (Engine::Wall, LEAST), (Engine::DotnetTrace, FEWER)];
/// The engine that is there where nothing else is said.
const PERF: &[(Engine, u64)] = &[(Engine::Perf, LEAST)];

/// All conditions; of the first there are tables by shape.
const CONDITIONS: [Condition; 5] = [
    Condition { name: "as it comes", way: &[], environment: &[], engines: ALL },
    // A filter that runs while the runtime collects ends the program on 9 and 10 wherever a
    // profiler, an empty one too, asks for notifications of exceptions: that has a test of its own.
    Condition { name: "collections all the time", way: &["collected", "-filter"], environment: &[], engines: STOPPED },
    Condition { name: "quick code for ever", way: &[], environment: &[("DOTNET_TC_CallCounting", "0")], engines: PERF },
    Condition { name: "optimised at once", way: &[], environment: &[("DOTNET_TieredCompilation", "0")], engines: PERF },
    Condition { name: "nothing precompiled", way: &[], environment: &[("DOTNET_ReadyToRun", "0")], engines: PERF },
];

/// Results of one runtime, condition and engine.
struct Series {
    runtime: &'static Runtime,
    condition: &'static Condition,
    engine: Engine,
    tally: Tally,
    /// Share of the CPU time that the threads used which their samples stand for, in percent;
    /// nothing where samples stand for other time.
    covered: Option<f64>,
    /// Ends of the program that were none: each misses the goal whatever the samples say.
    broken: Vec<String>,
}

impl Series {
    /// Whether clrscope took the samples.
    fn is_ours(&self) -> bool {
        self.engine != Engine::DotnetTrace
    }

    fn is_met(&self) -> bool {
        self.broken.is_empty() && self.tally.equal_percent() >= GOAL
    }
}

/// Takes all series and prints the tables. Returns the number of series that missed the goal.
pub(super) fn run(plan: Plan, page: &mut Page) -> Result<usize, String> {
    let (mut all, mut shapes) = (Vec::new(), Shapes::default());
    let conditions = if plan.quick { 1 } else { CONDITIONS.len() };
    for condition in &CONDITIONS[..conditions] {
        for runtime in runtimes() {
            for &(engine, least) in condition.engines {
                Page::progress(format_args!(
                    "paths: {}, {} on .NET {}",
                    condition.name,
                    engine.name(),
                    runtime.version
                ));
                let least = if plan.quick { QUICK } else { least };
                let series = measure_series(runtime, condition, engine, least, &mut shapes)?;
                if let Some(series) = &series {
                    let equal = series.tally.equal_percent();
                    Page::progress(format_args!("    {equal:.2} % of {} are equal", series.tally.samples));
                }
                all.extend(series);
            }
        }
    }
    tables::print(&all, &shapes, page);
    Ok(all.iter().filter(|series| series.is_ours() && !series.is_met()).count())
}

/// Measures a whole series; `None` if the engine is not available here.
fn measure_series(
    runtime: &'static Runtime,
    condition: &'static Condition,
    engine: Engine,
    least: u64,
    shapes: &mut Shapes,
) -> Result<Option<Series>, String> {
    let (mut tally, mut cpu_ns, mut weight_ns, mut broken) = (Tally::default(), 0, 0, Vec::new());
    for seed in 1..=MOST_RUNS {
        let run = match sampled::run(runtime, condition, engine, (least, seed), shapes)? {
            Outcome::Judged(run) => run,
            Outcome::Broken(why) => {
                broken.push(format!("seed {seed}: {}", why.lines().next().unwrap_or_default()));
                continue;
            }
            Outcome::NotHere => return Ok(None),
        };
        tally.join(run.tally);
        cpu_ns += run.cpu_ns;
        weight_ns += run.weight_ns;
        if tally.samples >= least {
            break;
        }
    }
    let covered = (cpu_ns > 0).then(|| 100.0 * weight_ns as f64 / cpu_ns as f64);
    Ok(Some(Series { runtime, condition, engine, tally, covered, broken }))
}
