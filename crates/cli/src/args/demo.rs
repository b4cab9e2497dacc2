//! `clrscope demo`.

use std::path::PathBuf;

use clap::Args;
use clrscope_contract::request::Request;

use super::recording::{InstrumentArgs, checked};
use crate::commands::demo::DemoOptions;
use crate::errors::Failure;

const EXAMPLES: &str = "\
Examples:
  clrscope demo
  clrscope demo -i calls                   every call counted, by call path
  clrscope demo -i cpu -i wall             also what threads wait for
  clrscope demo -o demo.clrs               keeps the recording, and the page next to it";

/// Profile a built-in program and show the report
///
/// Uses an installed .NET runtime; if there is none, fetches .NET 8 into the cache, only for the
/// demo.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Demo {
    #[command(flatten)]
    instruments: InstrumentArgs,

    /// Keep the recording in this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Overwrite the recording and the page if they exist
    #[arg(long)]
    force: bool,
}

impl Demo {
    pub(super) fn into_options(self) -> Result<DemoOptions, Failure> {
        let instruments_given = self.instruments.given();
        let request = Request { instruments: self.instruments.requests()?, ..Request::default() };
        let request = checked(request, &instruments_given)?;
        Ok(DemoOptions { request, instruments_given, output: self.output, force: self.force })
    }
}
