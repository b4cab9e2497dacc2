//! The recorded events of one thread.

use clrscope_recording::layout::{flow, u32_at, u64_at};

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    /// A function was entered, is about to return, or is about to be replaced by a tail call. The
    /// number is the function's index in the recording.
    Enter(u32),
    Leave(u32),
    TailCall(u32),
    /// A finally, fault or catch block is about to run.
    Block,
    FilterEnter,
    FilterLeave,
    /// The values are the result of the `async` method whose code runs in the activation with this
    /// stack pointer.
    Result,
}

/// One event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw<'a> {
    pub(super) ticks: u64,
    pub(super) what: EventKind,
    /// Lower half of the stack pointer.
    pub(super) sp: u32,
    /// The values of the event, still encoded; empty for none.
    pub(super) values: &'a [u8],
    /// The registers of the event; empty for none.
    pub(super) registers: &'a [u8],
}

/// Walks the events of a chunk. Truncated or unknown data is skipped.
pub(super) struct RawEvents<'a> {
    rest: &'a [u8],
}

impl<'a> RawEvents<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The values at the current place.
    fn values(&mut self) -> Option<&'a [u8]> {
        if u32_at(self.rest, flow::WHAT) != flow::VALUES {
            return None;
        }
        let length = u32_at(self.rest, flow::SP) as usize;
        let (_, rest) = self.rest.split_at_checked(flow::BYTES)?;
        let whole = length.checked_next_multiple_of(flow::BYTES)?;
        match rest.split_at_checked(whole) {
            Some((found, after)) => {
                self.rest = after;
                found.get(..length)
            }
            None => {
                self.rest = &[];
                None
            }
        }
    }
}

impl<'a> Iterator for RawEvents<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Raw<'a>> {
        loop {
            let (event, rest) = self.rest.split_at_checked(flow::BYTES)?;
            let (ticks, word, sp) = (u64_at(event, flow::TICKS), u32_at(event, flow::WHAT), u32_at(event, flow::SP));
            let function = word & flow::FUNCTION;
            let what = match (word & flow::KIND, word) {
                (flow::ENTER, _) => EventKind::Enter(function),
                (flow::LEAVE, _) => EventKind::Leave(function),
                (flow::TAILCALL, _) => EventKind::TailCall(function),
                (_, flow::BLOCK) => EventKind::Block,
                (_, flow::FILTER_ENTER) => EventKind::FilterEnter,
                (_, flow::FILTER_LEAVE) => EventKind::FilterLeave,
                (_, flow::RESULT) => EventKind::Result,
                (_, flow::VALUES) => {
                    // Values whose event was not understood.
                    self.values();
                    continue;
                }
                _ => {
                    self.rest = rest;
                    continue;
                }
            };
            let (registers, rest) = rest.split_at_checked(flow::register_bytes(word))?;
            self.rest = rest;
            let values = self.values().unwrap_or(&[]);
            return Some(Raw { ticks, what, sp, values, registers });
        }
    }
}
