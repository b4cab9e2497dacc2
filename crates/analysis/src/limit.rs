//! The limit of a walk: rows are shown up to it, and counted for a while behind it.

/// Steps behind the limit until counting ends: well below a second, and more than fits on a screen.
const COUNTED_ON: u64 = 1_000_000;

/// Rows that a limit left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of rows that were counted.
    pub rows: u64,
    /// Whether all were counted. A walk that has shown what it may does not go through the whole of
    /// a large recording.
    pub is_whole: bool,
}

/// Number of rows that may still be shown.
#[derive(Debug)]
pub(crate) struct Limit {
    free: u64,
    left_out: u64,
    /// Steps that may still be made once no more rows may be shown.
    steps: u64,
}

impl Limit {
    /// At most so many rows; `None` for all.
    pub(crate) fn new(rows: Option<usize>) -> Self {
        Self { free: rows.map_or(u64::MAX, |rows| rows as u64), left_out: 0, steps: COUNTED_ON }
    }

    /// The limit, of a walk that goes on to its end all the same.
    pub(crate) fn counting_all(self) -> Self {
        Self { steps: u64::MAX, ..self }
    }

    /// Counts a row, and returns whether it is to be shown.
    pub(crate) fn admit_row(&mut self) -> bool {
        let free = self.free > 0;
        self.free -= u64::from(free);
        self.left_out += u64::from(!free);
        free
    }

    /// Takes note of a step of the walk, with a row or without; whether to go on.
    pub(crate) fn step(&mut self) -> bool {
        if self.free == 0 {
            self.steps = self.steps.saturating_sub(1);
        }
        self.steps > 0
    }

    /// Amount that was left out.
    pub(crate) fn left_out(&self) -> LeftOut {
        LeftOut { rows: self.left_out, is_whole: self.steps > 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows that are shown of so many, and what is left out.
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
