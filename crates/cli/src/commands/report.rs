//! `clrscope report`: one view of a recording in one format.

use std::io::{self, Write};
use std::path::PathBuf;

use clrscope_analysis::{
    Conditions, Forest, LossRow, Losses, Neighbours, Query, QueryProblem, TreeNode, TreeOptions, callees, callers,
    conditions, functions, losses, modules, summary, threads, tree,
};
use clrscope_recording::model::{Problem, Recording};
use clrscope_report::json::Object;
use clrscope_report::{csv, json, text};
use serde_json::{Value, json};

use crate::errors::Failure;
use crate::recording_file::{open, query_failure};
use crate::terminal;

/// What to show and how.
#[derive(Debug)]
pub(crate) struct Options {
    /// The recording.
    pub(crate) recording: PathBuf,
    /// The view.
    pub(crate) view: View,
    /// The format.
    pub(crate) format: Format,
    /// Which part of it.
    pub(crate) query: Query,
}

/// The views.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// What stands out.
    Summary,
    /// A row per function.
    Functions,
    /// The calling-context tree.
    Tree,
    /// Who calls a function.
    Callers,
    /// What a function calls.
    Callees,
    /// A row per thread.
    Threads,
    /// A row per module.
    Modules,
    /// A row per reason of loss.
    Losses,
}

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One document.
    Json,
    /// For spreadsheets.
    Csv,
}

/// In text, nodes with a smaller share of the time are left out of a tree.
const LEAST_SHARE: f64 = 0.005;

/// Shows it.
///
/// # Errors
/// When the recording can't be opened, the query not be answered, or the result not be written.
pub(crate) fn perform(options: &Options) -> Result<(), Failure> {
    let recording = open(&options.recording)?;
    let answer = |problem: QueryProblem| query_failure(&problem);
    match options.format {
        Format::Text => {
            super::print(&as_text(&recording, options.view, &options.query, terminal::width()).map_err(answer)?)
        }
        Format::Csv => {
            let rows = rows(&recording, options.view, &options.query).map_err(answer)?;
            write(|out| out.write_all(csv::table(&rows).as_bytes()))
        }
        Format::Json if options.view == View::Tree => {
            let forest = Forest::open(&recording, &options.query).map_err(answer)?;
            write(|out| write_tree(out, &recording, &forest))
        }
        Format::Json => {
            let document = as_json(&recording, options.view, &options.query).map_err(answer)?;
            write(|out| writeln!(out, "{document:#}"))
        }
    }
}

fn write(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    terminal::stream(write).map_err(|error| super::cannot_print(&error))
}

fn write_tree(out: &mut dyn Write, recording: &Recording, forest: &Forest<'_>) -> io::Result<()> {
    let mut writer = json::TreeWriter::begin(out, json::recording(recording))?;
    forest.walk(&TreeOptions::default(), |node| writer.node(node))?;
    writer.end()
}

impl View {
    /// Its name in schemas and on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Summary => "summary",
            Self::Functions => "functions",
            Self::Tree => "tree",
            Self::Callers => "callers",
            Self::Callees => "callees",
            Self::Threads => "threads",
            Self::Modules => "modules",
            Self::Losses => "losses",
        }
    }

    /// Rows in text when nobody asked for a number.
    fn text_limit(self) -> Option<usize> {
        match self {
            Self::Functions | Self::Modules => Some(30),
            Self::Callers | Self::Callees => Some(20),
            Self::Threads => Some(50),
            Self::Summary | Self::Tree | Self::Losses => None,
        }
    }
}

/// The report as text, in at most `width` columns.
///
/// # Errors
/// When the query can't be answered.
pub(crate) fn as_text(recording: &Recording, view: View, query: &Query, width: usize) -> Result<String, QueryProblem> {
    let query = &Query { limit: query.limit.or(view.text_limit()), ..query.clone() };
    let with_head = |conditions: &Conditions<'_>, body: String| text::head(recording, conditions, width) + &body;
    Ok(match view {
        View::Summary => {
            let view = summary(recording, query)?;
            with_head(&view.conditions, text::summary(&view, query.sort, width))
        }
        View::Functions => {
            let view = functions(recording, query)?;
            with_head(&view.conditions, text::functions(&view, width))
        }
        View::Tree => {
            let view = tree(recording, query, &TreeOptions { min_share: LEAST_SHARE, max_depth: None })?;
            with_head(&view.conditions, text::tree(&view, width))
        }
        View::Callers => {
            let view = callers(recording, query)?;
            with_head(&view.conditions, text::neighbours(&view, "callers", width))
        }
        View::Callees => {
            let view = callees(recording, query)?;
            with_head(&view.conditions, text::neighbours(&view, "callees", width))
        }
        View::Threads => {
            let view = threads(recording, query)?;
            with_head(&view.conditions, text::threads(&view, width))
        }
        View::Modules => {
            let view = modules(recording, query)?;
            with_head(&view.conditions, text::modules(&view, width))
        }
        View::Losses => {
            let view = losses(recording, query)?;
            with_head(&conditions(recording, query)?, text::losses(&view, width))
        }
    })
}

