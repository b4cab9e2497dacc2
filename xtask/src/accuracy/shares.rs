//! Shares of CPU time of four groups with very different numbers of calls. CPU time, because on a busy machine the wall time of a
//! program tells more about the others than about itself.

use clrscope_analysis::{Query, functions};
use clrscope_testkit::Runtime;

use crate::agents::{program, under_agent};
use crate::measured::{Spread, run as run_measured};

/// How much to run.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Bare runs, and runs under each clock.
    pub(super) runs: usize,
    /// Rounds of the program in each.
    pub(super) rounds: usize,
}

const GROUPS: [&str; 4] = ["Dense", "Medium", "Sparse", "Lone"];
/// The clocks with their limits of goal P12, in points.
const CLOCKS: [(&str, f64); 2] = [("calls", 5.0), ("calls:clock=tsc", 10.0)];

/// One value per group.
type PerGroup = [f64; 4];

/// What the program says about itself.
struct Truth {
    calls: [u64; 4],
    /// CPU nanoseconds.
    times: PerGroup,
    shares: PerGroup,
}

/// What a report says.
struct Reported {
    calls: [u64; 4],
    /// CPU nanoseconds as measured.
    measured: PerGroup,
    raw: PerGroup,
    shown: PerGroup,
    low: PerGroup,
    high: PerGroup,
    enter_ns: f64,
    leave_ns: f64,
    pair_low_ns: f64,
    pair_high_ns: f64,
}

/// Runs the interleaved series and prints the table; how many goals were missed.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub(super) fn run(runtime: &Runtime, plan: Plan) -> Result<usize, String> {
    let (mut bare, mut reported) = (Vec::new(), [Vec::new(), Vec::new()]);
    for _ in 0..plan.runs {
        bare.push(run_bare(runtime, plan.rounds)?);
        for (clock, list) in CLOCKS.iter().zip(&mut reported) {
            list.push(run_under(runtime, plan.rounds, clock.0)?);
        }
    }
    let truth: Vec<Spread> = (0..4).map(|g| of(&bare, |b| b.shares[g])).collect();
    println!("\nshares of CPU time, in percent; medians of {} runs each, interleaved", plan.runs);
    let mut missed = 0;
    for ((clock, limit), list) in CLOCKS.iter().zip(&reported) {
        missed += print_clock(clock, *limit, &bare, &truth, list);
    }
    Ok(missed)
}

fn of<T>(runs: &[T], value: impl Fn(&T) -> f64) -> Spread {
    Spread::of(&runs.iter().map(value).collect::<Vec<_>>())
}

#[expect(clippy::print_stdout, reason = "a command line tool")]
fn print_clock(clock: &str, limit: f64, bare: &[Truth], truth: &[Spread], list: &[Reported]) -> usize {
    let cost = |value: fn(&Reported) -> f64| of(list, value).median;
    println!(
        "\n{clock}: a pair of hooks {:.2} ns ({:.2} to {:.2}), {:.2} of it on the callee's time",
        cost(|r| r.enter_ns + r.leave_ns),
        cost(|r| r.pair_low_ns),
        cost(|r| r.pair_high_ns),
        cost(|r| r.leave_ns)
    );
    println!("  group    calls        bare (spread)    raw     shown (spread)   off   bounds          a pair   P12");
    let mut missed = 0;
    for (g, group) in GROUPS.iter().enumerate() {
        let (raw, shown) = (of(list, |r| r.raw[g]), of(list, |r| r.shown[g]));
        let (low, high) = (of(list, |r| r.low[g]).median, of(list, |r| r.high[g]).median);
        let off = shown.median - truth[g].median;
        let exact = list.iter().all(|r| r.calls[g] == bare[0].calls[g]);
        let near = off.abs() <= limit + truth[g].width();
        let inside = low <= truth[g].high && truth[g].low <= high;
        // What a pair cost here, in truth: `Lone` makes no calls and tells how fast the machine was.
        let pair = list
            .iter()
            .zip(bare)
            .map(|(r, b)| (r.measured[g] - b.times[g] * r.measured[3] / b.times[3]) / r.calls[g].max(1) as f64);
        let pair = Spread::of(&pair.collect::<Vec<_>>()).median;
        missed += usize::from(!exact) + usize::from(!near) + usize::from(!inside);
        let verdict = match (exact, near, inside) {
            (true, true, true) => "met",
            (false, ..) => "CALLS DIFFER",
            (_, false, _) => "MISSED",
            (.., false) => "OUTSIDE BOUNDS",
        };
        println!(
            "  {group:7} {:>11}  {:6.1} ({:3.1})   {:6.1}   {:6.1} ({:3.1})   {off:+5.1}   {low:5.1} to {high:5.1}   {pair:6.2}   {verdict}",
            bare[0].calls[g],
            truth[g].median,
            truth[g].width(),
            raw.median,
            shown.median,
            shown.width()
        );
    }
    missed
}

