//! `clrscope view`.

use std::path::PathBuf;

use clap::Args;
use clrscope_report::{Format, Refusal, Request};

use super::filters::Filters;
use super::report::view_named;
use crate::commands::view::ViewOptions;
use crate::errors::Failure;

const EXAMPLES: &str = "\
Examples:
  clrscope view app.clrs
  clrscope view app.clrs.d              a recording that still grows: the page follows it
  clrscope view app.clrs --thread main --since 10s --no-browser

The page is served on this machine alone, at an address that nobody can guess; Ctrl-C ends it.";

/// Look at a recording in a browser, also while it grows
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("types", |arg| arg.hide(true)),
    mut_arg("limit", |arg| arg.hide(true)),
    mut_arg("sort", |arg| arg.hide(true))
)]
pub(super) struct View {
    /// The recording: NAME.clrs or NAME.clrs.d [default: the newest in this folder]
    #[arg(value_name = "REC")]
    recording: Option<PathBuf>,

    /// Port to listen on [default: any that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Say the address, and open no browser
    #[arg(long)]
    no_browser: bool,

    #[command(flatten)]
    filters: Filters,
}

impl View {
    pub(super) fn into_options(self) -> Result<ViewOptions, Failure> {
        let request = Request { query: self.filters.into_query()?, ..Request::default() };
        // The page is that of a report, and takes the same filters.
        view_named("summary")?.check(&request, Format::Html).map_err(|Refusal { what, why, hint }| {
            Failure::usage(what.replace("'--format html'", "'view'"), why, hint)
        })?;
        Ok(ViewOptions { recording: self.recording, request, port: self.port, browser: !self.no_browser })
    }
}
