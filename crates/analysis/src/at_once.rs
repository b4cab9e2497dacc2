//! The maximum number of things that exist at the same time.

/// Returns the maximum number of things that exist at the same time. Each change is a time, with 1
/// if a thing begins then or -1 if one ends. Sorts the changes.
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
