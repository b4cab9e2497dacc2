//! `cargo xtask reference`: writes `docs/reference.md`, with tables of everything that has a
//! registry in the code.

use std::fs;
use std::path::PathBuf;

use clrscope_analysis::{METRICS, Sort, Unit};
use clrscope_contract::instruments::spec::{Limit, LimitedPart, Spec};
use clrscope_contract::instruments::{ALL, DEFAULT};
use clrscope_export::dataset;
use clrscope_recording::model::LossReason;
use clrscope_report::{COMPARISONS, VIEWS, View, exporters};
use clrscope_testkit::workspace_root;

use crate::tables::{code, codes, section, wrapped};

const HEAD: &str = "\
# Reference

What there is to choose from: instruments and their options, views, metrics, export formats and
reasons for losses. [commands.md](commands.md) shows the commands with examples,
[json.md](json.md) the keys of JSON documents, and [limits.md](limits.md) says what does not work.

Written by `cargo xtask reference` from the registries of the code; do not edit. A test fails when
it is stale.
";

const INSTRUMENTS: &str = "\
An instrument records one kind of data. `-i NAME` of `run`, `attach` and `env` chooses it, and may
be given several times; `-i NAME:OPTION,OPTION` sets its options.
";

const VIEWS_HEAD: &str = "\
`report --view NAME` shows one view of a recording, as text, JSON or CSV (`--format`). `--columns`
picks and orders its columns. `--format html` writes all views into one page.
`clrscope report --help` lists the filters; a view refuses an option that means nothing for it, and
names the views that take it.
";

const COMPARISONS_HEAD: &str = "\
`diff --view NAME` compares two recordings, or two sets of them; see [comparing.md](comparing.md).
";

const METRICS_HEAD: &str = "\
`--metric NAME` chooses what paths are measured by, in the views `functions`, `tree`, `flame`,
`callers` and `callees`, in comparisons and in exports of paths. `lines` takes the metrics that come
from stacks. Where none is given, it is the first that was recorded. With `calls` and `alloc:exact`
in one recording, `functions` and `tree` show calls and allocations side by side.
";

const EXPORTS_HEAD: &str = "\
`export --to NAME -o FILE` writes a recording in the format of another program.
[parquet.md](parquet.md) has the columns of the two Parquet files, [fleet.md](fleet.md) those of a
data set, with queries.
";

const LOSSES_HEAD: &str = "\
A recording counts everything that it lacks, with a reason. Each report says so in its head, and
`report --view losses` has counts and times. Reasons marked *information* are no missing data.
";

fn path() -> PathBuf {
    workspace_root().join("docs/reference.md")
}

/// Writes the file.
///
/// # Errors
/// A sentence with the file, where it can't be written.
pub(crate) fn run() -> Result<(), String> {
    fs::write(path(), text()).map_err(|error| format!("{}: {error}", path().display()))
}

fn text() -> String {
    let sections = [
        HEAD.to_owned(),
        section(
            "## Instruments",
            INSTRUMENTS,
            &["instrument", "records", "views", "`attach`", "beside another profiler"],
            ALL.iter().map(|spec| instrument(spec)),
        ),
        ALL.iter().map(|spec| options(spec)).collect::<Vec<_>>().join("\n"),
        section(
            "## Views",
            VIEWS_HEAD,
            &["view", "shows", "instruments", "`--sort`"],
            VIEWS.iter().map(|view| view_row(view)),
        ),
        section(
            "## Comparisons",
            COMPARISONS_HEAD,
            &["view", "shows"],
            COMPARISONS.iter().map(|comparison| vec![code(comparison.name), comparison.view.about.to_owned()]),
        ),
        metrics(),
        exports(),
        section("## Losses", LOSSES_HEAD, &["reason", "meaning", ""], LossReason::ALL.into_iter().map(loss)),
    ];
    sections.join("\n")
}

fn instrument(spec: &Spec) -> Vec<String> {
    let default = if spec.name == DEFAULT.name { " (the default)" } else { "" };
    let name = format!("{}{default}", code(spec.name));
    vec![name, spec.about.to_owned(), codes(spec.views), allowed(spec.attach), allowed(spec.notification_only)]
}

/// What a profiler that the runtime gives less may do of an instrument, in a word or two.
fn allowed(limit: Limit) -> String {
    let part = |part: &LimitedPart| part.word.unwrap_or(part.option);
    match limit {
        Limit::Never(_) => "no".to_owned(),
        Limit::Without([]) => "yes".to_owned(),
        Limit::Without(parts) => format!("without {}", codes(parts.iter().map(part))),
    }
}

/// Options of an instrument as a section of their own; below them what the runtime does not allow
/// everywhere.
fn options(spec: &Spec) -> String {
    let rows = spec.option_lines().map(|(option, effect)| vec![code(&option), effect]);
    let limits = [("Not for `attach`", spec.attach), ("Not beside another profiler", spec.notification_only)];
    let why: String = limits.iter().flat_map(|(what, limit)| reasons(what, *limit)).collect();
    section(&format!("### `{}`", spec.name), "", &["option", "effect"], rows) + &why
}

fn reasons(what: &str, limit: Limit) -> Vec<String> {
    let mut reasons = match limit {
        Limit::Never(why) => vec![why],
        Limit::Without(parts) => parts.iter().map(|part| part.why).collect(),
    };
    reasons.dedup();
    reasons.iter().map(|why| format!("\n{}\n", wrapped(&format!("{what}: {why}.")))).collect()
}

fn view_row(view: &View) -> Vec<String> {
    let sorts = view.sorts.iter().filter_map(|sort| Sort::ALL.into_iter().find(|(_, known)| known == sort));
    let instruments = view.instruments();
    let by = if instruments.is_empty() { "all".to_owned() } else { codes(&instruments) };
    vec![code(view.name), view.about.to_owned(), by, codes(sorts.map(|(name, _)| name))]
}

fn metrics() -> String {
    let rows = METRICS.into_iter().map(|metric| {
        let unit = match metric.unit {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Count => "a number",
            Unit::Bytes => "bytes",
        };
        let instruments = std::iter::once(metric.instrument).chain(metric.others.iter().copied());
        vec![code(metric.name), metric.title.to_owned(), unit.to_owned(), codes(instruments)]
    });
    section("## Metrics", METRICS_HEAD, &["metric", "measures", "unit in JSON", "instruments"], rows)
}

fn exports() -> String {
    let rows = exporters().map(|format| {
        let takes = [
            ("--min-share", format.takes_min_share()),
            ("--snapshot", format.shows_heap()),
            ("--native-code", format.shows_native_code()),
        ];
        let takes = takes.into_iter().filter_map(|(option, is_taken)| is_taken.then_some(option));
        vec![code(format.name()), format.description().to_owned(), code(format.extension()), codes(takes)]
    });
    let dataset = vec![code(dataset::NAME), dataset::DESCRIPTION.to_owned(), String::new(), String::new()];
    let rows = rows.chain([dataset]);
    section("## Exports", EXPORTS_HEAD, &["format", "writes", "ending", "also takes"], rows)
}

fn loss(reason: LossReason) -> Vec<String> {
    let kind = if reason.is_benign() { "information" } else { "" };
    vec![code(reason.name()), reason.sentence().to_owned(), kind.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_what_the_registries_say() {
        let there = fs::read_to_string(path()).unwrap_or_default();
        assert!(there == text(), "docs/reference.md is stale: run `cargo xtask reference` and commit it");
    }
}
