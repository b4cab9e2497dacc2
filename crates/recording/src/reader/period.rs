//! One period of a recording that the launcher writes in periods (`--every`).
//!
//! At the end of each period the launcher has every process draw a boundary with the period's
//! number. The events between two such boundaries are a process's share of the period. If a process
//! starts within a period, its share begins at that start; if it ends within one, its share ends
//! there.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::dictionary::Dictionary;
use super::parts::{self, Boundary, GainsLog, PartGains};
use super::recent::KeptTime;
use super::state::Clocks;
use super::written_periods::EndOfPeriod;
use crate::model::BoundaryKind;

/// A period to be read.
pub struct Period<'a> {
    end: EndOfPeriod,
    earlier: &'a [EndOfPeriod],
    has_ended: &'a dyn Fn(&Path) -> bool,
    over: RefCell<Vec<PathBuf>>,
}

impl<'a> Period<'a> {
    /// The period that ends at `end`; the launcher ignores processes that end the period later than
    /// that. `earlier` lists the preceding periods in order. `has_ended` tells whether the process
    /// that recorded into a folder has ended; if a process was killed, only the launcher knows
    /// this.
    #[must_use]
    pub fn new(end: EndOfPeriod, earlier: &'a [EndOfPeriod], has_ended: &'a dyn Fn(&Path) -> bool) -> Self {
        Self { end, earlier, has_ended, over: RefCell::default() }
    }

    /// Number of the period, from 1.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.end.number
    }

    /// Monotonic nanoseconds of the end of the preceding period; 0 in the first period.
    #[must_use]
    pub fn since_ns(&self) -> u64 {
        self.earlier.last().map_or(0, |before| before.mono_ns)
    }

    /// Folders of the processes whose last share was found in this period when it was read. The
    /// caller must remove them before it reads the next period: otherwise that period would contain
    /// the same share again.
    #[must_use]
    pub fn over(&self) -> Vec<PathBuf> {
        self.over.borrow().clone()
    }

    /// Clears the list of [`over`](Self::over) before the period is read, perhaps for a second
    /// time.
    pub(super) fn forget_over(&self) {
        self.over.borrow_mut().clear();
    }
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
    /// The share that the process in `folder` has in this period. `None` if it has no share: the
    /// process started after the period, is suspended and has not ended the period yet, or has
    /// ended and left nothing for this period.
    pub(super) fn of_process(
        &self,
        folder: &Path,
        dictionary: &Dictionary,
        log: &Arc<GainsLog>,
        clocks: &Clocks,
    ) -> Option<PeriodOfProcess> {
        let mut cuts: Vec<&Boundary> = dictionary
            .boundaries
            .iter()
            .filter(|boundary| boundary.record.kind == BoundaryKind::Cut && self.is_in_time(boundary))
            .collect();
        cuts.sort_by_key(|cut| cut.record.mono_ns);
        let number_of = |cut: &Boundary| cut.record.ended_period();
        // A process that could not end earlier periods has their time in this one.
        let before = cuts.iter().rev().copied().find(|cut| number_of(cut).is_some_and(|number| number < self.number()));
        let since_ns = before.map_or(clocks.mono_start, |before| before.record.mono_ns);
        let end = match cuts.iter().copied().find(|cut| number_of(cut) == Some(self.number())) {
            Some(end) => Some(end),
            None if clocks.mono_start >= self.end.mono_ns => return None,
            None if clocks.ended || clocks.stopped || (self.has_ended)(folder) => {
                self.over.borrow_mut().push(folder.to_owned());
                if (clocks.ended || clocks.stopped) && clocks.mono_last <= since_ns {
                    return None;
                }
                cuts.iter().rev().copied().find(|cut| cut.record.is_end_of_process())
            }
            None => return None,
        };
        // Events after the last boundary of a process that ends belong to its last period.
        let until_ns = end.filter(|end| number_of(end).is_some()).map_or(u64::MAX, |end| end.record.mono_ns);
        let kept_since = clocks.kept_ns.map_or(0, |kept_ns| clocks.mono_last.saturating_sub(kept_ns));
        let gains = end.and_then(|end| parts::of_period(before, end, &dictionary.carried, log));
        let counts = dictionary.process.calls.is_some();
        Some(PeriodOfProcess {
            kept: KeptTime::period(self.number(), clocks.mono_start, (since_ns.max(kept_since), until_ns)),
            lacks_calls: counts && gains.is_none(),
            gains,
        })
    }

    /// Whether the launcher knew of this boundary when it wrote the period. A process that was
    /// suspended answers late: it draws the boundary after the launcher has written the period
    /// without it.
    fn is_in_time(&self, boundary: &Boundary) -> bool {
        let Some(number) = boundary.record.ended_period() else { return true };
        let ends = [&self.end].into_iter().chain(self.earlier.iter().rev());
        let end = ends.into_iter().find(|end| end.number == number);
        end.is_none_or(|end| boundary.record.mono_ns <= end.mono_ns)
    }
}
