//! `cargo xtask accuracy`: programs that know their own answer, against what the report says.
//!
//! `Shares` has four groups of functions whose calls differ by orders of magnitude, `Mixed` five that wait for
//! different things. They measure, with the thread's own CPU clock, how long each group takes; bare runs give the truth
//! and its spread, runs under the agent are interleaved with them. Call counts must be equal, shares within the limit
//! of goal P12 plus the spread of the bare runs. `Times` sleeps, managed and native, spins and works.
//!
//! Samples of `cpu`, by both engines, must have the same shares; `Beats` has two functions that take turns in step with the
//! sampling interval and with ticks of the kernel.
//!
//! `Allocated` allocates objects of random sizes and measures how much of each type, on every runtime at hand.
//!
//! Bounds of single runs, of times as of sampled bytes, hold the truth in 95 of 100 rows, or so many that chance may have done the
//! rest (see [`bounds`]).
//!
//! With `--loaded` others keep every processor busy meanwhile: shares may be off then, but bounds and counts are true. Runs are fewer and shorter then, as each takes three times as long or more.
//!
//! Without options, which is the whole of it, the tables go into `docs/accuracy.md` as well.

mod allocations;
mod bounds;
mod load;
mod page;
mod sampled;
mod shares;
mod sleeps;

use crate::agents::newest_runtime;
use load::Load;
use page::Page;

/// Parts of the whole, by which `--only` asks for some.
const PARTS: [&str; 4] = ["shares", "samples", "allocations", "sleeps"];

const USAGE: &str =
    "usage: cargo xtask accuracy [--loaded] [--runs N] [--rounds N] [--only shares,samples,allocations,sleeps]";

/// Runs everything; fails where a goal is missed.
///
/// # Errors
/// A sentence for a usage error, a run that failed, or goals that were missed.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let loaded = arguments.iter().any(|word| word == "--loaded");
    let (runs, rounds) = if loaded { (5, 250) } else { (7, 1_000) };
    let mut plan = shares::Plan { runs, rounds, loaded };
    let mut parts = PARTS.to_vec();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--loaded" {
            continue;
        }
        if word == "--only" {
            parts = words.next().map(|only| only.split(',').collect()).ok_or(USAGE)?;
            continue;
        }
        let number = words.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0).ok_or(USAGE)?;
        match word.as_str() {
            "--runs" => plan.runs = number,
            "--rounds" => plan.rounds = number,
            _ => return Err(USAGE.to_owned()),
        }
    }
    if parts.iter().any(|part| !PARTS.contains(part)) {
        return Err(USAGE.to_owned());
    }
    let is_asked = |part| parts.contains(&part);
    let runtime = newest_runtime()?;
    // Built before others want the processors: that takes minutes otherwise.
    clrscope_testkit::agent();
    let _load = plan.loaded.then(Load::begin);
    let mut page = Page::default();
    page.line(format_args!("on .NET {}", runtime.version));
    let mut missed = if is_asked("shares") { shares::run(runtime, plan, &mut page)? } else { 0 };
    missed += if is_asked("samples") { sampled::run(runtime, plan, &mut page)? } else { 0 };
    for runtime in clrscope_testkit::runtimes().iter().filter(|_| is_asked("allocations")) {
        missed += allocations::run(runtime, &mut page)?;
    }
    // How long a sleep takes says nothing where others have the processors.
    missed += if plan.loaded || !is_asked("sleeps") { 0 } else { sleeps::run(runtime, &mut page)? };
    if arguments.is_empty() {
        page.write()?;
    }
    if missed == 0 { Ok(()) } else { Err(format!("{missed} goals missed")) }
}
