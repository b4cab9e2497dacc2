//! Maximum of things at the same time.

/// Returns the greatest number of things at the same time. A change is a time with 1 for a begin or
/// -1 for an end. Sorts the changes.
pub(crate) fn most_at_once(changes: &mut [(u64, i64)]) -> u64 {
    // If an end and a begin have the same time, the end comes first.
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += *change;
        most = most.max(now);
    }
    most.unsigned_abs()
}
