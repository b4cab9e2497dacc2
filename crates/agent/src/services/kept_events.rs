//! Which events a recording keeps: all, or those of its last time.

use std::time::Duration;

use clrscope_recording::writer::Keep;

/// Kept beyond the time that was asked for: the recording is read, to be written out, while the
/// program goes on.
const READING: Duration = Duration::from_secs(5);

/// Events that the recording keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptEvents {
    /// How far back from now they are kept; `None` where all are.
    last: Option<Duration>,
    /// Bytes at most of one instrument, in a ring.
    share: u64,
}

impl KeptEvents {
    /// Events of the `last` time, or all. In a ring the events of `instruments` instruments take
    /// half of the recording's greatest size: the other half is for what they refer to.
    pub(crate) fn new(last: Option<Duration>, max_size: u64, instruments: usize) -> Self {
        Self { last, share: max_size / 2 / instruments.max(1) as u64 }
    }

    /// How a store keeps them.
    pub(crate) fn keep(self) -> Keep {
        self.last.map_or(Keep::First, |last| Keep::Recent((last + last / 4 + READING).as_nanos() as u64))
    }

    /// The limit of a store that may have `bytes` otherwise.
    pub(crate) fn limit(self, bytes: u64) -> u64 {
        if self.last.is_some() { bytes.min(self.share) } else { bytes }
    }

    /// Nanoseconds of the time, where not all are kept.
    pub(crate) fn last_ns(self) -> Option<u64> {
        self.last.map(|last| last.as_nanos() as u64)
    }
}
