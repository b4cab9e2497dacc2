//! `clrscope diff`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clrscope_analysis::{Gate, GateError, LabelSelection, Metric, Per, SelectionError};
use clrscope_report::{COMPARISONS, Comparison, Format, Request};

use super::filters::{Filters, metrics};
use super::report::{self, HeapFlags};
use crate::commands::diff::{DiffOptions, Drawn, FLAMEGRAPH, Kind, request_for};
use crate::errors::{Failure, quoted};

const EXAMPLES: &str = "\
Examples:
  clrscope diff before.clrs after.clrs                    functions by growth
  clrscope diff before/ after/ --view tree                the recordings of two folders
  clrscope diff a1.clrs a2.clrs a3.clrs -- b1.clrs b2.clrs b3.clrs --metric cpu
  clrscope diff before.clrs after.clrs --fail-on 'Shop.*:calls>+5%' --fail-on '*:bytes>+64KiB'
  clrscope diff before.clrs after.clrs --format html -o diff.html
  clrscope diff --before version=v2 --after version=v3 recordings/     chosen by their labels
  clrscope diff app.clrs                                  its first and last snapshot of the heap

Exit codes: 0, 1 for a failure, 2 for a wrong command line, 3 if a gate of --fail-on fails.";

/// Compare recordings: functions, paths, allocations, exceptions, the heap
///
/// Each side is a recording, a folder of recordings, or several of them with -- between the sides.
/// Several recordings count by their median, with a 95 % interval from how much they differ. With
/// --before and --after, the recordings of one folder are chosen by labels and merged; amounts are
/// per hour. Functions are matched by module, name and signature, lambdas by their position in
/// their method. A difference counts as a change only if its interval excludes zero; counts that
/// were recorded one by one (calls, exceptions, bytes with alloc:exact) are exact.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "clrscope diff [OPTIONS] <BEFORE>... [--] [AFTER]...
       clrscope diff [OPTIONS] --before <LABELS> --after <LABELS> <FOLDER>")]
pub(super) struct Diff {
    /// The recordings, those from before first: NAME.clrs, NAME.clrs.d or a folder of them
    #[arg(value_name = "RECORDING", required = true)]
    recordings: Vec<PathBuf>,

    /// Choose the recordings from before by labels: KEY=VALUE[,KEY=VALUE], where KEY is service,
    /// version, environment, host, container or the key of any label, and VALUE may have * and ?
    #[arg(long, value_name = "LABELS", requires = "after", value_parser = labels)]
    before: Option<LabelSelection>,

    /// Choose the recordings from after by labels, in the same folder
    #[arg(long, value_name = "LABELS", requires = "before", value_parser = labels)]
    after: Option<LabelSelection>,

    /// Unit for the amounts of recordings chosen by labels: per hour or per recording [default:
    /// hour]
    #[arg(long, value_name = "UNIT", requires = "before", value_parser = pers())]
    per: Option<String>,

    /// View to show [default: the first that both sides have]
    #[arg(long, value_name = "VIEW", value_parser = views())]
    view: Option<String>,

    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = formats())]
    format: String,

    /// As --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// Metric of functions and paths [default: the first that both sides have]
    #[arg(long, value_name = "METRIC", value_parser = metrics())]
    metric: Option<&'static Metric>,

    /// Fail with exit code 3 if functions that match have more of a metric than allowed:
    /// PATTERN:METRIC>+5% (growth), >+5 (5 more than before) or >5 (more than 5, whatever it was
    /// before). Times need a unit (>+20ms); METRIC-self is a function's own amount, METRIC-share
    /// its part of the whole (>+2pt, >30%). Differences that may be due to chance do not fail. Can
    /// be repeated
    #[arg(long, value_name = "GATE")]
    fail_on: Vec<String>,

    /// File for the page or flame graph
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Overwrite the file if it exists
    #[arg(long, requires = "output")]
    force: bool,

    /// Columns to show, in this order, by their headings or their keys in JSON
    #[arg(long, value_name = "KEY,...", value_delimiter = ',')]
    columns: Vec<String>,

    #[command(flatten)]
    heap: HeapFlags,

    #[command(flatten)]
    filters: Filters,
}

fn labels(text: &str) -> Result<LabelSelection, String> {
    LabelSelection::parse(text).map_err(|SelectionError(why)| why)
}

fn pers() -> PossibleValuesParser {
    Per::ALL.iter().map(|(name, about, _)| PossibleValue::new(*name).help(*about)).collect::<Vec<_>>().into()
}

fn views() -> PossibleValuesParser {
    COMPARISONS.iter().map(|one| PossibleValue::new(one.name).help(one.view.about)).collect::<Vec<_>>().into()
}

fn formats() -> PossibleValuesParser {
    let rows = Format::ALL.iter().map(|(name, about, format)| {
        let page = "One page with the tables of every view, for browsers; needs no network";
        PossibleValue::new(*name).help(if *format == Format::Html { page } else { *about })
    });
    let drawn = FLAMEGRAPH.map(|name| {
        PossibleValue::new(name).help("Flame graph of both sides, one SVG file: red is more, blue is less")
    });
    rows.chain(drawn).collect::<Vec<_>>().into()
}

/// Word instead of the `--` between the sides: no path has a NUL.
const BETWEEN: &str = "\0";

/// The command line with another word for the first `--`, behind which clap would take options for
/// paths.
pub(super) fn with_marked_sides(arguments: &[OsString]) -> Vec<OsString> {
    let mut arguments = arguments.to_vec();
    if let Some(between) = arguments.iter_mut().find(|word| *word == "--") {
        *between = BETWEEN.into();
    }
    arguments
}

