//! `clrscope report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::filters::Filters;
use crate::commands::report::{Format, Options, View};
use crate::commands::{Task, flow};
use crate::errors::Failure;

const EXAMPLES: &str = "\
Examples:
  clrscope report app.clrs
  clrscope report app.clrs --view functions --sort calls --limit 20
  clrscope report app.clrs --view callers --function 'Shop.Cart::Total'
  clrscope report app.clrs --view tree --module MyApp --format json";

/// Read a recording as tables and trees
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Report {
    /// The recording: NAME.clrs or NAME.clrs.d
    #[arg(value_name = "REC")]
    recording: PathBuf,

    /// What to show
    #[arg(long, value_name = "VIEW", default_value = "summary")]
    view: ViewName,

    /// How to show it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: FormatName,

    /// One row, or one tree, per thread
    #[arg(long)]
    per_thread: bool,

    /// View flow: leave calls deeper than this out (0 is the outermost)
    #[arg(long, value_name = "DEPTH")]
    depth: Option<u32>,

    /// View flow: go on with what is called until the program ends
    #[arg(long)]
    follow: bool,

    #[command(flatten)]
    filters: Filters,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ViewName {
    /// What stands out, and the first functions
    Summary,
    /// Every function with its calls and times
    Functions,
    /// The calling-context tree
    Tree,
    /// Who calls the functions named by --function
    Callers,
    /// What the functions named by --function call
    Callees,
    /// Every thread with its totals
    Threads,
    /// Every assembly and library with its totals
    Modules,
    /// What was not recorded, and why
    Losses,
    /// Every call with its begin and its end (needs -i flow)
    Flow,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormatName {
    /// Tables for people
    Text,
    /// One JSON document, times in nanoseconds
    Json,
    /// Comma-separated values, times in nanoseconds
    Csv,
}

impl Report {
    pub(super) fn into_task(self) -> Result<Task, Failure> {
        let mut query = self.filters.into_query()?;
        query.per_thread = self.per_thread;
        let (recording, format) = (self.recording, self.format.into());
        if let Some(view) = self.view.table() {
            let given = [("--depth", self.depth.is_some()), ("--follow", self.follow)];
            return match given.into_iter().find(|(_, given)| *given) {
                Some((option, _)) => Err(only_for_flow(option, view)),
                None => Ok(Task::Report(Box::new(Options { recording, view, format, query }))),
            };
        }
        if self.follow && format != Format::Text {
            let why = "what is still growing is shown as text";
            return Err(Failure::usage("'--follow' does not go with that format", why, "leave --format out"));
        }
        Ok(Task::Flow(Box::new(flow::Options { recording, format, query, max_depth: self.depth, follow: self.follow })))
    }
}

fn only_for_flow(option: &str, view: View) -> Failure {
    Failure::usage(
        format!("'{option}' is not for the view '{}'", view.name()),
        "its rows are sums, not single calls",
        "'--view flow' shows single calls",
    )
}

impl ViewName {
    /// The view where it is a table, `None` for the log of calls.
    fn table(self) -> Option<View> {
        Some(match self {
            Self::Summary => View::Summary,
            Self::Functions => View::Functions,
            Self::Tree => View::Tree,
            Self::Callers => View::Callers,
            Self::Callees => View::Callees,
            Self::Threads => View::Threads,
            Self::Modules => View::Modules,
            Self::Losses => View::Losses,
            Self::Flow => return None,
        })
    }
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Text => Self::Text,
            FormatName::Json => Self::Json,
            FormatName::Csv => Self::Csv,
        }
    }
}
