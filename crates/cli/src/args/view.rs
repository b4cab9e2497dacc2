//! `clrscope view`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clrscope_analysis::{Metric, Query};
use clrscope_report::{Format, Refusal, Request};

use super::filters::{Filters, metrics};
use super::report::view_named;
use crate::commands::view::{ViewOptions, With};
use crate::errors::Failure;
use crate::viewer::HAS_SPEEDSCOPE;

const EXAMPLES: &str = "\
Examples:
  clrscope view app.clrs
  clrscope view app.clrs.d              a recording that still grows: the page follows it
  clrscope view app.clrs --thread main --since 10s --no-browser
  clrscope view app.clrs --with speedscope --metric exceptions

The page is served only to this machine, at an address that can't be guessed, until Ctrl-C.";

/// The examples that this build can run.
fn examples() -> String {
    EXAMPLES.lines().filter(|line| HAS_SPEEDSCOPE || !line.contains("speedscope")).collect::<Vec<_>>().join("\n")
}

/// Show a recording in a browser, even while it grows
#[derive(Debug, Args)]
#[command(
    after_help = examples(),
    mut_arg("types", |arg| arg.hide(true)),
    mut_arg("limit", |arg| arg.hide(true)),
    mut_arg("sort", |arg| arg.hide(true))
)]
pub(super) struct View {
    /// The recording: NAME.clrs or NAME.clrs.d [default: the newest in this folder]
    #[arg(value_name = "REC")]
    recording: Option<PathBuf>,

    /// Page to show the recording with
    #[arg(long, value_name = "PAGE", value_parser = pages(), default_value = PAGES[0].0)]
    with: String,

    /// Metric of call paths to show first; with speedscope, the only one [default: the first that
    /// was recorded]
    #[arg(long, value_name = "METRIC", value_parser = metrics())]
    metric: Option<&'static Metric>,

    /// Folder to search for sources that are not where they were compiled
    #[arg(long, value_name = "FOLDER")]
    source_root: Option<PathBuf>,

    /// Port to listen on [default: any free port]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Print the address, and open no browser
    #[arg(long)]
    no_browser: bool,

    #[command(flatten)]
    filters: Filters,
}

/// The pages with their names and what they are; a build without speedscope does not offer it.
const PAGES: [(&str, &str, With); 2] = [
    ("clrscope", "every view of the recording", With::Page),
    (
        "speedscope",
        "speedscope.app's page, built into clrscope: calls of flow, or samples, by thread and time, as recorded so far",
        With::Speedscope,
    ),
];

fn pages() -> PossibleValuesParser {
    let there = PAGES.iter().filter(|(_, _, with)| HAS_SPEEDSCOPE || *with != With::Speedscope);
    there.map(|(name, about, _)| PossibleValue::new(*name).help(*about)).collect::<Vec<_>>().into()
}

impl View {
    pub(super) fn into_options(self) -> Result<ViewOptions, Failure> {
        let with = PAGES.iter().find(|(name, ..)| *name == self.with).map_or(With::Page, |(.., with)| *with);
        if with == With::Speedscope && self.source_root.is_some() {
            let what = "'--source-root' is not for '--with speedscope'";
            return Err(Failure::usage(what, "that page shows no source", "leave one of them out"));
        }
        let query = Query { metric: self.metric, ..self.filters.into_query()? };
        let request = Request { query, source: true, source_root: self.source_root, ..Request::default() };
        // The page is that of a report, and takes the same filters.
        view_named("summary")?.check(&request, Format::Html).map_err(|Refusal { what, why, hint }| {
            Failure::usage(what.replace("'--format html'", "'view'"), why, hint)
        })?;
        Ok(ViewOptions { recording: self.recording, with, request, port: self.port, browser: !self.no_browser })
    }
}
