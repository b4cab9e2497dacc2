//! Shares of CPU time of groups of functions that differ much in how they call and wait. CPU time
//! is used because on a busy machine a program's wall time depends more on other programs than on
//! itself.

use clrscope_analysis::{Query, functions};
use clrscope_recording::model::{HookCost, Process};
use clrscope_testkit::Runtime;

use super::bounds::{self, Bounded};
use super::page::Page;
use crate::agents::{program as dll, under_agent};
use crate::measured::{Spread, run as run_measured};

/// Number and kind of runs.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Number of bare runs, and of runs under each clock.
    pub(super) runs: usize,
    /// Number of rounds of the program in each run.
    pub(super) rounds: usize,
    /// Whether other threads keep the processors busy: then only bounds and counts are goals.
    pub(super) loaded: bool,
    /// Whether this is a quick look with so few runs that goals mean little.
    pub(super) quick: bool,
}

/// A program whose groups of functions print their calls and times. The last group makes no calls.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) groups: &'static [&'static str],
}

pub(super) const PROGRAMS: [Program; 2] = [
    Program {
        name: "Shares",
        about: "a call every two, ten, two hundred nanoseconds, and none",
        groups: &["Dense", "Medium", "Sparse", "Lone"],
    },
    Program {
        name: "Mixed",
        about: "waits for memory, for each other, for arithmetic, for wrong guesses, for nothing",
        groups: &["Chase", "Fib", "Sum", "Turns", "Lone"],
    },
];

/// The clocks with their limits of goal P12, in points.
const CLOCKS: [(&str, f64); 2] = [("calls", 5.0), ("calls:clock=tsc", 10.0)];

/// One value per group.
pub(super) type PerGroup = Vec<f64>;

/// What the program measured itself.
pub(super) struct Truth {
    calls: Vec<u64>,
    /// CPU time of each group in nanoseconds.
    pub(super) times: PerGroup,
    pub(super) shares: PerGroup,
}

/// A report's account.
struct Reported {
    calls: Vec<u64>,
    /// CPU nanoseconds as measured.
    measured: PerGroup,
    /// Account of the program in the same run, hooks included.
    own: Truth,
    raw: PerGroup,
    shown: PerGroup,
    low: PerGroup,
    high: PerGroup,
    /// CPU nanoseconds without the profiler, at least and at most.
    least: PerGroup,
    most: PerGroup,
    /// CPU nanoseconds that hooks took by the recording, at least and at most.
    hooks: Vec<(f64, f64)>,
    /// Mean step of the samples, CPU nanoseconds.
    step: f64,
    /// Of a pair of hooks, where nothing better is known.
    cost: HookCost,
    /// Cost of a pair as the run itself found it, where it could.
    pairs: Vec<Option<f64>>,
}

/// Runs the interleaved series of each program and prints the tables. Returns the number of missed
/// goals.
pub(super) fn run(runtime: &Runtime, plan: Plan, page: &mut Page) -> Result<usize, String> {
    let mut rows = Vec::new();
    let missed = PROGRAMS.iter().try_fold(0, |missed, program| {
        Ok::<_, String>(missed + run_program(runtime, program, plan, (page, &mut rows))?)
    })?;
    page.line(format_args!("\ncalls: rows of all runs"));
    Ok(missed + bounds::print(&rows, true, page))
}

fn run_program(
    runtime: &Runtime,
    program: &Program,
    plan: Plan,
    (page, rows): (&mut Page, &mut Vec<Bounded>),
) -> Result<usize, String> {
    let (mut bare, mut reported) = (Vec::new(), [Vec::new(), Vec::new()]);
    for run in 1..=plan.runs {
        Page::progress(format_args!("{}: run {run} of {}", program.name, plan.runs));
        bare.push(run_bare(runtime, program, plan.rounds)?);
        for (clock, list) in CLOCKS.iter().zip(&mut reported) {
            list.push(run_under(runtime, program, plan.rounds, clock.0)?);
        }
    }
    let truth: Vec<Spread> = (0..program.groups.len()).map(|g| spread_of(&bare, |b| b.shares[g])).collect();
    page.line(format_args!("\n{}: {}", program.name, program.about));
    page.line(format_args!("shares of CPU time, in percent; medians of {} runs each, interleaved", plan.runs));
    let mut missed = 0;
    for ((clock, limit), list) in CLOCKS.iter().zip(&reported) {
        // Where others have the processors shares are what they leave.
        let limit = if plan.loaded { f64::INFINITY } else { *limit };
        missed += print_clock(program, (clock, limit), (&bare, &truth), list, page);
        let of_clock = bounded(program, &bare, list);
        // The rows of one clock are too few for a verdict of their own.
        bounds::print(&of_clock, false, page);
        rows.extend(of_clock);
    }
    Ok(missed)
}

