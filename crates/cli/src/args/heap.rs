//! `clrscope heap`.

use clap::Args;

use super::recording::ResultArgs;
use crate::commands::heap::HeapOptions;
use crate::errors::Failure;
use crate::process_name::process_named;

const EXAMPLES: &str = "\
Examples:
  clrscope ps                              which processes there are
  clrscope heap 4711                       what is on the heap of process 4711
  clrscope heap 4711 -o before.clrs        into a file of this name
  clrscope heap 4711 --no-collect          garbage included

The program stops for a full collection and while its heap is read: about a second for ten million
objects. Then the agent detaches, as after 'clrscope attach'. If the program is already recorded
with -i heap, the snapshot goes into that recording.";

/// Take a snapshot of a running program's heap
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Heap {
    #[command(flatten)]
    result: ResultArgs,

    /// Take the snapshot without a collection first, so that it includes garbage
    #[arg(long)]
    no_collect: bool,

    /// The process, as 'clrscope ps' lists it
    #[arg(value_name = "PID|NAME")]
    process: String,
}

impl Heap {
    pub(super) fn into_options(self) -> Result<HeapOptions, Failure> {
        let ResultArgs { output, force, quiet, .. } = self.result;
        Ok(HeapOptions { pid: process_named(&self.process)?, collects: !self.no_collect, output, force, quiet })
    }
}
