//! Nanoseconds per served request, per request that the program makes, and per command to a
//! database.

use super::absolute::{Line, verdict};
use super::programs::Under::{Agent, Bare};
use super::programs::{Bench, Program, Requests};
use super::series;
use crate::measured::{Spread, run};

/// Thousands of requests behind which the runtime has compiled everything for good.
const WARM_UP: u32 = 200;
/// Thousands of requests, these among them.
const THOUSANDS: u32 = 800;
/// What a request may cost, in nanoseconds of CPU time (goal P17).
const MOST_NS: f64 = 2_000.0;

/// Runs of each kind for the figure of memory, which take half a minute each.
const RUNS: usize = 3;
/// Thousands of paths, and bytes that they and the requests under way may take.
const PATHS: u32 = 1_000;
const MOST_MIB: f64 = 64.0;

/// Line of the report: additional memory under the agent for a million paths and 10,000 active
/// requests, including the events of the recording.
pub(super) fn memory(bench: &Bench) -> Result<Line, String> {
    let resident = |under| -> Result<Spread, String> {
        let sizes = (0..RUNS).map(|_| {
            let printed = run(&mut bench.command(Program::Requests(Requests::Many, PATHS), under)?)?.stdout;
            printed.trim().parse::<f64>().map_err(|_| "Requests printed no number".to_owned())
        });
        Ok(Spread::from_values(&sizes.collect::<Result<Vec<_>, _>>()?))
    };
    let mebi = |bytes: f64| bytes / 1_048_576.0;
    let [with, bare] = [resident(Agent("requests"))?, resident(Bare)?].map(|spread| mebi(spread.median));
    let figure = format!("{:.1} MiB more: {with:.1} against {bare:.1} MiB", with - bare);
    let title = "a million paths served, then 10,000 requests under way, memory".to_owned();
    Ok(("P17", title, figure, verdict(with - bare <= MOST_MIB)))
}

/// Lines of the report: additional CPU time per request under the agent, while the program warms up
/// (including the agent's start) and afterwards.
pub(super) fn price_of_a_request(bench: &Bench, pairs: usize) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for which in [Requests::Served, Requests::Made, Requests::Commands] {
        let more = |thousands| {
            let command = |under| move || bench.command(Program::Requests(which, thousands), under);
            series::measure(&command(Agent("requests")), &command(Bare), pairs).map(|compared| compared.more_ms)
        };
        let bare = |thousands| -> Result<f64, String> {
            let bare = run(&mut bench.command(Program::Requests(which, thousands), Bare)?)?;
            Ok((bare.user + bare.system).as_secs_f64() * 1e3)
        };
        let (early, all) = (more(WARM_UP)?, more(THOUSANDS)?);
        let (bare_early, bare_all) = (bare(WARM_UP)?, bare(THOUSANDS)?);
        let each = |ms: f64, thousands: u32| ms * 1e3 / f64::from(thousands);
        let later = |all: f64| each(all - early.median, THOUSANDS - WARM_UP);
        let [median, low, high] = [all.median, all.low, all.high].map(later);
        let one = which.one();
        let beside = |ns: f64| format!("beside the bare one of {ns:.0} ns");
        lines.push((
            "P17",
            format!("{one}, {}", beside(each(bare_all - bare_early, THOUSANDS - WARM_UP))),
            format!("{median:.0} ns ({low:.0} to {high:.0})"),
            verdict(median <= MOST_NS),
        ));
        let [median, low, high] = [early.median, early.low, early.high].map(|ms| each(ms, WARM_UP));
        lines.push((
            "P17",
            format!("one of the first {WARM_UP},000, with the start, {}", beside(each(bare_early, WARM_UP))),
            format!("{median:.0} ns ({low:.0} to {high:.0})"),
            "",
        ));
    }
    Ok(lines)
}
