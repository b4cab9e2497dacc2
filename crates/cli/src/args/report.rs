//! `clrscope report`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clrscope_analysis::Metric;
use clrscope_contract::instruments::DEFAULT;
use clrscope_contract::request::Glob;
use clrscope_contract::words::nearest;
use clrscope_recording::events::Group;
use clrscope_report::{Format, Refusal, Request, VIEWS, View, view};

use super::filters::{Filters, metrics, whole};
use super::unless_stdout;
use crate::commands::Task;
use crate::commands::report::ReportOptions;
use crate::errors::{Failure, quoted};

const EXAMPLES: &str = "\
Examples:
  clrscope report app.clrs
  clrscope report app.clrs --view functions --sort calls --limit 20
  clrscope report app.clrs --view callers --function 'Shop.Cart::Total'
  clrscope report app.clrs --view tree --module MyApp --format json
  clrscope report app.clrs --view functions --columns name,calls,exclusive_ns --format csv
  clrscope report app.clrs --format html -o app.html";

/// Read a recording as tables and trees
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Report {
    /// The recording: NAME.clrs or NAME.clrs.d [default: the newest in this folder]
    #[arg(value_name = "REC")]
    recordings: Vec<PathBuf>,

    /// View to show
    #[arg(long, value_name = "VIEW", default_value = "summary", value_parser = views())]
    view: String,

    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = formats())]
    format: String,

    /// As --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// Columns to show, in this order, by their headings or their keys in JSON
    #[arg(long, value_name = "KEY,...", value_delimiter = ',')]
    columns: Vec<String>,

    /// Metric of call paths, in the views functions, tree, callers and callees [default: the first
    /// that was recorded]
    #[arg(long, value_name = "METRIC", value_parser = metrics())]
    metric: Option<&'static Metric>,

    /// One row, or one tree, per thread
    #[arg(long)]
    per_thread: bool,

    /// Show above the report how its numbers came about, as in --view conditions
    #[arg(short, long)]
    verbose: bool,

    /// In views lines and coverage: show the source next to the numbers; html always has it for
    /// coverage
    #[arg(long)]
    source: bool,

    /// Like --source, and search this folder, by the ends of their paths, for files that are not
    /// where they were compiled
    #[arg(long, value_name = "FOLDER")]
    source_root: Option<PathBuf>,

    /// In view coverage: lines, with hits and branches, instead of methods
    #[arg(long)]
    lines: bool,

    /// In view probes: show the callers of the methods, by call path (needs -i probes:callers)
    #[arg(long)]
    callers: bool,

    /// With --format html: the page's file; with --per-thread in views flow and events: the folder
    /// for a file per thread
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Overwrite the page's file if it exists
    #[arg(long, requires = "output")]
    force: bool,

    #[command(flatten)]
    logs: LogFlags,

    #[command(flatten)]
    heap: HeapFlags,

    #[command(flatten)]
    filters: Filters,
}

/// Options that only logs have.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Views 'flow', 'events' and 'exceptions'")]
struct LogFlags {
    /// In views flow and flame: leave out calls deeper than this (0 is the outermost)
    #[arg(long, value_name = "DEPTH", value_parser = whole::<u32>)]
    depth: Option<u32>,

    /// In views flow and events: keep printing new entries until the program ends
    #[arg(long)]
    follow: bool,

    /// In view events: only events of this group, such as jit or gc; can be repeated
    #[arg(long, value_name = "GROUP")]
    group: Vec<String>,

    /// Only events whose name, or whose subject's name, matches, and exceptions whose type matches;
    /// can be repeated
    #[arg(long, value_name = "PATTERN")]
    name: Vec<String>,

    /// In views exceptions, probes and requests: show each one in detail, not totals
    #[arg(long)]
    each: bool,

    /// In view events: all threads together, ordered by time, not one thread after another
    #[arg(long)]
    interleave: bool,
}

/// Options that views of snapshots of the heap have.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Snapshots of the heap")]
pub(super) struct HeapFlags {
    /// Number of the snapshot [default: the last complete one]
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u32>)]
    snapshot: Option<u32>,

    /// Number of the snapshot to compare with [default: the first in one recording, the last in
    /// another]
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u32>)]
    against: Option<u32>,
}

