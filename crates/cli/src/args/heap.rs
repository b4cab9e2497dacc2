//! `clrscope heap`.

use clap::Args;

use super::filters::whole;
use super::recording::ResultArgs;
use crate::commands::heap::HeapOptions;

const EXAMPLES: &str = "\
Examples:
  clrscope ps                              which processes there are
  clrscope heap 4711                       what is on the heap of process 4711
  clrscope heap 4711 -o before.clrs        into a file of this name
  clrscope heap 4711 --no-collect          with what the next collection would take

The program stands still for a full collection and while its heap is read: about a second for ten
million objects. Then the agent leaves, as 'clrscope attach' does. Where the program is recorded
already with -i heap, the snapshot goes into that recording.";

/// Take a snapshot of the heap of a program that runs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Heap {
    #[command(flatten)]
    result: ResultArgs,

    /// Take the heap as it is before the collection, garbage included
    #[arg(long)]
    no_collect: bool,

    /// The process, as 'clrscope ps' lists it
    #[arg(value_name = "PID", value_parser = whole::<u32>)]
    pid: u32,
}

impl Heap {
    pub(super) fn into_options(self) -> HeapOptions {
        let ResultArgs { output, force, quiet, .. } = self.result;
        HeapOptions { pid: self.pid, collects: !self.no_collect, output, force, quiet }
    }
}
