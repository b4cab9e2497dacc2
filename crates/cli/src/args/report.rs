//! `clrscope report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::filters::Filters;
use crate::commands::report::{Format, Options, View};
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
    pub(super) fn into_options(self) -> Result<Options, Failure> {
        let mut query = self.filters.into_query()?;
        query.per_thread = self.per_thread;
        Ok(Options { recording: self.recording, view: self.view.into(), format: self.format.into(), query })
    }
}

impl From<ViewName> for View {
    fn from(name: ViewName) -> Self {
        match name {
            ViewName::Summary => Self::Summary,
            ViewName::Functions => Self::Functions,
            ViewName::Tree => Self::Tree,
            ViewName::Callers => Self::Callers,
            ViewName::Callees => Self::Callees,
            ViewName::Threads => Self::Threads,
            ViewName::Modules => Self::Modules,
            ViewName::Losses => Self::Losses,
        }
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