pub(super) fn spread_of<T>(runs: &[T], value: impl Fn(&T) -> f64) -> Spread {
    Spread::from_values(&runs.iter().map(value).collect::<Vec<_>>())
}

fn print_clock(
    program: &Program,
    (clock, limit): (&str, f64),
    (bare, truth): (&[Truth], &[Spread]),
    list: &[Reported],
    page: &mut Page,
) -> usize {
    let lone = program.groups.len() - 1;
    let cost = |value: fn(&HookCost) -> f64| spread_of(list, |r| value(&r.cost)).median;
    page.line(format_args!(
        "\n{clock}: a pair of hooks {:.2} ns ({:.2} to {:.2}), {:.2} of it on the callee's time",
        cost(|c| c.enter_ns + c.leave_ns),
        cost(|c| c.pair_low_ns),
        cost(|c| c.pair_high_ns),
        cost(|c| c.leave_ns)
    ));
    page.line(format_args!(
        "  group    calls        bare (spread)    raw     shown (spread)   off   bounds          a pair  found   P12"
    ));
    let mut missed = 0;
    for (g, group) in program.groups.iter().enumerate() {
        let (raw, shown) = (spread_of(list, |r| r.raw[g]), spread_of(list, |r| r.shown[g]));
        let (low, high) = (spread_of(list, |r| r.low[g]).median, spread_of(list, |r| r.high[g]).median);
        let off = shown.median - truth[g].median;
        let exact = list.iter().all(|r| r.calls[g] == bare[0].calls[g]);
        let near = off.abs() <= limit + truth[g].width();
        let inside = low <= truth[g].high && truth[g].low <= high;
        // True cost of a pair here: `Lone` makes no calls and shows how fast the machine was.
        let pair = list
            .iter()
            .zip(bare)
            .map(|(r, b)| (r.measured[g] - b.times[g] * r.measured[lone] / b.times[lone]) / r.calls[g].max(1) as f64);
        let pair = Spread::from_values(&pair.collect::<Vec<_>>()).median;
        let found: Vec<f64> = list.iter().filter_map(|r| r.pairs[g]).collect();
        let found =
            if found.is_empty() { "-".to_owned() } else { format!("{:.2}", Spread::from_values(&found).median) };
        missed += usize::from(!exact) + usize::from(!near) + usize::from(!inside);
        let verdict = match (exact, near, inside) {
            (true, true, true) => "met",
            (false, ..) => "CALLS DIFFER",
            (_, false, _) => "MISSED",
            (.., false) => "OUTSIDE BOUNDS",
        };
        page.line(format_args!(
            "  {group:7} {:>11}  {:6.1} ({:3.1})   {:6.1}   {:6.1} ({:3.1})   {off:+5.1}   {low:5.1} to {high:5.1}   {pair:6.2} {found:>6}   {verdict}",
            bare[0].calls[g],
            truth[g].median,
            truth[g].width(),
            raw.median,
            shown.median,
            shown.width()
        ));
    }
    missed
}

/// Times of single runs next to the truth. That is what the program itself measured in the same
/// run, hooks included; without the profiler it is what the bare runs took, at the pace of the same
/// run: processors are slower where others want them and their caches. `Lone` makes no calls and
/// shows the pace. Bare runs differ among themselves: the middle half of them counts.
fn bounded(program: &Program, bare: &[Truth], list: &[Reported]) -> Vec<Bounded> {
    let lone = program.groups.len() - 1;
    let rows = list.iter().flat_map(|r| (0..=lone).map(move |g| (r, g)));
    rows.map(|(r, g)| {
        let mut paces: Vec<f64> = bare.iter().map(|b| b.times[g] / b.times[lone] * r.own.times[lone]).collect();
        paces.sort_by(f64::total_cmp);
        Bounded {
            measured: r.measured[g],
            step: r.step,
            taken: r.own.times[g],
            within: (r.least[g], r.most[g]),
            hooks: r.hooks[g],
            truth: (paces[paces.len() / 4], paces[(paces.len() * 3 / 4).min(paces.len() - 1)]),
        }
    })
    .collect()
}

fn run_bare(runtime: &Runtime, program: &Program, rounds: usize) -> Result<Truth, String> {
    let output = run_measured(runtime.command(&dll(program.name)?).arg(rounds.to_string()))?.stdout;
    account(program, &output)
}

