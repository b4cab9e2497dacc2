//! Compares shares of CPU time by samples of `cpu`, with both engines, with bare runs of the same
//! programs.

use clrscope_analysis::{Query, functions, share_bounds};
use clrscope_recording::model::SamplingEngine;
use clrscope_testkit::Runtime;

use super::page::Page;
use super::shares::{PROGRAMS, PerGroup, Plan, Program, Truth, account, shares, spread_of};
use crate::agents::{program as dll, under_agent};
use crate::measured::{Spread, run as run_measured};

/// Points that a share may be off.
const LIMIT: f64 = 1.0;

const ENGINES: [(&str, SamplingEngine); 2] =
    [("cpu:engine=perf", SamplingEngine::Perf), ("cpu:engine=timer", SamplingEngine::Timer)];

/// Two functions that take turns.
const BEATS: Program = Program { name: "Beats", about: "two functions that take turns", groups: &["Even", "Odd"] };
/// Microseconds of a turn: half the sampling interval and the whole of it, half a tick of the
/// kernel and the whole of it.
const TURNS: [usize; 4] = [500, 1_000, 2_000, 4_000];
/// CPU time of a run of `Beats` for each of the rounds of a plan, microseconds.
const BEATS_US: usize = 4_000;

/// Runs the interleaved series of each program and prints the tables. Returns the number of missed
/// goals.
pub(super) fn run(runtime: &Runtime, plan: Plan, page: &mut Page) -> Result<usize, String> {
    let mut missed = 0;
    for program in &PROGRAMS {
        let arguments = [plan.rounds.to_string()];
        missed += run_program(runtime, (program, ""), &arguments, plan, page)?;
    }
    for turn in TURNS {
        let pairs = (plan.rounds * BEATS_US / (2 * turn)).max(1);
        let about = format!(" of {turn} microseconds");
        missed += run_program(runtime, (&BEATS, &about), &[turn.to_string(), pairs.to_string()], plan, page)?;
    }
    Ok(missed)
}

/// Shares that one run under the agent shows.
struct Shown {
    engine: SamplingEngine,
    shares: PerGroup,
    /// Samples in all groups.
    samples: u64,
}

fn run_program(
    runtime: &Runtime,
    (program, more): (&Program, &str),
    arguments: &[String],
    plan: Plan,
    page: &mut Page,
) -> Result<usize, String> {
    let (mut bare, mut shown) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..plan.runs {
        let output = run_measured(runtime.command(&dll(program.name)?).args(arguments))?.stdout;
        bare.push(account(program, &output)?);
        for ((request, _), list) in ENGINES.iter().zip(&mut shown) {
            list.push(run_under(runtime, program, arguments, request)?);
        }
    }
    page.line(format_args!("\n{}: {}{more}", program.name, program.about));
    page.line(format_args!(
        "shares of CPU time by samples, in percent; medians of {} runs each, interleaved",
        plan.runs
    ));
    let each = ENGINES.iter().zip(&shown);
    Ok(each.map(|(engine, list)| print_engine(program, *engine, &bare, list, plan.loaded, page)).sum())
}

fn print_engine(
    program: &Program,
    (request, engine): (&str, SamplingEngine),
    bare: &[Truth],
    list: &[Shown],
    loaded: bool,
    page: &mut Page,
) -> usize {
    if list.iter().any(|shown| shown.engine != engine) {
        page.line(format_args!("\n{request}: not to be had here"));
        return 0;
    }
    let samples = spread_of(list, |shown| shown.samples as f64).median;
    page.line(format_args!("\n{request}: {samples:.0} samples a run"));
    page.line(format_args!("  group    bare (spread)    shown (spread)   off   stated          P12"));
    let mut missed = 0;
    for (g, group) in program.groups.iter().enumerate() {
        let (truth, found) = (spread_of(bare, |b| b.shares[g]), spread_of(list, |shown| shown.shares[g]));
        let (low, high) = share_bounds(found.median / 100.0, samples as u64);
        let met = is_met(truth, found, (100.0 * low, 100.0 * high));
        // Timers go off at the kernel's ticks, whatever one does, and these programs take turns in
        // step with them.
        let in_step = engine == SamplingEngine::Timer && program.name == BEATS.name;
        // Where others have the processors, what they leave decides what a share is.
        missed += usize::from(!met && !loaded && !in_step);
        page.line(format_args!(
            "  {group:7}  {:5.1} ({:3.1})     {:5.1} ({:3.1})   {:+5.1}   {:5.1} to {:5.1}   {}",
            truth.median,
            truth.width(),
            found.median,
            found.width(),
            found.median - truth.median,
            100.0 * low,
            100.0 * high,
            match (met, in_step) {
                (true, _) => "met",
                (false, true) => "in step with the ticks",
                (false, false) => "MISSED",
            }
        ));
    }
    missed
}

/// Whether what is shown is near the truth, or the truth within the bounds that are stated; all in
/// percent.
fn is_met(truth: Spread, shown: Spread, (low, high): (f64, f64)) -> bool {
    let is_near = (shown.median - truth.median).abs() <= LIMIT + truth.width();
    is_near || (low <= truth.median && truth.median <= high)
}

fn run_under(runtime: &Runtime, program: &Program, arguments: &[String], request: &str) -> Result<Shown, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let out = folder.path().join("run.clrs.d");
    let mut command = runtime.command(&dll(program.name)?);
    under_agent(command.args(arguments), request, &out);
    run_measured(&mut command)?;
    let recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
    let view = functions(&recording, &Query::default()).map_err(|problem| problem.to_string())?;
    let of_group = |group: &&str| {
        let name = format!("{}::{group}", program.name);
        let row = view.rows.iter().find(|row| row.function.name() == name);
        // A group that no sample met has a share, too: none.
        row.map(|row| row.amount).unwrap_or_default()
    };
    let amounts: Vec<_> = program.groups.iter().map(of_group).collect();
    let times: Vec<f64> = amounts.iter().map(|amount| amount.total as f64).collect();
    let samplers = recording.processes.iter().flat_map(|process| &process.samplers);
    let engine = samplers.map(|sampler| sampler.engine).next().unwrap_or_default();
    Ok(Shown { engine, shares: shares(&times), samples: amounts.iter().map(|amount| amount.samples.total).sum() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_right_near_the_truth_or_where_the_bounds_hold_it() {
        let exactly = |share: f64| Spread { median: share, low: share, high: share };
        assert!(is_met(exactly(50.0), exactly(50.9), (50.8, 51.0)), "near");
        assert!(is_met(exactly(50.0), exactly(53.0), (49.0, 57.0)), "within");
        assert!(!is_met(exactly(50.0), exactly(90.0), (88.0, 92.0)), "aliased");
        assert!(
            is_met(Spread { median: 50.0, low: 49.0, high: 51.0 }, exactly(52.9), (52.8, 53.0)),
            "the truth is as wide"
        );
    }
}
