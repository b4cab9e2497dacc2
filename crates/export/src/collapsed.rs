//! `collapsed`: one line per stack, `a;b;c WEIGHT`, the input of flame graph tools.
//!
//! The weight is the path's own value of the metric, in nanoseconds or as a number. Stacks without
//! weight have no line. A stack has at most a thousand frames: the values of deeper frames are
//! added to its thousandth frame.

use std::io::Write;

use clrscope_recording::model::Recording;

use crate::weighed::weighed_stacks;
use crate::{ExportError, ExportOptions, Exporter};

/// The format `collapsed`; its module describes the output.
pub(crate) struct Collapsed;

impl Exporter for Collapsed {
    fn name(&self) -> &'static str {
        "collapsed"
    }

    fn description(&self) -> &'static str {
        "one line per stack with its nanoseconds, bytes or number, for flame graph tools"
    }

    fn extension(&self) -> &'static str {
        "folded"
    }

    fn shows_heap(&self) -> bool {
        true
    }

    fn takes_min_share(&self) -> bool {
        true
    }

    fn shows_native_code(&self) -> bool {
        true
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let min_share = options.min_share.unwrap_or(0.0);
        weighed_stacks(recording, options, (self.name(), min_share), |stack, weight| {
            Ok(writeln!(out, "{stack} {weight}")?)
        })?;
        Ok(())
    }
}
