//! `clrscope top`.

use clap::Args;

use super::TextOrJson;
use super::counters::needs_once;
use crate::commands::top::TopOptions;
use crate::errors::Failure;
use crate::process_name::process_named;

const EXAMPLES: &str = "\
Examples:
  clrscope ps                              which processes there are
  clrscope top 4711                        a screen, new each second
  clrscope top 4711 --once --format json   what is known after 5 s, for scripts

Pages: 1 methods that take CPU time, 2 allocations by type, 3 requests, 4 exceptions, 5 thread pool
and locks; all of the last 5 s. Keys: q quit, p pause, 1 to 5 page, s sort, / filter, arrows scroll.
If stdout is not a terminal, a block of lines is printed each second. The agent detaches when the
screen closes, and nothing is kept.";

/// Show what a running program spends time and memory on, live
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Top {
    /// Show what is known after 5 s, then exit
    #[arg(long)]
    once: bool,

    /// With --once: text for people, or one JSON document
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    format: TextOrJson,

    /// The process, as 'clrscope ps' lists it
    #[arg(value_name = "PID|NAME")]
    process: String,
}

impl Top {
    pub(super) fn into_options(self) -> Result<TopOptions, Failure> {
        let Self { once, format, process } = self;
        needs_once(once, format)?;
        Ok(TopOptions { pid: process_named(&process)?, once, json: format == TextOrJson::Json })
    }
}
