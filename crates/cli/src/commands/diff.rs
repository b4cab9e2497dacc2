//! `clrscope diff`: compares recordings, and checks gates that fail on an increase.

mod chosen;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clrscope_analysis::{
    Chosen, ComparisonProblem, Gate, Judgement, LabelSelection, NamedRecording, Outcome, Per, Query, Sides, judge,
};
use clrscope_report::{
    COMPARISONS, Comparison, Format, Refusal, Report, ReportsPage, Request, Room, View, gate_words, view,
};

use super::report::print;
use crate::errors::{EXIT_GATE, Failure, quoted, reason, shown};
use crate::recording_file::{OpenRecording, open, open_for, query_failure, resolved};
use crate::recording_folder::recordings_in;
use crate::result_file;
use crate::terminal::say;
use chosen::ChosenSides;

/// Name of the flame graph format; `None` if the build can't draw flame graphs.
pub(crate) const FLAMEGRAPH: Option<&str> = if cfg!(feature = "flamegraph") { Some("flamegraph") } else { None };

/// Options of `diff`.
#[derive(Debug)]
pub(crate) struct DiffOptions {
    /// The recordings or snapshots to compare.
    pub(crate) kind: Kind,
    /// The view; `None` for the first view that both sides have data for.
    pub(crate) comparison: Option<&'static Comparison>,
    /// The format.
    pub(crate) format: Drawn,
    /// Columns to show, by heading or key; if empty, the view chooses.
    pub(crate) columns: Vec<String>,
    /// Selection of the recordings' data, metric and order.
    pub(crate) request: Request,
    /// Gates that fail the command.
    pub(crate) gates: Vec<Gate>,
    /// The output file; stdout when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Whether to overwrite the file if it exists.
    pub(crate) force: bool,
}

/// Things to compare.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Two heap snapshots of one recording.
    Snapshots(PathBuf),
    /// Recordings, or folders of recordings, before and after.
    Sides([Vec<PathBuf>; 2]),
    /// Recordings of a folder, chosen by labels for before and after.
    Labels {
        /// The folder with the recordings.
        folder: PathBuf,
        /// The labels of both sides.
        labels: Box<[LabelSelection; 2]>,
        /// Whether amounts are per hour of recorded time or per recording.
        per: Per,
    },
}

/// Formats of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drawn {
    /// A format of reports.
    Rows(Format),
    /// A flame graph.
    FlameGraph,
}

impl Drawn {
    /// Whether the result is meant for a file, not for a terminal.
    pub(crate) fn is_file(self) -> bool {
        matches!(self, Self::FlameGraph | Self::Rows(Format::Html))
    }
}

/// A recording with the name under which it was found.
type Named = (String, OpenRecording);

/// Shows the differences. The exit code says whether a gate failed.
///
/// # Errors
/// When a recording can't be opened or lacks the compared data, a gate matches no function, or the
/// result can't be written.
pub(crate) fn perform(options: &DiffOptions) -> Result<u8, Failure> {
    match &options.kind {
        Kind::Snapshots(path) => snapshots(path, options).map(|()| 0),
        Kind::Sides(paths) => {
            let query = &options.request.query;
            let [before, after] = [open_side(&paths[0], query)?, open_side(&paths[1], query)?];
            sides(&Sides { before: recordings(&before), after: recordings(&after), chosen: None }, options)
        }
        Kind::Labels { folder, labels, per } => {
            let ChosenSides { sides: [before, after], unreadable } =
                chosen::open_chosen(folder, labels, &options.request.query)?;
            let [old, new] = [&labels[0], &labels[1]].map(ToString::to_string);
            let chosen = Some(Chosen { per: *per, before: old, after: new, unreadable });
            sides(&Sides { before: recordings(&before), after: recordings(&after), chosen }, options)
        }
    }
}

/// Two snapshots of one recording.
fn snapshots(path: &Path, options: &DiffOptions) -> Result<(), Failure> {
    let Some(view) = view("heap-diff").filter(|_| options.comparison.is_none_or(|asked| asked.name == "heap")) else {
        let why = "in one recording, only snapshots of the heap can be compared";
        return Err(Failure::usage("two recordings are needed", why, "clrscope diff BEFORE AFTER"));
    };
    let Drawn::Rows(format @ (Format::Text | Format::Json | Format::Csv)) = options.format else {
        let why = "snapshots of one recording are compared as text, JSON or CSV";
        return Err(Failure::usage("that format needs two recordings", why, "clrscope diff BEFORE AFTER"));
    };
    let request = request_for(view, &options.request, &options.columns, options.format)?;
    let recording = open(path)?;
    let asked = Request { query: resolved(&recording, &request.query)?, ..request };
    let request = if format == Format::Text { view.for_people(&asked) } else { asked };
    let report = view.open(&recording, &request).map_err(|problem| query_failure(&problem))?;
    print(&report, format)
}

