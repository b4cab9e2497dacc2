//! The limit of a walk. Rows are shown up to the limit. Rows beyond the limit are only counted, and
//! after a number of steps the walk stops.

/// Number of steps beyond the limit in which rows are still counted. They take well below a second,
/// and exceed what fits on a screen.
const COUNTED_ON: u64 = 1_000_000;

/// Rows that the limit left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of rows that were left out and counted.
    pub rows: u64,
    /// Whether the number of left-out rows is exact. In a large recording a walk stops somewhere
    /// beyond the limit.
    pub is_whole: bool,
}

/// Number of rows that may still be shown.
#[derive(Debug)]
pub(crate) struct Limit {
    free: u64,
    left_out: u64,
    /// Number of steps that may follow after the limit.
    steps: u64,
}

impl Limit {
    /// Creates a limit of this many rows; `None` shows all.
    pub(crate) fn new(rows: Option<usize>) -> Self {
        Self { free: rows.map_or(u64::MAX, |rows| rows as u64), left_out: 0, steps: COUNTED_ON }
    }

    /// Makes the limit count all rows, for a walk that visits everything anyway.
    pub(crate) fn counting_all(self) -> Self {
        Self { steps: u64::MAX, ..self }
    }

    /// Counts a row. Returns whether to show the row.
    pub(crate) fn admit_row(&mut self) -> bool {
        let free = self.free > 0;
        self.free -= u64::from(free);
        self.left_out += u64::from(!free);
        free
    }

    /// Counts a step of the walk, with or without a row. Returns whether to continue.
    pub(crate) fn step(&mut self) -> bool {
        if self.free == 0 {
            self.steps = self.steps.saturating_sub(1);
        }
        self.steps > 0
    }

    /// The rows that were left out.
    pub(crate) fn left_out(&self) -> LeftOut {
        LeftOut { rows: self.left_out, is_whole: self.steps > 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks this many rows. Returns the number of rows shown, and the rows left out.
    fn walked(mut limit: Limit, rows: u64) -> (u64, LeftOut) {
        let mut shown = 0;
        for _ in 0..rows {
            if !limit.step() {
                break;
            }
            shown += u64::from(limit.admit_row());
        }
        (shown, limit.left_out())
    }

    #[test]
    fn rows_behind_the_limit_are_counted_for_a_while() {
        assert_eq!(walked(Limit::new(Some(3)), 10), (3, LeftOut { rows: 7, is_whole: true }));
        assert_eq!(walked(Limit::new(None), 10), (10, LeftOut { rows: 0, is_whole: true }));
        let (shown, left_out) = walked(Limit::new(Some(3)), 2 * COUNTED_ON);
        assert_eq!((shown, left_out), (3, LeftOut { rows: COUNTED_ON - 1, is_whole: false }));
        let (_, left_out) = walked(Limit::new(Some(3)).counting_all(), 2 * COUNTED_ON);
        assert_eq!(left_out, LeftOut { rows: 2 * COUNTED_ON - 3, is_whole: true });
    }
}
