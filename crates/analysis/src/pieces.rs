//! Equal pieces of a run. An amount with a duration is distributed over the pieces in which it
//! lasted.

/// Calls `take` with the number of each piece and the part of `amount` that falls into the piece.
/// If `lasted_ns` is 0, one piece gets the whole amount. Pieces from number `most` on are merged
/// into one.
pub(crate) fn share_out(
    first_ns: u64,
    lasted_ns: u64,
    amount: u64,
    piece_ns: u64,
    most: u64,
    mut take: impl FnMut(u64, u64),
) {
    let (first, last) = (first_ns / piece_ns, first_ns.saturating_add(lasted_ns) / piece_ns);
    // A damaged recording may say that a sample lasted for years.
    let last = last.min(most);
    for piece in first..=last.max(first) {
        let (from, to) = (piece.saturating_mul(piece_ns), piece.saturating_add(1).saturating_mul(piece_ns));
        let within = to.min(first_ns.saturating_add(lasted_ns)).saturating_sub(from.max(first_ns));
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
