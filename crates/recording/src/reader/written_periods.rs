//! How far a recording in periods has come: for a launcher that continues after another launcher
//! was killed.

use std::path::Path;

use super::segment::SegmentBytes;
use crate::codec::decode;
use crate::layout::kind;
use crate::log_records::LogRecords;
use crate::model::PartBoundary;
use crate::records::{InLog, PeriodEnd, RunStart};
use crate::writer::{id_of_period, process_folders};

/// The end of a period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndOfPeriod {
    /// Number of the period, from 1; 0 for the beginning of the recording.
    pub number: u32,
    /// Monotonic nanoseconds of the end.
    pub mono_ns: u64,
}

/// Which periods of a recording have been written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WrittenPeriods {
    /// The periods that the launcher has written, in order.
    pub written: Vec<EndOfPeriod>,
    /// The last period that a process has ended.
    pub ended: EndOfPeriod,
    /// Start of the recording, first in monotonic nanoseconds, then in nanoseconds since the Unix
    /// epoch.
    pub start_ns: (u64, u64),
    /// Identifier of the recording.
    id: String,
}

impl WrittenPeriods {
    /// The last period that the launcher has written.
    #[must_use]
    pub fn last_written(&self) -> EndOfPeriod {
        self.written.last().copied().unwrap_or_default()
    }

    /// Identifier of the recording of one period; empty if the whole recording has no identifier.
    #[must_use]
    pub fn id_of(&self, number: u32) -> String {
        id_of_period(&self.id, number)
    }
}

/// Reads which periods of the recording in `folder` have been written. Treats unreadable data as
/// missing.
#[must_use]
pub fn written_periods(folder: &Path) -> WrittenPeriods {
    let records = |folder: &Path, name: &str| SegmentBytes::open(folder, name, kind::LOG, "", &mut Vec::new());
    let mut found = WrittenPeriods::default();
    for (kind, payload) in records(folder, "run.log").iter().flat_map(|log| LogRecords::new(log)) {
        match kind {
            RunStart::LOG => {
                let Some(start) = decode::<RunStart>(payload) else { continue };
                (found.start_ns, found.id) = ((start.mono_ns, start.unix_ns), start.id);
            }
            PeriodEnd::LOG => {
                let end = decode(payload).map(|PeriodEnd { number, mono_ns }| EndOfPeriod { number, mono_ns });
                found.written.extend(end);
            }
            _ => {}
        }
    }
    for process in process_folders(folder) {
        for (kind, payload) in records(&process, "process.log").iter().flat_map(|log| LogRecords::new(log)) {
            if kind == PartBoundary::LOG
                && let Some(boundary) = decode::<PartBoundary>(payload)
                && let Some(number) = boundary.ended_period()
            {
                found.ended = found.ended.max(EndOfPeriod { number, mono_ns: boundary.mono_ns });
            }
        }
    }
    found
}