/// Parses what the program measured itself from its output.
pub(super) fn account(program: &Program, output: &str) -> Result<Truth, String> {
    let (mut calls, mut times) = (Vec::new(), Vec::new());
    for group in program.groups {
        let line = output.lines().find_map(|line| line.strip_prefix(group)?.strip_prefix(' '));
        let (count, ns) = line.and_then(|line| line.split_once(' ')).ok_or("the program printed something else")?;
        calls.push(count.parse().map_err(|_| "the program printed no count")?);
        times.push(ns.parse().map_err(|_| "the program printed no time")?);
    }
    Ok(Truth { calls, shares: shares(&times), times })
}

fn run_under(runtime: &Runtime, program: &Program, rounds: usize, request: &str) -> Result<Reported, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let out = folder.path().join("run.clrs.d");
    let mut command = runtime.command(&dll(program.name)?);
    under_agent(command.arg(rounds.to_string()), request, &out);
    let own = account(program, &run_measured(&mut command)?.stdout)?;
    let recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
    let query = Query { raw: true, ..Query::default() };
    let rows = functions(&recording, &query).map_err(|problem| format!("{problem:?}"))?.rows;
    let none = || vec![0.0; program.groups.len()];
    let (mut calls, mut hooks) = (vec![0; program.groups.len()], vec![(0.0, 0.0); program.groups.len()]);
    let (mut measured, mut shown, mut least, mut most) = (none(), none(), none(), none());
    for (g, group) in program.groups.iter().enumerate() {
        // The group's own function, and below it those whose names begin with its.
        let caller = format!("{}::{group}", program.name);
        for row in rows.iter().filter(|row| row.function.name().starts_with(&caller)) {
            let times = &row.times;
            if row.function.name() != caller {
                calls[g] += times.calls;
            }
            let all = times.exclusive_cpu_ns.ok_or("a row without CPU time")? as f64;
            let bounds = times.exclusive_cpu_bounds_ns.ok_or("a row without bounds")?;
            measured[g] += all;
            shown[g] += (all - times.profiler_ns as f64).max(0.0);
            least[g] += bounds.0 as f64;
            most[g] += bounds.1 as f64;
            hooks[g].0 += times.profiler_low_ns as f64;
            hooks[g].1 += times.profiler_high_ns as f64;
        }
    }
    let process = &recording.processes[0];
    let instrument = process.calls.as_ref().ok_or("a recording without calls")?;
    Ok(Reported {
        calls,
        own,
        step: instrument.sample_steps.cpu_ns as f64,
        raw: shares(&measured),
        measured,
        shown: shares(&shown),
        low: bounds(&least, &most),
        high: bounds(&most, &least),
        least,
        most,
        hooks,
        cost: instrument.hook_cost,
        pairs: program.groups.iter().map(|group| pair_in(process, &format!("{}::{group}", program.name))).collect(),
    })
}

/// Cost of a pair as measured in the calls that a function makes.
fn pair_in(process: &Process, caller: &str) -> Option<f64> {
    let calls = process.calls.as_ref()?;
    let is_caller = |index: u32| process.functions.get(index as usize).is_some_and(|f| f.name == caller);
    let measured = calls.pair_costs.iter().find(|pair| is_caller(pair.caller))?;
    Some(measured.cost.enter_ns + measured.cost.leave_ns)
}

/// Each time as a percentage of the sum.
pub(super) fn shares(times: &[f64]) -> PerGroup {
    let all: f64 = times.iter().sum();
    times.iter().map(|time| if all > 0.0 { 100.0 * time / all } else { 0.0 }).collect()
}

/// Each group's share with `own` for itself and `others` for the rest.
fn bounds(own: &[f64], others: &[f64]) -> PerGroup {
    let all: f64 = others.iter().sum();
    let of = |(own, other): (&f64, &f64)| {
        let sum = all - other + own;
        if sum > 0.0 { 100.0 * own / sum } else { 0.0 }
    };
    own.iter().zip(others).map(of).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn bounds_take_the_most_for_oneself_and_the_least_for_others() {
        let (least, most) = ([10.0, 0.0, 30.0, 40.0], [20.0, 10.0, 40.0, 50.0]);
        assert_eq!(super::shares(&least)[3], 50.0);
        assert_eq!(super::bounds(&least, &most)[0], 100.0 * 10.0 / 110.0);
        assert_eq!(super::bounds(&most, &least)[0], 100.0 * 20.0 / 90.0);
    }
}