fn sides(sides: &Sides<'_>, options: &DiffOptions) -> Result<u8, Failure> {
    let comparison = options.comparison.map_or_else(|| first_possible(sides), Ok)?;
    let mut request = request_for(comparison.view, &options.request, &options.columns, options.format)?;
    request.query = sides.resolved(&request.query).map_err(|problem| failure(&problem))?;
    let judged =
        |gate: &Gate| judge(sides, &options.request.query, gate).map_err(|problem| gate_failure(gate, &problem));
    let judgements = options.gates.iter().map(judged).collect::<Result<Vec<_>, _>>()?;
    let open = |comparison: &Comparison, request: &Request| {
        comparison.open(sides, &judgements, request).map_err(|problem| failure(&problem))
    };
    match options.format {
        Drawn::Rows(Format::Html) => {
            let reports = |room: Room| page_of(sides, comparison, &room.limited(&request), &open);
            let page = ReportsPage::fitting(&title(sides), reports)?.map_err(|error| super::cannot_print(&error))?;
            write_result(options, sides, |out| page.write(out))?;
        }
        Drawn::Rows(format) => {
            let request = if format == Format::Text { comparison.view.for_people(&request) } else { request };
            print(&open(comparison, &request)?, format)?;
        }
        Drawn::FlameGraph => flame_graph(sides, &request, options)?,
    }
    Ok(tell(&judgements, options.format))
}

/// The request as a view takes it.
///
/// # Errors
/// When the view refuses an option.
pub(crate) fn request_for(
    view: &'static View,
    request: &Request,
    columns: &[String],
    format: Drawn,
) -> Result<Request, Failure> {
    let mut request = request.clone();
    let key = |word: &String| view.column_key(&request, word).unwrap_or(word).to_owned();
    let keys = (!columns.is_empty()).then(|| columns.iter().map(key).collect());
    request.columns = keys;
    let format = match format {
        Drawn::Rows(format) => format,
        // It has the options of a page, because a chart has no rows.
        Drawn::FlameGraph => Format::Html,
    };
    view.check(&request, format).map_err(|Refusal { what, why, hint }| Failure::usage(what, why, hint))?;
    Ok(view.with_metric_of_columns(&request))
}

fn recordings(all: &[Named]) -> Vec<NamedRecording<'_>> {
    all.iter().map(|(name, recording)| NamedRecording { name: name.clone(), recording }).collect()
}

/// Opens the recordings of a side: named recordings, and all recordings of named folders.
fn open_side(paths: &[PathBuf], query: &Query) -> Result<Vec<Named>, Failure> {
    let mut files = Vec::new();
    for path in paths {
        match recordings_in(path) {
            Some(found) => files.extend(found),
            None => files.push(path.clone()),
        }
    }
    for (at, file) in files.iter().enumerate() {
        let place = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if files[..at].iter().any(|other| place(other) == place(file)) {
            let why = "a recording that counts twice makes the numbers look too certain";
            return Err(Failure::usage(format!("{} is named twice", shown(file)), why, "name each recording once"));
        }
    }
    let open = |file: PathBuf| Ok((file.to_string_lossy().into_owned(), open_for(&file, query)?));
    files.into_iter().map(open).collect()
}

/// The first view that both sides have data for.
fn first_possible(sides: &Sides<'_>) -> Result<&'static Comparison, Failure> {
    let found = COMPARISONS.iter().find(|comparison| comparison.is_possible(sides));
    // The views of metrics come first; their error says which metrics each side has.
    found.map_or_else(
        || sides.metric(&Query::default()).map(|_| &COMPARISONS[0]).map_err(|problem| failure(&problem)),
        Ok,
    )
}

/// All views that both sides have, the requested view first.
fn page_of<'a>(
    sides: &Sides<'a>,
    first: &'static Comparison,
    request: &Request,
    open: &impl Fn(&Comparison, &Request) -> Result<Report<'a>, Failure>,
) -> Result<Vec<Report<'a>>, Failure> {
    let mut reports = vec![open(first, request)?];
    for comparison in COMPARISONS.iter().filter(|one| one.name != first.name && one.is_possible(sides)) {
        let mut own = request.clone();
        // Filters that this view does not accept are meant for other views.
        if comparison.view.check(&own, Format::Json).is_err() {
            own.query.metric = None;
            own.query.types = Vec::new();
        }
        reports.extend(open(comparison, &own).ok());
    }
    Ok(reports)
}

