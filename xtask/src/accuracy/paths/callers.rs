//! Truth 4: `calls` together with `cpu` in one run. The callers of each sample (all its own frames
//! except the innermost) must be a path of the exact tree. Hooks force frames on methods and keep
//! precompiled code out, so this shows only that both instruments agree where both look.

use clrscope_recording::model::Process;
use clrscope_testkit::{CallerPaths, Runtime, fixture, methods, runtimes, samples};

use crate::accuracy::page::Page;
use crate::agents::under_agent;
use crate::measured::run as run_measured;

/// Both instruments, with each engine.
const REQUESTS: [&str; 2] = ["calls;cpu:engine=perf,rate=4000", "calls;cpu:engine=timer"];
/// CPU milliseconds of each of the two threads, with each engine.
const MILLISECONDS: [&str; 2] = ["1500", "8000"];
/// Share that must agree, in percent.
const GOAL: f64 = 99.9;

/// Runs everything and prints a line for each run. Returns the number of missed goals.
pub(in crate::accuracy) fn run(page: &mut Page) -> Result<usize, String> {
    let mut missed = 0;
    page.line(format_args!("                                             samples   paths in the tree   callers agree"));
    for runtime in runtimes() {
        for (request, milliseconds) in REQUESTS.iter().zip(MILLISECONDS) {
            Page::progress(format_args!("callers: {request} on .NET {}", runtime.version));
            missed += run_one(runtime, request, milliseconds, page)?;
        }
    }
    Ok(missed)
}

fn run_one(runtime: &Runtime, request: &str, milliseconds: &str, page: &mut Page) -> Result<usize, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (out, notes) = (folder.path().join("run.clrs.d"), folder.path().join("notes"));
    let mut command = runtime.command(&fixture("KnownPaths"));
    // A filter runs on top of the method that throws. The tree does not have that method between:
    // the filter was not called from there.
    command.arg(&notes).args([milliseconds, "1", "", "-filter"]);
    under_agent(&mut command, request, &out);
    run_measured(&mut command)?;
    let recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
    let process = recording.processes.first().ok_or("no process was recorded")?;
    let paths = paths(process);
    let (mut count, mut agree, mut first) = (0_u64, 0_u64, None);
    let walkers: Vec<u32> =
        process.threads.iter().filter(|thread| thread.name.starts_with("walker ")).map(|thread| thread.id).collect();
    for sample in samples(process, "cpu") {
        if !walkers.contains(&sample.thread) {
            continue;
        }
        let mut names: Vec<&str> = methods(process, sample.stack).into_iter().filter(|name| is_own(name)).collect();
        names.pop();
        count += 1;
        if paths.hold(names.iter().copied()) {
            agree += 1;
        } else {
            first.get_or_insert_with(|| names.join(" > "));
        }
    }
    let percent = 100.0 * agree as f64 / count.max(1) as f64;
    let is_met = percent >= GOAL;
    page.line(format_args!(
        "  .NET {:8} {request:32} {count:>6} {:>19} {percent:>13.2} %   {}",
        runtime.version.to_string(),
        paths.len(),
        if is_met { "met" } else { "MISSED" }
    ));
    if let Some(first) = first.filter(|_| !is_met) {
        page.line(format_args!("      not in the tree: {first}"));
    }
    Ok(usize::from(!is_met))
}

/// Whether a method has hooks and is on a path: own code, no native function.
fn is_own(name: &str) -> bool {
    name.starts_with("KnownPaths.")
        && !["FindIn", "SortItems", "Absolute", "AbsoluteAtOnce"]
            .iter()
            .any(|stub| name.ends_with(&format!("::{stub}")))
}

fn paths(process: &Process) -> CallerPaths {
    let mut paths = CallerPaths::default();
    for thread in &process.threads {
        let tree = thread.tree.load();
        let name = |function: u32| process.functions.get(function as usize).map(|function| function.name.as_str());
        let nodes = tree.parents().iter().zip(tree.functions());
        paths.add(nodes.map(|(&parent, &function)| (parent, name(function).filter(|name| is_own(name)))));
    }
    paths
}