impl Diff {
    pub(super) fn into_options(self) -> Result<DiffOptions, Failure> {
        let format = match (self.json, &*self.format) {
            (true, _) => Drawn::Rows(Format::Json),
            (false, name) if FLAMEGRAPH == Some(name) => Drawn::FlameGraph,
            (false, name) => Drawn::Rows(report::format(name)?),
        };
        if self.output.is_some() && !format.is_file() {
            let why = "only a page or a flame graph can go into a file";
            return Err(Failure::usage("'--output' needs more", why, "add --format html, or --format flamegraph"));
        }
        let comparison =
            self.view.as_deref().map(|name| Comparison::named(name).ok_or_else(report::not_known)).transpose()?;
        let per = self.per.as_deref().and_then(Per::parse).unwrap_or_default();
        let kind = match (self.before, self.after) {
            (Some(before), Some(after)) => chosen(self.recordings, [before, after], per)?,
            _ => sides(self.recordings)?,
        };
        let gates = self.fail_on.iter().map(|text| gate(text)).collect::<Result<Vec<_>, _>>()?;
        let mut request = Request { query: self.filters.into_query()?, ..Request::default() };
        request.query.metric = self.metric;
        self.heap.put_into(&mut request);
        if let Some(comparison) = comparison {
            // Before anything is read.
            request_for(comparison.view, &request, &self.columns, format)?;
        }
        if matches!(kind, Kind::Snapshots(_)) && !gates.is_empty() {
            let why = "a gate compares a metric of two recordings";
            return Err(Failure::usage(
                "'--fail-on' needs two sides",
                why,
                "clrscope diff BEFORE AFTER --fail-on GATE",
            ));
        }
        let Self { columns, output, force, .. } = self;
        Ok(DiffOptions { kind, comparison, format, columns, request, gates, output, force })
    }
}

/// The sides that labels choose in one folder.
fn chosen(mut folders: Vec<PathBuf>, labels: [LabelSelection; 2], per: Per) -> Result<Kind, Failure> {
    match &mut folders[..] {
        [folder] => Ok(Kind::Labels { folder: std::mem::take(folder), labels: Box::new(labels), per }),
        several => {
            let number = several.iter().filter(|path| *path != Path::new(BETWEEN)).count();
            let why =
                format!("--before and --after choose among the recordings of one folder, and {number} were named");
            let hint = "clrscope diff --before version=v2 --after version=v3 FOLDER";
            Err(Failure::usage("cannot tell the two sides apart", why, hint))
        }
    }
}

/// The sides that words name.
fn sides(mut before: Vec<PathBuf>) -> Result<Kind, Failure> {
    let marked = before.iter().position(|path| path == Path::new(BETWEEN));
    let after = marked.map(|at| before.split_off(at).split_off(1)).unwrap_or_default();
    if marked.is_some() && (before.is_empty() || after.is_empty()) {
        let why = "'--' stands between two sides, and one of them has no recording";
        return Err(Failure::usage("cannot tell the two sides apart", why, "clrscope diff A1 A2 -- B1 B2"));
    }
    if !after.is_empty() {
        return Ok(Kind::Sides([before, after]));
    }
    match &mut before[..] {
        [only] => Ok(Kind::Snapshots(std::mem::take(only))),
        [before, after] => Ok(Kind::Sides([vec![std::mem::take(before)], vec![std::mem::take(after)]])),
        several => {
            let why = format!("{} recordings were named, and nothing says which of them come after", several.len());
            let hint = "write '--' between the sides: clrscope diff A1 A2 -- B1 B2";
            Err(Failure::usage("cannot tell the two sides apart", why, hint))
        }
    }
}

fn gate(text: &str) -> Result<Gate, Failure> {
    Gate::parse(text).map_err(|GateError { why, hint }| {
        Failure::usage(format!("'--fail-on' does not take {}", quoted(text)), why, hint)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Command, CommandLine};
    use clap::Parser as _;

    use super::*;

    fn options(line: &str) -> Result<DiffOptions, String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let line = CommandLine::try_parse_from(with_marked_sides(&words)).map_err(|error| error.to_string())?;
        let Command::Diff(diff) = line.command else { panic!("a diff: {line:?}") };
        diff.into_options().map_err(|failure| format!("{failure:?}"))
    }

    /// Arguments behind `--` were recordings all, `--view` too.
    #[test]
    fn options_stand_anywhere_also_behind_the_second_side() {
        let paths = |names: [&str; 2]| names.map(PathBuf::from).to_vec();
        for line in [
            "clrscope diff --view heap a1 a2 -- b1 b2",
            "clrscope diff a1 a2 --view heap -- b1 b2",
            "clrscope diff a1 a2 -- b1 b2 --view heap",
            "clrscope diff a1 a2 -- b1 --view heap b2",
            "clrscope diff a1 a2 -- b1 --view=heap -- b2",
        ] {
            let options = options(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert_eq!(options.comparison.map(|one| one.name), Some("heap"), "{line}");
            let Kind::Sides(sides) = options.kind else { panic!("{line}: {options:?}") };
            assert_eq!(sides, [paths(["a1", "a2"]), paths(["b1", "b2"])], "{line}");
        }
        let sides = |line: &str| match options(line).expect(line).kind {
            Kind::Sides(sides) => sides.map(|side| side.len()),
            Kind::Snapshots(_) => [1, 0],
            Kind::Labels { .. } => [0, 0],
        };
        assert_eq!(
            ["clrscope diff a b", "clrscope diff a", "clrscope diff a -- b"].map(sides),
            [[1, 1], [1, 0], [1, 1]]
        );
        for line in ["clrscope diff a b c", "clrscope diff -- a", "clrscope diff a --"] {
            assert!(options(line).is_err_and(|error| error.contains("two sides")), "{line}");
        }
        assert!(options("clrscope diff a -- b --no-such-option").is_err());
    }
}
