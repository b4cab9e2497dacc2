//! Equal pieces of the time that a recording covers. An amount with a duration is distributed over
//! the pieces in which it lasted.

use clrscope_recording::model::Recording;

use crate::parts::recorded_time;

/// Equal pieces of the time that a recording covers. Times are nanoseconds since the start of the
/// run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    /// Beginning of the first piece.
    pub start_ns: u64,
    /// Length of each piece; at least 1.
    pub piece_ns: u64,
    /// Number of the pieces.
    pub count: u64,
}

impl Pieces {
    /// Divides the time that a recording covers: its own period if it is one of the recordings of
    /// `--every`, otherwise the whole run.
    #[must_use]
    pub fn of_recording(recording: &Recording, count: u64) -> Self {
        let time = recorded_time(recording);
        let piece_ns = (time.end - time.start).div_ceil(count.max(1)).max(1);
        Self { start_ns: time.start, piece_ns, count: count.max(1) }
    }

    /// Number of the piece that has a moment. Moments before or after all pieces are in the first
    /// or the last one.
    #[must_use]
    pub fn at(self, time_ns: u64) -> u64 {
        self.number_of(time_ns).min(self.count - 1)
    }

    /// As [`at`](Self::at), but beyond the last piece for moments after all pieces.
    fn number_of(self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.start_ns) / self.piece_ns
    }

    /// Beginning of a piece.
    #[must_use]
    pub fn begin_ns(self, piece: u64) -> u64 {
        self.start_ns.saturating_add(piece.saturating_mul(self.piece_ns))
    }

    /// Calls `take` with the number of each piece and the part of `amount` that falls into the
    /// piece. If `lasted_ns` is 0, one piece gets the whole amount. What begins after all pieces
    /// has a piece of its own, with a number beyond theirs.
    pub(crate) fn share_out(self, first_ns: u64, lasted_ns: u64, amount: u64, mut take: impl FnMut(u64, u64)) {
        let end_ns = first_ns.saturating_add(lasted_ns);
        let first = self.number_of(first_ns);
        // A damaged recording may say that a sample lasted for years.
        let last = self.at(end_ns).max(first);
        for piece in first..=last {
            // What lies outside the pieces belongs to the first or the last one.
            let from = if piece == 0 { 0 } else { self.begin_ns(piece) };
            let to = if piece == last { u64::MAX } else { self.begin_ns(piece + 1) };
            let within = to.min(end_ns).saturating_sub(from.max(first_ns));
            let part = match lasted_ns {
                // Moments, and events within one piece, which are most: 128-bit divisions are slow.
                lasted if within == lasted => amount,
                lasted => (u128::from(amount) * u128::from(within) / u128::from(lasted)) as u64,
            };
            if part > 0 {
                take(piece, part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::{Part, Process};

    use super::*;

    #[test]
    fn pieces_cover_the_period_of_a_recording_and_not_the_run_before_it() {
        let hour = 3_600_000_000_000;
        let part = Part { since_ns: 23 * hour, until_ns: 23 * hour + 240, ..Part::default() };
        let mut recording =
            Recording { processes: vec![Process { parts: vec![part], ..Process::default() }], ..Recording::default() };
        recording.run.duration_ns = 23 * hour + 300;
        let pieces = Pieces::of_recording(&recording, 240);
        assert_eq!((pieces.start_ns, pieces.piece_ns), (23 * hour, 1));
        assert_eq!([0, 23 * hour, 23 * hour + 7, u64::MAX].map(|time| pieces.at(time)), [0, 0, 7, 239]);
        recording.processes[0].parts.clear();
        assert_eq!(Pieces::of_recording(&recording, 240).start_ns, 0);
    }

    #[test]
    fn no_amount_is_lost_outside_the_pieces() {
        let pieces = Pieces { start_ns: 100, piece_ns: 10, count: 3 };
        let shared = |first_ns, lasted_ns, amount| {
            let mut shared = Vec::new();
            pieces.share_out(first_ns, lasted_ns, amount, |piece, part| shared.push((piece, part)));
            shared
        };
        assert_eq!(shared(95, 30, 300), [(0, 150), (1, 100), (2, 50)]);
        assert_eq!(shared(125, 100, 7), [(2, 7)]);
        assert_eq!(shared(0, 0, 7), [(0, 7)]);
        assert_eq!(shared(110, 0, 7), [(1, 7)]);
        assert_eq!(shared(171, 5, 7), [(7, 7)]);
    }
}
