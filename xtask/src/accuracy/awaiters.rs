//! Checks who awaits a method, for each way to wait. The work of the program `Roots` throws
//! exceptions of its root's own class while memory is collected and compacted all the time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clrscope_analysis::{ExceptionLog, ExceptionQuery, make_paths_logical};
use clrscope_testkit::{ASYNC_SHAPES, RootTallies, RootTally, Runtime, Sdk, fixture, runtimes, throws_by_class};

use super::page::Page;
use crate::agents::under_agent;
use crate::measured::run as run_measured;

/// Number of throws of each root, and maximum number of forced collections.
const ARGUMENTS: [&str; 2] = ["1000", "100000"];
/// Share of the throws that may come before the work is awaited.
const MOST_EARLY: f64 = 0.005;

/// Prints the table. Returns the number of bad cells: those with an exception below another root,
/// or with too many exceptions below no root.
pub(super) fn run(page: &mut Page) -> Result<usize, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let programs = programs(folder.path());
    let mut columns: Vec<(String, RootTallies)> = Vec::new();
    for (build, program) in &programs {
        for runtime in runtimes() {
            Page::progress(format_args!("awaiters, {build} on .NET {}", runtime.version));
            let name = format!("{} {build}", runtime.version.major);
            columns.push((name, throws(runtime, program)?));
        }
    }
    let heads: String = columns.iter().map(|(name, _)| format!("{name:>12}")).collect();
    page.line(format_args!(
        "\nexceptions below their own root, in percent of {} each\n{:36}{heads}",
        ARGUMENTS[0], "way to wait"
    ));
    let mut missed = 0;
    for shape in ASYNC_SHAPES {
        let none = RootTally::default();
        let tallies: Vec<&RootTally> =
            columns.iter().map(|(_, tallies)| tallies.0.get(shape.class).unwrap_or(&none)).collect();
        missed += tallies.iter().filter(|tally| !is_met(tally, shape.is_known)).count();
        let cells: String = tallies.iter().map(|tally| format!("{:>12}", cell(tally))).collect();
        page.line(format_args!("{:36}{cells}", shape.name));
    }
    let wrong: u64 = columns.iter().flat_map(|(_, tallies)| tallies.0.values()).map(|tally| tally.wrong).sum();
    let all: u64 = columns.iter().flat_map(|(_, tallies)| tallies.0.values()).map(RootTally::all).sum();
    let verdict = if missed == 0 { "met" } else { "MISSED" };
    page.line(format_args!("below another root: {wrong} of {all}   {verdict}"));
    Ok(missed)
}

/// The committed, optimised fixture; where there is a compiler, also a build without optimisation.
fn programs(folder: &Path) -> BTreeMap<&'static str, PathBuf> {
    let debug = Sdk::find().map(|sdk| ("debug", sdk.compile_without_optimisation("Roots", folder)));
    std::iter::once(("release", fixture("Roots"))).chain(debug).collect()
}

fn throws(runtime: &Runtime, program: &Path) -> Result<RootTallies, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let out = folder.path().join("run.clrs.d");
    let mut command = runtime.command(program);
    command.args(ARGUMENTS);
    under_agent(&mut command, "exceptions", &out);
    let said = throws_by_class(&run_measured(&mut command)?.stdout);
    let mut recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
    make_paths_logical(&mut recording);
    let log = ExceptionLog::open(&recording, &ExceptionQuery::default()).map_err(|problem| problem.to_string())?;
    let mut tallies = RootTallies::default();
    for exception in log.rows().0 {
        let names: Vec<&str> = exception.stack.iter().map(|frame| frame.function.name()).collect();
        tallies.add(exception.type_name, &names, 1);
    }
    let differs = |shape: &&clrscope_testkit::AsyncShape| {
        tallies.0.get(shape.class).map(RootTally::all) != said.get(shape.class).copied()
    };
    match ASYNC_SHAPES.iter().find(differs) {
        Some(shape) => {
            Err(format!("{} exceptions of {} were thrown", said.get(shape.class).unwrap_or(&0), shape.class))
        }
        None => Ok(tallies),
    }
}

fn is_met(tally: &RootTally, is_known: bool) -> bool {
    let early = tally.early as f64 <= MOST_EARLY * tally.all() as f64;
    tally.wrong == 0 && (!is_known || (tally.unknown == 0 && early))
}

/// Text of a cell: the share of right exceptions, and what the others are.
fn cell(tally: &RootTally) -> String {
    let percent = 100.0 * tally.right as f64 / tally.all().max(1) as f64;
    match tally {
        RootTally { wrong: 1.., .. } => format!("{} WRONG", tally.wrong),
        RootTally { right: 0, unknown, .. } if *unknown > 0 => "unknown".to_owned(),
        RootTally { right: 0, paths, .. } => {
            let most = paths.iter().max_by_key(|(_, number)| **number);
            most.map_or_else(String::new, |(path, _)| path.trim_end_matches(" -").to_owned())
        }
        _ => format!("{percent:.1}"),
    }
}