fn title(sides: &Sides<'_>) -> String {
    if let Some(Chosen { before, after, .. }) = &sides.chosen {
        return format!("{before} and {after}");
    }
    let names = |all: &[NamedRecording<'_>]| all.iter().map(|one| one.name.clone()).collect::<Vec<_>>().join(", ");
    format!("{} and {}", names(&sides.before), names(&sides.after))
}

#[cfg(feature = "flamegraph")]
fn flame_graph(sides: &Sides<'_>, request: &Request, options: &DiffOptions) -> Result<(), Failure> {
    use clrscope_export::{DifferentialFlameGraph, ExportError};

    let mut graph = DifferentialFlameGraph::default();
    let request = Request { min_share: Room::FIRST.min_share, ..request.clone() };
    let metric = clrscope_report::changed_stacks(sides, &request, |frames, weight| {
        graph.add(frames.iter().map(|frame| (&*frame.label, frame.growth)), weight);
    });
    let metric = metric.map_err(|problem| failure(&problem))?;
    let mut empty = None;
    let title = title(sides);
    write_result(options, sides, |out| match graph.write(&title, metric, out) {
        Ok(()) => Ok(()),
        Err(ExportError::Io(error)) => Err(error),
        Err(other) => {
            empty = Some(other.to_string());
            Err(io::Error::other("nothing to draw"))
        }
    })
    .map_err(|written| match empty {
        Some(why) => Failure::new("cannot draw a flame graph", why, "leave filters out, or choose another --metric"),
        None => written,
    })
}

#[cfg(not(feature = "flamegraph"))]
fn flame_graph(_: &Sides<'_>, _: &Request, _: &DiffOptions) -> Result<(), Failure> {
    Err(Failure::usage("cannot draw a flame graph", "this build has none", "see 'clrscope diff --help'"))
}

/// Writes a page or a chart to its file or to stdout.
fn write_result(
    options: &DiffOptions,
    sides: &Sides<'_>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let Some(file) = &options.output else {
        return crate::terminal::plain(write).map(|_| ()).map_err(|error| super::cannot_print(&error));
    };
    for (_, one) in sides.each() {
        result_file::check(file, Path::new(&one.name), options.force)?;
    }
    let mode = result_file::mode_of(sides.each().map(|(_, one)| Path::new(&one.name)));
    result_file::write(file, options.force, mode, write).map_err(|error| {
        Failure::new(format!("cannot write {}", shown(file)), reason(&error), "choose another file with -o")
    })
}

/// Prints the results of the gates on stderr. Returns the exit code.
fn tell(judgements: &[Judgement], format: Drawn) -> u8 {
    let failed = judgements.iter().filter(|one| one.outcome == Outcome::Failed).count();
    // Text output has a line for each gate already.
    if format != Drawn::Rows(Format::Text) {
        judgements.iter().for_each(|one| say(&format!("clrscope: {}", gate_words(one))));
    }
    if failed == 0 {
        return 0;
    }
    let gates = if judgements.len() == 1 { "gate" } else { "gates" };
    say(&format!("clrscope: {failed} of {} {gates} failed", judgements.len()));
    EXIT_GATE
}

/// A comparison that can't be made, as three lines.
fn failure(problem: &ComparisonProblem) -> Failure {
    let found = query_failure(&problem.problem);
    match &problem.recording {
        Some(name) => {
            let why = format!("{}: {}", quoted(name), found.why());
            Failure::new(found.what(), why, found.hint()).with_code(found.code())
        }
        None => found,
    }
}

/// The failure for a gate that can't be judged: a gate that matches no function would never fail.
fn gate_failure(gate: &Gate, problem: &ComparisonProblem) -> Failure {
    let found = failure(problem);
    Failure::new(format!("cannot check the gate {}", quoted(&gate.text)), found.why(), found.hint())
}
