//! `clrscope report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use clrscope_analysis::{EventQuery, ExceptionQuery, Metric, Query};
use clrscope_contract::request::Glob;
use clrscope_recording::events::Group;

use super::filters::{Filters, metrics, whole};
use crate::commands::report::{Format, Options, View};
use crate::commands::{Task, events, exceptions, flow};
use crate::errors::{Failure, quoted};

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

    /// What paths are measured by in the views functions, tree, callers and callees [default: the first that was recorded]
    #[arg(long, value_name = "METRIC", value_parser = metrics())]
    metric: Option<&'static Metric>,

    /// One row, or one tree, per thread
    #[arg(long)]
    per_thread: bool,

    #[command(flatten)]
    logs: LogFlags,

    #[command(flatten)]
    filters: Filters,
}

/// What only logs have.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Views 'flow', 'events' and 'exceptions'")]
struct LogFlags {
    /// View flow: leave calls deeper than this out (0 is the outermost)
    #[arg(long, value_name = "DEPTH", value_parser = whole::<u32>)]
    depth: Option<u32>,

    /// Views flow and events: go on with what the program does until it ends
    #[arg(long)]
    follow: bool,

    /// View events: only events of this group, such as jit or gc; can be repeated
    #[arg(long, value_name = "GROUP")]
    group: Vec<String>,

    /// Only events that are called or are about something called like this, only exceptions of a type called
    /// like this; can be repeated
    #[arg(long, value_name = "PATTERN")]
    name: Vec<String>,

    /// View exceptions: the whole story of each exception, rather than rows by type and place
    #[arg(long)]
    each: bool,

    /// View events: all threads together by time, rather than one after another
    #[arg(long)]
    interleave: bool,

    /// View events with --per-thread: a file per thread in this folder
    #[arg(short = 'o', long = "output", value_name = "DIR", requires = "per_thread")]
    output: Option<PathBuf>,
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
    /// What the runtime told, as a log
    Events,
    /// Exceptions by type and place, or the whole story of --each
    Exceptions,
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
        query.metric = self.metric;
        let (recording, format, logs) = (self.recording, self.format.into(), self.logs);
        Ok(match Shown::from(self.view) {
            Shown::Table(view) => {
                logs.refuse(view.name(), &[], "its rows are sums, not single calls or events")?;
                Task::Report(Box::new(Options { recording, view, format, query }))
            }
            Shown::Flow => Task::Flow(Box::new(logs.into_flow_options(recording, format, query)?)),
            Shown::Events => Task::Events(Box::new(logs.into_event_options(recording, format, query)?)),
            Shown::Exceptions => Task::Exceptions(Box::new(logs.into_exception_options(recording, format, query)?)),
        })
    }
}

impl LogFlags {
    fn given(&self) -> [(&'static str, bool); 7] {
        [
            ("--depth", self.depth.is_some()),
            ("--follow", self.follow),
            ("--group", !self.group.is_empty()),
            ("--name", !self.name.is_empty()),
            ("--each", self.each),
            ("--interleave", self.interleave),
            ("--output", self.output.is_some()),
        ]
    }

    /// Refuses every flag that was given but those that the view has.
    fn refuse(&self, view: &str, has: &[&str], why: &str) -> Result<(), Failure> {
        match self.given().into_iter().find(|(option, given)| *given && !has.contains(option)) {
            Some((option, _)) => {
                let hint = "'clrscope report --help' says which view has which options";
                Err(Failure::usage(format!("'{option}' is not for the view '{view}'"), why, hint))
            }
            None => Ok(()),
        }
    }

    fn into_flow_options(self, recording: PathBuf, format: Format, query: Query) -> Result<flow::Options, Failure> {
        self.refuse("flow", &["--depth", "--follow"], "it shows calls")?;
        if self.follow && format != Format::Text {
            let why = "what is still growing is shown as text";
            return Err(Failure::usage("'--follow' does not go with that format", why, "leave --format out"));
        }
        Ok(flow::Options { recording, format, query, max_depth: self.depth, follow: self.follow })
    }

    fn into_exception_options(
        self,
        recording: PathBuf,
        format: Format,
        query: Query,
    ) -> Result<exceptions::Options, Failure> {
        self.refuse("exceptions", &["--name", "--each"], "it shows exceptions, not single events")?;
        if query.per_thread {
            let why = "it shows the thread of each exception with --each";
            return Err(Failure::usage(
                "'--per-thread' is not for the view 'exceptions'",
                why,
                "choose one with --thread",
            ));
        }
        let types = self.name.iter().map(|text| Glob::new(text)).collect();
        Ok(exceptions::Options { recording, format, query: ExceptionQuery { query, types }, each: self.each })
    }

    fn into_event_options(self, recording: PathBuf, format: Format, query: Query) -> Result<events::Options, Failure> {
        self.refuse("events", &["--group", "--name", "--interleave", "--follow", "--output"], "it is a log of events")?;
        let follows_text = matches!(format, Format::Text) && self.output.is_none();
        if self.follow && !follows_text {
            let why = "what is still growing is shown as text on the terminal";
            return Err(Failure::usage("'--follow' does not go with that", why, "leave --format and --output out"));
        }
        if query.per_thread && self.output.is_none() {
            let why = "events are shown thread by thread anyway";
            return Err(Failure::usage("'--per-thread' needs a folder", why, "add -o DIR for a file per thread"));
        }
        let groups = self.group.iter().map(|name| group(name)).collect::<Result<_, _>>()?;
        let names = self.name.iter().map(|text| Glob::new(text)).collect();
        let query = EventQuery { query, groups, names, interleave: self.interleave };
        Ok(events::Options { recording, format, query, follow: self.follow, folder: self.output })
    }
}

fn group(name: &str) -> Result<Group, Failure> {
    Group::parse(name).ok_or_else(|| {
        let known: Vec<_> = Group::ALL.iter().map(|(name, _)| *name).collect();
        Failure::usage(
            format!("'--group' does not take {}", quoted(name)),
            "there is no such group of events",
            format!("known: {}", known.join(", ")),
        )
    })
}

/// A view, by the command that shows it.
#[derive(Debug, Clone, Copy)]
enum Shown {
    Table(View),
    Flow,
    Events,
    Exceptions,
}

impl From<ViewName> for Shown {
    fn from(name: ViewName) -> Self {
        match name {
            ViewName::Summary => Self::Table(View::Summary),
            ViewName::Functions => Self::Table(View::Functions),
            ViewName::Tree => Self::Table(View::Tree),
            ViewName::Callers => Self::Table(View::Callers),
            ViewName::Callees => Self::Table(View::Callees),
            ViewName::Threads => Self::Table(View::Threads),
            ViewName::Modules => Self::Table(View::Modules),
            ViewName::Losses => Self::Table(View::Losses),
            ViewName::Flow => Self::Flow,
            ViewName::Events => Self::Events,
            ViewName::Exceptions => Self::Exceptions,
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
