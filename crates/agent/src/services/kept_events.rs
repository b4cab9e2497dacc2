//! Which events a recording keeps: all events, or those of the last period.

use std::time::Duration;

use clrscope_recording::writer::Keep;

/// Time that is kept beyond the requested time: the recording is read for writing out while the
/// program keeps running.
const READING: Duration = Duration::from_secs(5);

/// Events that the recording keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptEvents {
    /// How far back from now events are kept; `None` if all are kept.
    last: Option<Duration>,
    /// Bytes at most for one instrument in a ring.
    share: u64,
}

impl KeptEvents {
    /// Keeps the events of the `last` period, or all. In a ring the events of `instruments`
    /// instruments share half of the recording's maximum size; the other half is for the records
    /// that events refer to.
    pub(crate) fn new(last: Option<Duration>, max_size: u64, instruments: usize) -> Self {
        Self { last, share: max_size / 2 / instruments.max(1) as u64 }
    }

    /// How a store keeps the events.
    pub(crate) fn keep(self) -> Keep {
        self.last.map_or(Keep::First, |last| Keep::Recent((last + last / 4 + READING).as_nanos() as u64))
    }

    /// The limit in bytes of a store, whose limit would be `bytes` if all events were kept.
    pub(crate) fn limit(self, bytes: u64) -> u64 {
        if self.last.is_some() { bytes.min(self.share) } else { bytes }
    }

    /// Length of the last period in nanoseconds; `None` if all events are kept.
    pub(crate) fn last_ns(self) -> Option<u64> {
        self.last.map(|last| last.as_nanos() as u64)
    }
}
