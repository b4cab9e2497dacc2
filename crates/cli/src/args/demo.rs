//! `clrscope demo`.

use std::path::PathBuf;

use clap::Args;

use crate::commands::demo::DemoOptions;

const EXAMPLES: &str = "\
Examples:
  clrscope demo
  clrscope demo -o demo.clrs               keeps the recording";

/// Profile a built-in program and show the report
///
/// Uses the .NET runtime it finds; where there is none, fetches .NET 8 into the cache, for the demo alone.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Demo {
    /// Keep the recording in this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Overwrite the recording if it exists
    #[arg(long)]
    force: bool,
}

impl Demo {
    pub(super) fn into_options(self) -> DemoOptions {
        DemoOptions { output: self.output, force: self.force }
    }
}