fn run_bare(runtime: &Runtime, rounds: usize) -> Result<Truth, String> {
    let output = run_measured(runtime.command(&program("Shares")?).arg(rounds.to_string()))?.stdout;
    let (mut calls, mut times) = ([0; 4], [0.0; 4]);
    for (g, group) in GROUPS.iter().enumerate() {
        let line = output.lines().find_map(|line| line.strip_prefix(group)?.strip_prefix(' '));
        let (count, ns) = line.and_then(|line| line.split_once(' ')).ok_or("Shares printed something else")?;
        calls[g] = count.parse().map_err(|_| "Shares printed no count")?;
        times[g] = ns.parse().map_err(|_| "Shares printed no time")?;
    }
    Ok(Truth { calls, times, shares: shares(times) })
}

fn run_under(runtime: &Runtime, rounds: usize, request: &str) -> Result<Reported, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let out = folder.path().join("run.clrs.d");
    let mut command = runtime.command(&program("Shares")?);
    under_agent(command.arg(rounds.to_string()), request, &out);
    run_measured(&mut command)?;
    let recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
    let query = Query { raw: true, ..Query::default() };
    let rows = functions(&recording, &query).map_err(|problem| format!("{problem:?}"))?.rows;
    let (mut calls, mut measured, mut shown, mut least, mut most) = ([0; 4], [0.0; 4], [0.0; 4], [0.0; 4], [0.0; 4]);
    for (g, group) in GROUPS.iter().enumerate() {
        let (caller, callee) = (format!("Shares::{group}"), format!("Shares::{group}Callee"));
        for row in rows.iter().filter(|row| row.function.name() == caller || row.function.name() == callee) {
            let times = &row.times;
            if row.function.name() == callee {
                calls[g] += times.calls;
            }
            let all = times.exclusive_cpu_ns.ok_or("a row without CPU time")? as f64;
            let less = |share: u64| (all - share as f64).max(0.0);
            measured[g] += all;
            shown[g] += less(times.profiler_ns);
            least[g] += less(times.profiler_high_ns);
            most[g] += less(times.profiler_low_ns);
        }
    }
    let cost = recording.processes[0].calls.as_ref().map(|calls| calls.hook_cost).unwrap_or_default();
    Ok(Reported {
        calls,
        measured,
        raw: shares(measured),
        shown: shares(shown),
        low: bounds(least, most),
        high: bounds(most, least),
        enter_ns: cost.enter_ns,
        leave_ns: cost.leave_ns,
        pair_low_ns: cost.pair_low_ns,
        pair_high_ns: cost.pair_high_ns,
    })
}

/// Percent of the sum.
fn shares(times: PerGroup) -> PerGroup {
    let all: f64 = times.iter().sum();
    times.map(|time| if all > 0.0 { 100.0 * time / all } else { 0.0 })
}

/// Each group's share with `own` for itself and `others` for the rest.
fn bounds(own: PerGroup, others: PerGroup) -> PerGroup {
    let all: f64 = others.iter().sum();
    std::array::from_fn(|g| {
        let sum = all - others[g] + own[g];
        if sum > 0.0 { 100.0 * own[g] / sum } else { 0.0 }
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn bounds_take_the_most_for_oneself_and_the_least_for_others() {
        let (least, most) = ([10.0, 0.0, 30.0, 40.0], [20.0, 10.0, 40.0, 50.0]);
        assert_eq!(super::shares(least)[3], 50.0);
        assert_eq!(super::bounds(least, most)[0], 100.0 * 10.0 / 110.0);
        assert_eq!(super::bounds(most, least)[0], 100.0 * 20.0 / 90.0);
    }
}
