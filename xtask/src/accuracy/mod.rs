//! `cargo xtask accuracy`: programs that know their own answer, against what the report says.
//!
//! `Shares` has four groups of functions whose calls differ by orders of magnitude, `Mixed` five
//! that wait for different things. They measure, with the thread's own CPU clock, how long each
//! group takes; bare runs give the truth and its spread, runs under the agent are interleaved with
//! them. Call counts must be equal, shares within the limit of goal P12 plus the spread of the bare
//! runs. `Times` sleeps, managed and native, spins and works.
//!
//! Samples of `cpu`, by both engines, must have the same shares; `Beats` has two functions that
//! take turns in step with the sampling interval and with ticks of the kernel.
//!
//! `Allocated` allocates objects of random sizes and measures how much of each type, on every
//! runtime at hand.
//!
//! `KnownPaths` knows its call paths, which stacks of samples must equal (`--paths`, that is
//! `--only paths,stops,callers,slower`), and `Slower` which method was made slower. `Roots` has
//! ways to wait, whose chains of awaiters exceptions must have.
//!
//! Bounds of single runs, of times as of sampled bytes, hold the truth in 95 of 100 rows, or so
//! many that chance may have done the rest (see [`bounds`]).
//!
//! With `--loaded` others keep every processor busy meanwhile: shares may be off then, but bounds
//! and counts are true. Runs are fewer and shorter then, as each takes three times as long or more.
//!
//! Each part goes into a section of its own of `docs/accuracy.md`, as soon as it is measured; with
//! `--only` the others stay as they are. With `--loaded`, `--quick` (fewer samples of paths) or
//! other numbers of runs and rounds than usual, nothing is written there.

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

/// Runs everything; fails where a goal is missed.
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
