//! `collapsed`: one line per stack, `a;b;c WEIGHT`, as the flame graph tools read them.
//!
//! The weight is in nanoseconds, of wall time unless CPU time is asked for, or the number of calls
//! along that very path. Stacks without weight have no line. Frames below the thousandth count for it.

use std::io::Write;

use clrscope_recording::model::Recording;

use crate::stacks::stacks;
use crate::{ExportError, ExportOptions, Exporter};

/// See the module's page.
pub(crate) struct Collapsed;

impl Exporter for Collapsed {
    fn name(&self) -> &'static str {
        "collapsed"
    }

    fn description(&self) -> &'static str {
        "one line per stack with its nanoseconds or calls, for flame graph tools"
    }

    fn extension(&self) -> &'static str {
        "folded"
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let min_share = options.min_share.unwrap_or(0.0);
        stacks(recording, options, min_share, |_, _| (), |stack, weight| Ok(writeln!(out, "{stack} {weight}")?))
    }
}
