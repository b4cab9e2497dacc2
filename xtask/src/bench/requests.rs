//! Nanoseconds of a request that is served and of one that is made, by what is recorded of them.

use super::absolute::{Line, verdict};
use super::programs::Under::{Agent, Bare};
use super::programs::{Bench, Program, Requests};
use super::series;
use crate::measured::{Spread, run};

/// Thousands of requests: so many that the agent's start, 100 ms, is next to nothing beside them.
const THOUSANDS: u32 = 600;
/// What a request may cost, in nanoseconds of CPU time (goal P17).
const MOST_NS: f64 = 2_000.0;

/// Runs of each kind for the figure of memory, which take half a minute each.
const RUNS: usize = 3;
/// Thousands of paths, and bytes that they and the requests under way may take.
const PATHS: u32 = 1_000;
const MOST_MIB: f64 = 64.0;

/// Line of the report: memory that a million paths and 10,000 requests under way take more than
/// without the agent, the events of the recording among it.
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

/// Lines of the report: CPU time that a request takes more than without the agent.
pub(super) fn price_of_a_request(bench: &Bench, pairs: usize) -> Result<Vec<Line>, String> {
    let lines = [Requests::Served, Requests::Made].into_iter().map(|which| {
        let program = Program::Requests(which, THOUSANDS);
        let bare = run(&mut bench.command(program, Bare)?)?;
        let requests: f64 = bare.stdout.trim().parse().map_err(|_| "Requests printed no number")?;
        let command = |under| move || bench.command(program, under);
        let more = series::measure(&command(Agent("requests")), &command(Bare), pairs)?.more_ms;
        let [median, low, high] = [more.median, more.low, more.high].map(|ms| ms * 1e6 / requests);
        let before = (bare.user + bare.system).as_secs_f64() * 1e9 / requests;
        let title = format!("a request that is {}, beside the bare one of {before:.0} ns", which.name());
        Ok(("P17", title, format!("{median:.0} ns ({low:.0} to {high:.0})"), verdict(median <= MOST_NS)))
    });
    lines.collect()
}
