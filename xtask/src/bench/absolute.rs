//! Goals that are not ratios: events per second, time to open a large recording, memory.

use std::process::Command;

use clrscope_analysis::{Query, functions};
use clrscope_testkit::workspace_root;

use super::programs::{Bench, Program, Under, disk_use, size_of};
use crate::measured::{Spread, run};

/// Rounds of tiny functions that `flow` writes down.
const FLOW_ROUNDS: u32 = 60;
/// Events per second of CPU time that goal P9 asks for.
const FLOW_GOAL: f64 = 20e6;
/// Megabytes of trees in the recording that goal P10 is measured on.
const LARGE: u32 = 1_000;

/// Threads alive at once where their memory is measured.
const THREADS: u32 = 1_000;

/// A line of the report: id, title, figure, verdict.
pub(super) type Line = (&'static str, String, String, &'static str);

/// Events that `flow` writes per second of CPU time, in user mode and in the kernel.
pub(super) fn flow(bench: &Bench, runs: usize) -> Result<Line, String> {
    let mut rates = Vec::new();
    for _ in 0..runs {
        let with = run(&mut bench.command(Program::Tiny(FLOW_ROUNDS), Under::Agent("flow"))?)?;
        let calls: f64 = with.stdout.trim().parse().map_err(|_| "Tiny printed no number")?;
        rates.push(2.0 * calls / (with.user + with.system).as_secs_f64());
    }
    let recording = clrscope_recording::open(&bench.recording()).map_err(|error| error.to_string())?;
    let losses: Vec<String> = recording.processes[0]
        .losses
        .iter()
        .filter(|loss| !loss.reason.is_benign())
        .map(|loss| format!("{:?} {}", loss.reason, loss.count))
        .collect();
    let rate = Spread::from_values(&rates);
    let lost = if losses.is_empty() { "none lost".to_owned() } else { format!("lost: {}", losses.join(", ")) };
    Ok((
        "P9",
        "`flow`, events per second of CPU time".into(),
        format!("{:.1} M ({:.1} to {:.1}), {lost}", rate.median / 1e6, rate.low / 1e6, rate.high / 1e6),
        verdict(rate.median >= FLOW_GOAL),
    ))
}

/// Time and memory to open a recording of a thousand megabytes, measured with the recording crate's
/// own example.
pub(super) fn open() -> Result<Line, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("large.clrs.d");
    let example = |words: &[&str]| -> Result<String, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(workspace_root()).args(["run", "--quiet", "--release", "-p", "clrscope-recording"]);
        command.args(["--features", "testing", "--example", "open_cost", "--"]).args(words);
        Ok(run(&mut command)?.stdout)
    };
    let name = path.display().to_string();
    example(&["directory", &name, &LARGE.to_string(), "20", "sampled"])?;
    let said = example(&["measure", &name])?;
    drop(std::fs::remove_dir_all(&path));
    let line = said.lines().next().unwrap_or_default().to_owned();
    let fast = line.strip_prefix("open ").and_then(seconds).is_some_and(|s| s < 2.0);
    Ok(("P10", format!("open a recording of {LARGE} MB"), line, verdict(fast)))
}

/// The leading duration of a text such as `1.25ms, heap`.
fn seconds(text: &str) -> Option<f64> {
    let word = text.split([',', ' ']).next()?;
    let units = [("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9), ("s", 1.0)];
    let (number, unit) = units.iter().find_map(|(unit, length)| Some((word.strip_suffix(unit)?, length)))?;
    Some(number.parse::<f64>().ok()? * unit)
}

/// Bytes of tree per path, measured in a run of the compiler.
pub(super) fn memory(bench: &Bench) -> Result<Line, String> {
    run(&mut bench.command(Program::Compiler, Under::Agent("calls"))?)?;
    let out = bench.recording();
    let recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
    let process = &recording.processes[0];
    let trees: Vec<_> = process.threads.iter().map(|thread| thread.tree.load()).collect();
    let paths: usize = trees.iter().map(|tree| tree.len()).sum();
    let calls: u64 = trees.iter().map(|tree| (0..tree.len() as u32).map(|n| tree.calls(n)).sum::<u64>()).sum();
    let bytes = size_of(&out, "tree.seg");
    let mega = |n: f64| n / 1e6;
    let figure = format!(
        "{:.1} bytes: {:.0} MB for {:.1} M paths, {:.0} M calls, {} threads",
        bytes as f64 / paths.max(1) as f64,
        mega(bytes as f64),
        mega(paths as f64),
        mega(calls as f64),
        process.threads.len()
    );
    Ok(("memory", "compiler, `clock=sampled`, disk and memory per path".into(), figure, ""))
}

/// Bytes per sample, measured in a run of the compiler.
pub(super) fn samples(bench: &Bench) -> Result<Line, String> {
    run(&mut bench.command(Program::Compiler, Under::Agent("cpu"))?)?;
    let out = bench.recording();
    let recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
    let view = functions(&recording, &Query::default()).map_err(|problem| problem.to_string())?;
    let of = &view.conditions.sampling[0];
    let mut packed = Vec::new();
    clrscope_recording::pack::write(&recording, &mut packed).map_err(|error| error.to_string())?;
    let per_sample = |bytes: usize| bytes as f64 / of.samples.max(1) as f64;
    let figure = format!(
        "{:.0} bytes packed, {:.0} before: {} samples, {:.1} % with a complete stack, names included",
        per_sample(packed.len()),
        per_sample(disk_use(&out) as usize),
        of.samples,
        100.0 * of.complete as f64 / of.samples.max(1) as f64,
    );
    Ok(("samples", "compiler, `cpu`, disk per sample".into(), figure, ""))
}

/// Additional memory of each of a thousand threads under the agent.
pub(super) fn threads(bench: &Bench, runs: usize) -> Result<Line, String> {
    let resident = |count: u32, under: Under| -> Result<f64, String> {
        let sizes = (0..runs).map(|_| {
            let printed = run(&mut bench.command(Program::Threads(count), under)?)?.stdout;
            printed.trim().parse::<f64>().map_err(|_| "Tiny printed no number".to_owned())
        });
        Ok(Spread::from_values(&sizes.collect::<Result<Vec<_>, _>>()?).median)
    };
    let per_thread = |under: Under| -> Result<f64, String> {
        Ok((resident(THREADS, under)? - resident(0, under)?) / f64::from(THREADS))
    };
    let (with, bare) = (per_thread(Under::Agent("calls"))?, per_thread(Under::Bare)?);
    let kilo = |bytes: f64| bytes / 1024.0;
    let figure = format!(
        "{:.1} KiB more: {:.1} against {:.1} KiB, {THREADS} threads alive",
        kilo(with - bare),
        kilo(with),
        kilo(bare)
    );
    Ok(("memory", "threads that made a few calls, `clock=sampled`, memory per thread".into(), figure, ""))
}

pub(super) fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "**missed**" }
}

#[cfg(test)]
mod tests {
    #[test]
    fn durations_are_read_as_they_are_printed() {
        for (text, truth) in [("1.25s, heap", 1.25), ("250.00ms, x", 0.25), ("80.00µs", 8e-5)] {
            assert!((super::seconds(text).expect("a duration") - truth).abs() < 1e-9, "{text}");
        }
        assert_eq!(super::seconds("soon"), None);
    }
}
