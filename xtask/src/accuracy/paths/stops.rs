//! Truth 3: while the runtime has stopped all threads, its own walk of each stack
//! (`DoStackSnapshot`) and the walk of the agent must find the same methods.

use std::path::Path;
use std::process::Command;

use clrscope_contract::request::{AGENT_CLSID, AGENT_VARIABLE};
use clrscope_testkit::{Runtime, RuntimeStops, STOPS_VARIABLE, fixture, hooked_agent, load_profiler, runtimes};

use crate::accuracy::page::Page;
use crate::measured::run as run_measured;

/// Stacks on each runtime in each way, at least.
const LEAST: u64 = 10_000;
/// Stacks for a quick look.
const QUICK: u64 = 1_000;
/// Runs for that at most.
const MOST_RUNS: u64 = 8;
/// Share that must be equal, in percent.
const GOAL: f64 = 99.9;
/// Ways in which the program goes its paths, each with the CPU milliseconds of each of its two
/// threads. A filter that runs during a collection ends the program on 9 and 10 where notifications
/// of exceptions are asked for.
const WAYS: [(&str, &str, &[&str], &str); 2] =
    [("as it comes", "", &[], "7000"), ("collections all the time", "collected", &["-filter"], "2000")];

/// Runs everything and prints a line for each run. Returns the number of missed goals.
pub(in crate::accuracy) fn run(quick: bool, page: &mut Page) -> Result<usize, String> {
    let mut missed = 0;
    page.line(format_args!(
        "                                        stacks   equal   guessed   differ: said  unsaid   same address     left out: ran   not walked"
    ));
    for runtime in runtimes() {
        for (name, way, steps, milliseconds) in WAYS {
            Page::progress(format_args!("stops: {name} on .NET {}", runtime.version));
            let (mut found, least) = (RuntimeStops::default(), if quick { QUICK } else { LEAST });
            for seed in 1..=MOST_RUNS {
                found.join(run_one(runtime, &[milliseconds, &seed.to_string(), way], steps)?);
                if found.compared() >= least {
                    break;
                }
            }
            missed += usize::from(!line(runtime, name, &found, page));
        }
    }
    Ok(missed)
}

/// Stops during one run of the program.
fn run_one(runtime: &Runtime, arguments: &[&str], steps: &[&str]) -> Result<RuntimeStops, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let [notes, stops, out] = ["notes", "stops", "run.clrs.d"].map(|name| folder.path().join(name));
    let mut command = runtime.command(&fixture("KnownPaths"));
    command.arg(&notes).args(arguments).args(steps).env(STOPS_VARIABLE, &stops);
    under_hooked_agent(&mut command, &out);
    run_measured(&mut command)?;
    Ok(RuntimeStops::read(&stops))
}

fn under_hooked_agent(command: &mut Command, out: &Path) {
    load_profiler(command, hooked_agent(), AGENT_CLSID);
    command.env(AGENT_VARIABLE, format!("wall:rate=1000;trust-writable;out={}", out.display()));
}

/// Prints a line; whether the goal is met.
fn line(runtime: &Runtime, way: &str, found: &RuntimeStops, page: &mut Page) -> bool {
    let percent = 100.0 * found.equal() as f64 / found.compared().max(1) as f64;
    let ((frames, addresses), (ran, refused)) = (found.frames(), found.left_out());
    let same = 100.0 * addresses as f64 / frames.max(1) as f64;
    let is_met = percent >= GOAL && found.different() == 0;
    page.line(format_args!(
        "  .NET {:8} {way:24} {:>6} {percent:>6.2} % {:>7} {:>14} {:>7} {same:>12.2} % {ran:>17} {refused:>12}   {}",
        runtime.version.to_string(),
        found.compared(),
        found.guessed(),
        found.said(),
        found.different(),
        if is_met { "met" } else { "MISSED" }
    ));
    for wrong in found.wrong.iter().take(3) {
        let innermost = |stack: &str| stack.split(" < ").take(9).collect::<Vec<_>>().join(" < ");
        let (runtime, walker) = wrong.split_once("; ").unwrap_or((wrong, ""));
        page.line(format_args!("      {} ...; {} ...", innermost(runtime), innermost(walker)));
    }
    is_met
}
