//! How much there was at the same time.

/// Returns how much there was at once, at most, by what began (1) and ended (-1) when. The changes
/// are in order afterwards.
pub(crate) fn most_at_once(changes: &mut [(u64, i64)]) -> u64 {
    // Of what ends and begins at the same moment the end comes first.
    changes.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes {
        now += *change;
        most = most.max(now);
    }
    most.unsigned_abs()
}
