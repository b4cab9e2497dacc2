//! `pprof`: a profile for pprof and the many programs that read its format, of any metric.
//!
//! The message `Profile` of `profile.proto`, not compressed. Functions are frames by their names.

use std::collections::HashMap;
use std::io::Write;

use clrscope_recording::model::Recording;

use crate::protobuf::Message;
use crate::weighed::weighed_stacks;
use crate::{ExportError, ExportOptions, Exporter};

/// See the module's page.
pub(crate) struct Pprof;

/// Numbers of the fields of `Profile`.
mod field {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING_TABLE: u64 = 6;
    pub(super) const DURATION_NANOS: u64 = 10;
}

impl Exporter for Pprof {
    fn name(&self) -> &'static str {
        "pprof"
    }

    fn description(&self) -> &'static str {
        "a profile for pprof and the programs that read its format"
    }

    fn extension(&self) -> &'static str {
        "pb"
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
        // The first string is empty by the format.
        let mut frames = Frames { numbers: HashMap::new(), names: vec![String::new()] };
        let min_share = options.min_share.unwrap_or(0.0);
        let mut written = Message::default();
        let weight = weighed_stacks(recording, options, (self.name(), min_share), |stack, weight| {
            if weight > 0 {
                // The innermost frame comes first.
                let locations: Vec<u64> = stack.rsplit(';').map(|frame| frames.number(frame)).collect();
                written.clear();
                written.message(field::SAMPLE, |sample| {
                    sample.packed(1, &locations);
                    sample.packed(2, &[weight]);
                });
                out.write_all(written.encoded())?;
            }
            Ok(())
        })?;
        let functions = frames.names.len() as u64;
        let [kind, unit] = [weight.name, weight.unit].map(|text| frames.string(text));
        let mut rest = Message::default();
        rest.message(field::SAMPLE_TYPE, |of| {
            of.number(1, kind);
            of.number(2, unit);
        });
        // Frame, function and name have one number.
        for number in 1..functions {
            rest.message(field::FUNCTION, |function| {
                function.number(1, number);
                function.number(2, number);
                function.number(3, number);
            });
            rest.message(field::LOCATION, |location| {
                location.number(1, number);
                location.message(4, |line| line.number(1, number));
            });
        }
        frames.names.iter().for_each(|name| rest.bytes(field::STRING_TABLE, name.as_bytes()));
        rest.number(field::DURATION_NANOS, recording.run.duration_ns);
        out.write_all(rest.encoded())?;
        Ok(())
    }
}

/// Names of frames, by number from 1, and other strings behind them.
struct Frames {
    numbers: HashMap<String, u64>,
    names: Vec<String>,
}

impl Frames {
    fn number(&mut self, frame: &str) -> u64 {
        if let Some(&number) = self.numbers.get(frame) {
            return number;
        }
        let number = self.string(frame);
        self.numbers.insert(frame.to_owned(), number);
        number
    }

    fn string(&mut self, text: &str) -> u64 {
        self.names.push(text.to_owned());
        self.names.len() as u64 - 1
    }
}
