//! Frames of pending async operations, with the source lines of their awaits.

use clrscope_analysis::PendingFrame;
use clrscope_recording::model::Process;
use clrscope_symbols::Lines;
use serde_json::Value;

use super::sources::file_and_line;
use super::stack_frame::json_frame;
use crate::spot::LocatedLine;

/// A frame, with its module and the source line of its await as far as these are known.
pub(super) struct LocatedFrame<'a> {
    frame: &'a PendingFrame,
    module: Option<&'a str>,
    line: Option<LocatedLine>,
}

impl<'a> LocatedFrame<'a> {
    /// Returns the frames of a process with their lines.
    pub(super) fn all(process: &'a Process, frames: &'a [PendingFrame], lines: &mut Lines) -> Vec<Self> {
        frames.iter().map(|frame| Self::new(process, frame, lines)).collect()
    }

    fn new(process: &'a Process, frame: &'a PendingFrame, lines: &mut Lines) -> Self {
        let found = frame.place.and_then(|place| Some((place, place.module_in(process)?)));
        Self {
            frame,
            module: found.map(|(_, module)| module.name.as_str()).filter(|name| !name.is_empty()),
            line: found
                .and_then(|(place, module)| LocatedLine::at(lines, &module.path, place.token, place.code_place())),
        }
    }

    /// The name, followed by the line: `Shop.Cart::Pay  Cart.cs:7`.
    pub(super) fn text(&self) -> String {
        self.place().map_or_else(|| self.frame.name.to_string(), |place| format!("{}  {place}", self.frame.name))
    }

    /// The name and the line within a sentence: `Shop.Cart::Pay (Cart.cs:7)`.
    pub(super) fn in_words(&self) -> String {
        self.place().map_or_else(|| self.frame.name.to_string(), |place| format!("{} ({place})", self.frame.name))
    }

    fn place(&self) -> Option<String> {
        self.line.as_ref().map(|found| file_and_line(&found.line))
    }

    /// Returns frames in JSON.
    pub(super) fn json(frames: &[Self]) -> Value {
        let one = |found: &Self| {
            let line = found.line.as_ref().map(|found| &found.line);
            json_frame(&found.frame.name, found.frame.kind, found.module, line)
        };
        frames.iter().map(one).collect()
    }
}
