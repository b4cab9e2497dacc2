//! Nanoseconds of an await that waits, by what is recorded of it.

use super::absolute::{Line, verdict};
use super::programs::Under::{Agent, Bare};
use super::programs::{Bench, Program};
use super::series;
use crate::measured::run;

/// Thousands of awaits.
const THOUSANDS: u32 = 10_000;
/// What an await may cost whose path is not taken, in nanoseconds.
const WITHOUT_PATH_NS: f64 = 60.0;

/// Ways to record an await: in words, and as a request.
const RECORDED: [(&str, &str); 2] = [("without its path", "awaits"), ("with its path", "awaits:exact")];

/// Lines of the report: CPU time that an await takes more than without the agent, in user mode
/// where its path is not taken.
pub(super) fn price_of_an_await(bench: &Bench, pairs: usize) -> Result<Vec<Line>, String> {
    let program = Program::Awaits(THOUSANDS);
    let bare = run(&mut bench.command(program, Bare)?)?;
    let awaits: f64 = bare.stdout.trim().parse().map_err(|_| "Awaits printed no number")?;
    let lines = RECORDED.into_iter().enumerate().map(|(at, (what, request))| {
        let command = |under| move || bench.command(program, under);
        let series = series::measure(&command(Agent(request)), &command(Bare), pairs)?;
        // Chains are read by calls of the system.
        let more = if at == 0 { series.more_user_ms } else { series.more_ms };
        let [median, low, high] = [more.median, more.low, more.high].map(|ms| ms * 1e6 / awaits);
        let met = if at == 0 { verdict(median <= WITHOUT_PATH_NS) } else { "" };
        let title = format!("an await that waits, {what}, beside the bare one");
        Ok(("awaits", title, format!("{median:.1} ns ({low:.1} to {high:.1})"), met))
    });
    lines.collect()
}
