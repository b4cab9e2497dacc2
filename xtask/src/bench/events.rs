//! Nanoseconds per event in a program that does almost nothing else, for several ways to record the
//! event.

use super::absolute::{Line, verdict};
use super::programs::Under::{Agent, Bare, Contentions};
use super::programs::{Bench, Program, Under};
use super::series;
use crate::measured::run;

/// A way to record an event.
struct Recorded {
    /// In words.
    what: &'static str,
    under: Under,
    /// What an event may cost in user mode, in nanoseconds; `None` where nothing is promised, and
    /// the time of the system counts, too.
    most_ns: Option<f64>,
}

/// Lines of the report: additional cost of an await that waits, compared with a bare one.
pub(super) fn price_of_an_await(bench: &Bench, pairs: usize) -> Result<Vec<Line>, String> {
    let recorded = [
        Recorded { what: "without its path", under: Agent("awaits"), most_ns: Some(60.0) },
        // Chains are read by calls of the system.
        Recorded { what: "with its path", under: Agent("awaits:exact"), most_ns: None },
    ];
    prices(bench, pairs, ("awaits", "an await that waits"), Program::Awaits(10_000), &recorded)
}

/// Lines of the report: additional cost of a contended acquisition, compared with a bare one.
pub(super) fn price_of_a_contended_lock(bench: &Bench, pairs: usize) -> Result<Vec<Line>, String> {
    let recorded = [
        Recorded { what: "most without their stacks", under: Agent("locks"), most_ns: Some(200.0) },
        Recorded { what: "with its stack", under: Agent("locks:exact"), most_ns: None },
        Recorded { what: "written by the runtime's own event pipe", under: Contentions, most_ns: None },
    ];
    prices(bench, pairs, ("locks", "a contended acquisition"), Program::Contends(200), &recorded)
}

/// Lines about each way to record the events of a program, which prints their number.
fn prices(
    bench: &Bench,
    pairs: usize,
    (id, event): (&'static str, &str),
    program: Program,
    recorded: &[Recorded],
) -> Result<Vec<Line>, String> {
    let bare = run(&mut bench.command(program, Bare)?)?;
    let events: f64 = bare.stdout.trim().parse().map_err(|_| format!("{program:?} printed no number"))?;
    let lines = recorded.iter().map(|&Recorded { what, under, most_ns }| {
        let command = |under| move || bench.command(program, under);
        let series = series::measure(&command(under), &command(Bare), pairs)?;
        let more = if most_ns.is_some() { series.more_user_ms } else { series.more_ms };
        let [median, low, high] = [more.median, more.low, more.high].map(|ms| ms * 1e6 / events);
        let met = most_ns.map_or("", |most_ns| verdict(median <= most_ns));
        let title = format!("{event}, {what}, beside the bare one");
        Ok((id, title, format!("{median:.1} ns ({low:.1} to {high:.1})"), met))
    });
    lines.collect()
}
