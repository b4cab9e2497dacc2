//! `clrscope stacks`.

use clap::Args;

use super::TextOrJson;
use super::filters::whole;
use crate::commands::stacks::StacksOptions;
use crate::errors::Failure;
use crate::process_name::process_named;

const EXAMPLES: &str = "\
Examples:
  clrscope ps                              which processes there are
  clrscope stacks 4711                     what its threads do, and what async operations wait for
  clrscope stacks 4711 --no-heap           threads only: the program is not stopped
  clrscope stacks 4711 --format json

Operations are merged by who awaits whom, the most numerous first. To find them, the program is
stopped for a full collection and while its heap is read: about a second for ten million objects.
The agent detaches afterwards, and nothing is kept. If a process does not answer, the system's own
list of its threads is shown, and the exit code is 1.";

/// Show what a running or hanging program does and waits for
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Stacks {
    /// Text for people, or one JSON document
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    format: TextOrJson,

    /// Leave async operations out, so that the program is not stopped
    #[arg(long)]
    no_heap: bool,

    /// Read the heap even if that may take longer than 5 s
    #[arg(long, conflicts_with = "no_heap")]
    force: bool,

    /// Maximum number of rows of async operations
    #[arg(short = 'n', long, value_name = "ROWS", value_parser = whole::<usize>)]
    limit: Option<usize>,

    /// The process, as 'clrscope ps' lists it
    #[arg(value_name = "PID|NAME")]
    process: String,
}

impl Stacks {
    pub(super) fn into_options(self) -> Result<StacksOptions, Failure> {
        let Self { format, no_heap, force, limit, process } = self;
        let pid = process_named(&process)?;
        Ok(StacksOptions { pid, json: format == TextOrJson::Json, reads_heap: !no_heap, force, limit })
    }
}
