//! `cargo xtask accuracy`: runs programs that know their own answer, and compares it with the
//! report.
//!
//! `Shares` has four groups of functions whose call counts differ by orders of magnitude; `Mixed`
//! has five groups that wait for different things. Both measure with the thread's own CPU clock how
//! long each group takes. Bare runs give the truth and its spread; runs under the agent are
//! interleaved with them. Call counts must be equal, and shares must agree within the limit of goal
//! P12 plus the spread of the bare runs. `Times` sleeps (managed and native), spins and works.
//!
//! Samples of `cpu`, by both engines, must have the same shares. `Beats` has two functions that
//! take turns in step with the sampling interval and with ticks of the kernel.
//!
//! `Allocated` allocates objects of random sizes and measures the bytes of each type, on every
//! available runtime.
//!
//! `KnownPaths` knows its call paths, and the stacks of samples must equal these (`--paths`, short
//! for `--only paths,stops,callers,slower`). `Slower` knows which of its methods was made slower.
//! `Roots` has several ways to wait, and exceptions must have the right chain of awaiters.
//!
//! The bounds of single runs, for times as for sampled bytes, must hold the truth in 95 of 100
//! rows, or in so many that chance explains the rest (see [`bounds`]).
//!
//! With `--loaded` other threads keep every processor busy. Shares may then be off, but bounds and
//! counts must still be true. Runs are fewer and shorter, as each takes three times as long or
//! more.
//!
//! Each part is written to its own section of `docs/accuracy.md` as soon as it is measured; with
//! `--only` the other sections stay as they are. Nothing is written with `--loaded`, with `--quick`
//! (fewer samples of paths), or with an unusual number of runs and rounds.

mod allocations;
mod awaiters;
mod bounds;
mod load;
mod page;
mod parts;
mod paths;
mod sampled;
mod shares;
mod sleeps;

use crate::agents::newest_runtime;
use load::Load;
use page::Page;
use parts::{PARTS, headings};

const USAGE: &str = "usage: cargo xtask accuracy [--loaded] [--runs N] [--rounds N] [--only shares,samples,allocations,sleeps,paths,stops,callers,slower,awaiters] [--paths] [--quick]";

/// Runs all parts, and fails if a goal is missed.
///
/// # Errors
/// A sentence for a usage error, a run that failed, or goals that were missed.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let loaded = arguments.iter().any(|word| word == "--loaded");
    let (runs, rounds) = if loaded { (5, 250) } else { (7, 1_000) };
    let mut plan = shares::Plan { runs, rounds, loaded, quick: false };
    let mut parts: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
    let mut is_usual = !loaded;
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--loaded" {
            continue;
        }
        if word == "--quick" {
            (plan.quick, is_usual) = (true, false);
            continue;
        }
        if word == "--paths" {
            parts = vec!["paths", "stops", "callers", "slower"];
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
        is_usual = false;
    }
    if !parts.iter().all(|name| PARTS.iter().any(|part| part.name == *name)) {
        return Err(USAGE.to_owned());
    }
    let newest = newest_runtime()?;
    // Built before others want the processors: that takes minutes otherwise.
    clrscope_testkit::agent();
    let _load = plan.loaded.then(Load::begin);
    let (mut page, mut missed) = (Page::default(), 0);
    for part in PARTS.iter().filter(|part| parts.contains(&part.name) && !(loaded && part.needs_quiet)) {
        page.begin();
        page.line(format_args!("on .NET {}, where nothing else is said", newest.version));
        missed += (part.measure)(plan, &mut page)?;
        if is_usual {
            page.write(&headings(), part.heading, part.about)?;
        }
    }
    if missed == 0 { Ok(()) } else { Err(format!("{missed} goals missed")) }
}
