//! Sampled allocations: compares the sampled bytes of each type with what the program measured, and
//! checks whether the truth lies within the stated bounds.

use std::collections::BTreeMap;

use clrscope_analysis::{Query, allocations};
use clrscope_testkit::{Runtime, fixture};

use super::bounds::hold_often_enough;
use super::page::Page;
use crate::agents::under_agent;
use crate::measured::run as run_measured;

/// Number of runs of the program; each gives one row per type.
const RUNS: usize = 25;
/// Megabytes that a run allocates.
const MEGABYTES: &str = "100";

/// Prints the table of one runtime. Returns 1 if too few rows lie within their bounds, otherwise 0.
pub(super) fn run(runtime: &Runtime, page: &mut Page) -> Result<usize, String> {
    let (mut rows, mut inside) = (0_usize, 0_usize);
    // By type: the truth, what the report says, and rows within their bounds.
    let mut types: BTreeMap<String, (f64, f64, usize)> = BTreeMap::new();
    for at in 1..=RUNS {
        Page::progress(format_args!("allocations, run {at} of {RUNS}"));
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let out = folder.path().join("run.clrs.d");
        let mut command = runtime.command(&fixture("Allocated"));
        // Ticks come after so many bytes: where each run had the same objects in the same order,
        // they would be the same few all times.
        command.args(["mixed", MEGABYTES, &at.to_string()]);
        under_agent(&mut command, "alloc", &out);
        let stdout = run_measured(&mut command)?.stdout;
        let recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
        let view = allocations(&recording, &Query::default()).map_err(|problem| problem.to_string())?;
        for line in stdout.lines() {
            let (truth, name) = line.split_once(' ').ok_or_else(|| format!("'{line}' is no number and type"))?;
            let truth: u64 = truth.parse().map_err(|_| format!("'{truth}' is no number"))?;
            let row = view.rows.iter().find(|row| row.type_name == name);
            let (bytes, (low, high)) = row.map_or((0, (0, 0)), |row| (row.bytes, row.bytes_bounds));
            let is_inside = (low..=high).contains(&truth);
            let sum = types.entry(name.to_owned()).or_default();
            *sum = (sum.0 + truth as f64, sum.1 + bytes as f64, sum.2 + usize::from(is_inside));
            rows += 1;
            inside += usize::from(is_inside);
        }
    }
    page.line(format_args!(
        "\nalloc on .NET {}: bytes by type, {RUNS} runs        truth     report   within bounds",
        runtime.version
    ));
    for (name, (truth, found, of)) in &types {
        let [truth, found] = [truth, found].map(|bytes| bytes / 1e6 / RUNS as f64);
        page.line(format_args!("  {name:42} {truth:>8.1} MB {found:>7.1} MB   {of} of {RUNS}"));
    }
    let is_met = hold_often_enough(inside, rows);
    let verdict = if is_met { "met" } else { "MISSED" };
    page.line(format_args!("  within their bounds: {inside} of {rows} rows   {verdict}"));
    Ok(usize::from(!is_met))
}
