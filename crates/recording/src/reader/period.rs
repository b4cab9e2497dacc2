//! One period of a recording that the launcher writes in periods (`--every`).
//!
//! At the end of each period the launcher has every process draw a boundary with the period's
//! number. The events between two such boundaries are a process's share of the period. If a process
//! starts within a period, its share begins at that start; if it ends within one, its share ends
//! there.

use std::path::Path;
use std::sync::Arc;

use super::dictionary::Dictionary;
use super::parts::{self, Boundary, GainsLog, PartGains};
use super::recent::KeptTime;
use super::state::Clocks;
use crate::model::BoundaryKind;

/// A period to be read.
pub struct Period<'a> {
    /// Number of the period, from 1.
    pub number: u32,
    /// Monotonic nanoseconds when the launcher ended the previous period; 0 for the first period.
    pub since_ns: u64,
    /// Monotonic nanoseconds when the launcher ended this period.
    pub until_ns: u64,
    /// Whether the process that recorded into a folder has ended. If a process was killed, only the
    /// launcher knows that it has ended.
    pub has_ended: &'a dyn Fn(&Path) -> bool,
}

/// One process's share of the period.
pub(super) struct PeriodOfProcess {
    pub(super) kept: KeptTime,
    /// Gains of the trees; `None` if there are none, or if they are not known.
    pub(super) gains: Option<Arc<PartGains>>,
    /// Whether the number of calls in this period is unknown although calls were counted.
    pub(super) lacks_calls: bool,
}

impl Period<'_> {
    /// The share of this period of the process in `folder`. `None` if the process has none: it is
    /// suspended and has not ended the period yet, or its own end lies in an earlier period.
    pub(super) fn of_process(
        &self,
        folder: &Path,
        dictionary: &Dictionary,
        log: &Arc<GainsLog>,
        clocks: &Clocks,
    ) -> Option<PeriodOfProcess> {
        let mut cuts: Vec<&Boundary> =
            dictionary.boundaries.iter().filter(|boundary| boundary.record.kind == BoundaryKind::Cut).collect();
        cuts.sort_by_key(|cut| cut.record.mono_ns);
        let number_of = |cut: &Boundary| cut.record.ended_period();
        // A process that could not end earlier periods has their time in this one.
        let before = cuts.iter().rev().copied().find(|cut| number_of(cut).is_some_and(|number| number < self.number));
        let end = match cuts.iter().copied().find(|cut| number_of(cut) == Some(self.number)) {
            Some(end) => Some(end),
            None if !self.has_time_of(clocks) => return None,
            None if clocks.ended || clocks.stopped || (self.has_ended)(folder) => {
                cuts.iter().rev().copied().find(|cut| cut.record.is_end_of_process())
            }
            None => return None,
        };
        let since_ns = before.map_or(clocks.mono_start, |before| before.record.mono_ns);
        // Events after the last boundary of a process that ends belong to its last period.
        let until_ns = end.filter(|end| number_of(end).is_some()).map_or(u64::MAX, |end| end.record.mono_ns);
        let kept_since = clocks.kept_ns.map_or(0, |kept_ns| clocks.mono_last.saturating_sub(kept_ns));
        let gains = end.and_then(|end| parts::of_period(before, end, &dictionary.carried, log));
        let counts = dictionary.process.calls.is_some();
        Some(PeriodOfProcess {
            kept: KeptTime::period(self.number, clocks.mono_start, (since_ns.max(kept_since), until_ns)),
            lacks_calls: counts && gains.is_none(),
            gains,
        })
    }

    /// Whether the process lived within the period.
    fn has_time_of(&self, clocks: &Clocks) -> bool {
        clocks.mono_start < self.until_ns && clocks.mono_last > self.since_ns
    }
}
