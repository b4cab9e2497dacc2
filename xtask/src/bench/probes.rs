//! Nanoseconds per probed call, for several ways to record the call.

use super::absolute::{Line, verdict};
use super::programs::Under::{self, Agent, Bare, BareClocks};
use super::programs::{Bench, Program};
use super::series;
use crate::measured::run;

/// Rounds of half a million calls.
const ROUNDS: u32 = 100;
/// Goals of P13 in nanoseconds: a call that is counted and no more, and one with time and histogram
/// on top of two clock reads.
const COUNTED_NS: f64 = 5.0;
const TIMED_NS: f64 = 30.0;

/// Ways to record a call: in words, and as a request.
const RECORDED: [(&str, &str); 5] = [
    ("a line reached once", "probes;probe-at=Tiny.cs:52;probe-at=Tiny.cs:55"),
    ("with time and histogram", "probes;probe=Tiny::Even;probe=Tiny::Odd"),
    ("with up to eight callers", "probes:callers;probe=Tiny::Even;probe=Tiny::Odd"),
    ("recorded by itself", "probes:each,last=64MiB;probe=Tiny::Even;probe=Tiny::Odd"),
    ("with its argument and result", "probes:args,last=64MiB;probe=Tiny::Even;probe=Tiny::Odd"),
];

/// Lines of the report: additional user CPU time per call with probes.
pub(super) fn price_of_a_call(bench: &Bench, pairs: usize) -> Result<Vec<Line>, String> {
    let program = Program::Tiny(ROUNDS);
    let bare = run(&mut bench.command(program, Bare)?)?;
    let calls: f64 = bare.stdout.trim().parse().map_err(|_| "Tiny printed no number")?;
    let price = |under: Under| -> Result<(f64, String), String> {
        let command = |under: Under| move || bench.command(program, under);
        let series = series::measure(&command(under), &command(Bare), pairs)?;
        let ns = |ms: f64| ms * 1e6 / calls;
        let (more, [low, high]) = (series.more_user_ms, [series.more_user_ms.low, series.more_user_ms.high].map(ns));
        Ok((ns(more.median), format!("{:.1} ns ({low:.1} to {high:.1})", ns(more.median))))
    };
    let line = |what: &str, figure, met| ("P13", format!("a probed call {what}, beside the bare one"), figure, met);
    let (clocks, figure) = price(BareClocks)?;
    let mut lines = vec![("P13", "two clock reads in empty hooks, beside the bare call".to_owned(), figure, "")];
    for (at, (what, request)) in RECORDED.into_iter().enumerate() {
        let (ns, figure) = price(Agent(request))?;
        let met = match at {
            0 => verdict(ns <= COUNTED_NS),
            1 => verdict(ns - clocks <= TIMED_NS),
            _ => "",
        };
        lines.push(line(what, figure, met));
    }
    Ok(lines)
}