impl HeapFlags {
    /// Adds the options to a request.
    pub(super) fn put_into(self, request: &mut Request) {
        request.snapshot = self.snapshot;
        request.against = self.against;
    }
}

fn views() -> PossibleValuesParser {
    let value = |view: &&View| {
        let instruments = view.instruments();
        let is_there = instruments.is_empty() || instruments.contains(&DEFAULT.name);
        let needs = if is_there { String::new() } else { format!(" (needs -i {})", instruments.join(" or ")) };
        PossibleValue::new(view.name).help(format!("{}{needs}", view.about))
    };
    VIEWS.iter().map(value).collect::<Vec<_>>().into()
}

fn formats() -> PossibleValuesParser {
    Format::ALL.iter().map(|(name, about, _)| PossibleValue::new(*name).help(*about)).collect::<Vec<_>>().into()
}

impl Report {
    pub(super) fn into_task(self) -> Result<Task, Failure> {
        let recording = only(self.recordings)?;
        let format = if self.json { "json" } else { &self.format };
        let (view, format) = (view_named(&self.view)?, self::format(format)?);
        let output = unless_stdout(self.output);
        if output.is_some() && !self.per_thread && format != Format::Html {
            let why = "it takes a page's file, or a folder for a log with a file per thread";
            return Err(Failure::usage("'--output' needs more", why, "add --format html, or --per-thread"));
        }
        if self.force && format != Format::Html {
            return Err(Failure::usage("'--force' needs a page", "nothing else is overwritten", "add --format html"));
        }
        let mut query = self.filters.into_query()?;
        query.per_thread = self.per_thread;
        query.metric = self.metric;
        let LogFlags { depth, follow, group: groups, name, each, interleave } = self.logs;
        let is_page = format == Format::Html;
        let mut request = Request {
            query,
            max_depth: depth,
            groups: groups.iter().map(|name| group(name)).collect::<Result<_, _>>()?,
            names: name.iter().map(|text| Glob::new(text)).collect(),
            each,
            callers: self.callers,
            interleave,
            follow,
            files: output.is_some() && !is_page,
            verbose: self.verbose,
            source: self.source || self.source_root.is_some(),
            source_root: self.source_root,
            lines: self.lines,
            ..Request::default()
        };
        self.heap.put_into(&mut request);
        request.columns = column_keys(view, &request, self.columns);
        view.check(&request, format).map_err(|Refusal { what, why, hint }| Failure::usage(what, why, hint))?;
        Ok(Task::Report(Box::new(ReportOptions { recording, view, format, request, output, force: self.force })))
    }
}

/// The view of this name.
pub(super) fn view_named(name: &str) -> Result<&'static View, Failure> {
    view(name).ok_or_else(not_known)
}

/// The format of this name.
pub(super) fn format(name: &str) -> Result<Format, Failure> {
    Format::parse(name).ok_or_else(not_known)
}

/// The failure of names that clap does not let through.
pub(super) fn not_known() -> Failure {
    Failure::usage("cannot show that", "there is no such view or format", "see 'clrscope report --help'")
}

/// Keys of the columns that words name; `None` for none. What is no column stays as it is, and is
/// refused with the others.
pub(super) fn column_keys(view: &'static View, request: &Request, words: Vec<String>) -> Option<Vec<String>> {
    let key = |word: &String| view.column_key(request, word).unwrap_or(word).to_owned();
    (!words.is_empty()).then(|| words.iter().map(key).collect())
}

/// A report is about one recording.
fn only(mut recordings: Vec<PathBuf>) -> Result<Option<PathBuf>, Failure> {
    let last = recordings.pop();
    if recordings.is_empty() {
        return Ok(last);
    }
    let why = format!("a report is about one recording, and {} were named", recordings.len() + 1);
    let hint = "to compare recordings: clrscope diff BEFORE AFTER";
    Err(Failure::usage("cannot report on several recordings at once", why, hint))
}

fn group(name: &str) -> Result<Group, Failure> {
    Group::parse(name).ok_or_else(|| {
        let known: Vec<_> = Group::ALL.iter().map(|(name, _)| *name).collect();
        Failure::usage(
            format!("'--group' does not take {}", quoted(name)),
            "there is no such group of events",
            match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("known: {}", known.join(", ")),
            },
        )
    })
}