/// The report as a document. The tree, which may be large, is written node by node instead.
fn as_json(recording: &Recording, view: View, query: &Query) -> Result<Value, QueryProblem> {
    let about = json::recording(recording);
    let rest = match view {
        View::Summary => {
            let summary = summary(recording, query)?;
            let several = recording.processes.len() > 1;
            vec![
                ("findings", json::array(summary.findings.iter().map(json::finding))),
                ("top", json::array(summary.top.iter().map(|row| json::function_row(row, several)))),
            ]
        }
        View::Callers => neighbours(&callers(recording, query)?.items, recording),
        View::Callees => neighbours(&callees(recording, query)?.items, recording),
        _ => vec![("rows", json::array(rows(recording, view, query)?.into_iter()))],
    };
    Ok(json::document(view.name(), about, rest))
}

/// The first function that matches with its rows; where several match, the others follow.
fn neighbours(items: &[Neighbours<'_>], recording: &Recording) -> Vec<(&'static str, Value)> {
    let several = recording.processes.len() > 1;
    let of = |item: &Neighbours<'_>| {
        let function = Value::Object(json::function_row(&item.function, several));
        (function, json::array(item.rows.iter().map(json::edge)))
    };
    let Some((first, others)) = items.split_first() else { return vec![("rows", json!([]))] };
    let (function, rows) = of(first);
    let mut rest = vec![("function", function), ("rows", rows)];
    if !others.is_empty() {
        let more = others.iter().map(of).map(|(function, rows)| json!({ "function": function, "rows": rows }));
        rest.push(("others", more.collect()));
    }
    rest
}

/// The rows of a view, for the formats that are nothing but rows.
fn rows(recording: &Recording, view: View, query: &Query) -> Result<Vec<Object>, QueryProblem> {
    let several = recording.processes.len() > 1;
    Ok(match view {
        View::Summary => summary(recording, query)?.top.iter().map(|row| json::function_row(row, several)).collect(),
        View::Functions => {
            functions(recording, query)?.rows.iter().map(|row| json::function_row(row, several)).collect()
        }
        View::Tree => tree_rows(recording, query)?,
        View::Callers => edge_rows(&callers(recording, query)?.items),
        View::Callees => edge_rows(&callees(recording, query)?.items),
        View::Threads => threads(recording, query)?.rows.iter().map(|row| json::thread(row, several)).collect(),
        View::Modules => modules(recording, query)?.rows.iter().map(|row| json::module(row, several)).collect(),
        View::Losses => loss_rows(&losses(recording, query)?, several),
    })
}

fn tree_rows(recording: &Recording, query: &Query) -> Result<Vec<Object>, QueryProblem> {
    let tree = tree(recording, query, &TreeOptions::default())?;
    let row =
        |node: &TreeNode<'_>| [("depth".to_owned(), json!(node.depth))].into_iter().chain(json::node(node)).collect();
    Ok(tree.nodes.iter().map(row).collect())
}

fn edge_rows(items: &[Neighbours<'_>]) -> Vec<Object> {
    let of = |item: &Neighbours<'_>| {
        let function = ("function".to_owned(), json!(item.function.function.signature()));
        item.rows.iter().map(|row| [function.clone()].into_iter().chain(json::edge(row)).collect()).collect::<Vec<_>>()
    };
    items.iter().flat_map(of).collect()
}

/// What could not be read is a loss like any other.
fn loss_rows(losses: &Losses<'_>, several: bool) -> Vec<Object> {
    let lost = |row: &LossRow<'_>| {
        let mut all = json::loss(row.loss);
        if several {
            all.insert("pid".to_owned(), json!(row.pid));
        }
        all
    };
    let unreadable = |problem: &Problem| {
        let row = json!({
            "reason": "unreadable", "count": 1, "first_ns": null, "last_ns": null,
            "place": problem.place, "what": problem.what,
        });
        row.as_object().cloned().unwrap_or_default()
    };
    losses.rows.iter().map(lost).chain(losses.problems.iter().map(unreadable)).collect()
}
