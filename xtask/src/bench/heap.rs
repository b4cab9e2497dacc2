//! Snapshots of large heaps: how long a snapshot stops the program, how fast it is written, and the
//! cost of its analysis.

use std::ffi::OsStr;
use std::process::Command;
use std::time::Duration;

use clrscope_recording::model::HeapSnapshot;
use clrscope_testkit::workspace_root;

use super::absolute::{Line, verdict};
use super::programs::{Bench, Program, Under, disk_use};
use crate::measured::{Measured, Spread, run};

/// Millions of objects in the heap that the analysis of goal P7 is measured on.
const GOAL: u32 = 10;
/// Seconds and gigabytes that the analysis may take.
const MOST: (f64, f64) = (10.0, 4.0);
/// Objects per second into the file, at least.
const LEAST_RATE: f64 = 15e6;
/// Millions of objects in the heaps of programs.
const SIZES: [u32; 3] = [1, 10, 30];

/// Facts about one run of the analysis.
struct Analysis {
    seconds: f64,
    gigabytes: f64,
    user: Duration,
}

/// Time and memory to compute retained sizes by type, measured with the analysis crate's own
/// example on a heap that the example makes.
pub(super) fn analysis(runs: usize) -> Result<Line, String> {
    let runs = (0..runs).map(|_| analyse(OsStr::new(&GOAL.to_string()))).collect::<Result<Vec<_>, _>>()?;
    let seconds = Spread::from_values(&runs.iter().map(|run| run.seconds).collect::<Vec<_>>());
    let gigabytes = Spread::from_values(&runs.iter().map(|run| run.gigabytes).collect::<Vec<_>>()).high;
    let figure = format!(
        "retained sizes in {:.1} s ({:.1} to {:.1}), {gigabytes:.2} GB at most",
        seconds.median, seconds.low, seconds.high
    );
    let is_met = seconds.median < MOST.0 && gigabytes < MOST.1;
    Ok(("P7", format!("analysis of a made-up heap of {GOAL} M objects"), figure, verdict(is_met)))
}

/// Pause of programs for snapshots, for several heap sizes, and the analysis of each snapshot.
pub(super) fn snapshots(bench: &Bench) -> Result<Vec<Line>, String> {
    SIZES.into_iter().map(|millions| snapshot(bench, millions)).collect()
}

fn snapshot(bench: &Bench, millions: u32) -> Result<Line, String> {
    run(&mut bench.command(Program::Shop(millions), Under::Agent("heap:at=end"))?)?;
    let out = bench.recording();
    let recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
    let [HeapSnapshot { objects, pause_ns, walk_ns, why, .. }] = &recording.processes[0].snapshots[..] else {
        return Err("not one snapshot".to_owned());
    };
    if *objects < u64::from(millions) * 1_000_000 {
        return Err(format!("only {objects} objects: {why}"));
    }
    let rate = *objects as f64 / (*walk_ns as f64 / 1e9);
    let megabytes = disk_use(&out) / 1_000_000;
    let analysis = analyse(out.as_os_str())?;
    let figure = format!(
        "stands still for {:.2} s, {:.2} s of these written: {:.1} M objects a second, {megabytes} MB; retained sizes in {:.1} s \
         ({:.1} s CPU with loading), {:.2} GB at most",
        *pause_ns as f64 / 1e9,
        *walk_ns as f64 / 1e9,
        rate / 1e6,
        analysis.seconds,
        analysis.user.as_secs_f64(),
        analysis.gigabytes
    );
    let is_met = rate >= LEAST_RATE && (millions > GOAL || analysis.seconds < MOST.0 && analysis.gigabytes < MOST.1);
    Ok(("P7", format!("snapshot of a program with {millions} M objects"), figure, verdict(is_met)))
}

/// Retained sizes by type of a recording, or of a heap of so many millions.
fn analyse(of: &OsStr) -> Result<Analysis, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let example = |words: &[&str]| {
        let mut command = Command::new(&cargo);
        command.current_dir(workspace_root()).args(words);
        command.args(["--quiet", "--release", "-p", "clrscope-analysis", "--example", "heap_cost"]);
        command
    };
    // Apart, so that building it is no part of what is measured.
    run(&mut example(&["build"]))?;
    let Measured { stdout, user, .. } = run(example(&["run"]).arg("--").arg(of))?;
    let numbers = parse(&stdout).ok_or_else(|| format!("heap_cost said {stdout:?}"))?;
    Ok(Analysis { seconds: numbers.0, gigabytes: numbers.1, user })
}

/// Seconds and gigabytes of a line of the example.
fn parse(line: &str) -> Option<(f64, f64)> {
    let (seconds, rest) = line.strip_prefix("retained sizes in ")?.split_once(" s, ")?;
    Some((seconds.parse().ok()?, rest.split_once(" GB")?.0.parse().ok()?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn lines_of_the_example_are_read() {
        let line = "retained sizes in 1.25 s, 0.97 GB at most, 10 objects, 30 references";
        assert_eq!(super::parse(line), Some((1.25, 0.97)));
        assert_eq!(super::parse("retained sizes"), None);
    }
}
