//! Distribution of a node's compensated time among itself and its children.
//!
//! A sampled tree has time on few nodes and hooks on all of them, so time minus cost is negative on
//! many small paths. Setting each negative value to zero would inflate the sums. Instead the sum
//! comes from the parent and is distributed among the positive parts in proportion, so that every
//! node's columns add up.

/// Result of the distribution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TimeShares {
    pub(super) exclusive_ns: u64,
    pub(super) suspended_ns: u64,
    pub(super) callee_ns: u64,
}

/// One child's claim, which its share replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) ns: u64,
    /// Whether the child is a suspension. Suspensions have no hooks: their time is exact and is
    /// distributed first.
    pub(super) suspension: bool,
}

/// Distributes `available` among a node's own claim and its children's claims.
pub(super) fn share_out(available: u64, own: u64, children: &mut [Claim]) -> TimeShares {
    let suspended = sum(children, true);
    scale(children, true, available, suspended);
    let left = u128::from(available) - sum(children, true);
    let claimed = sum(children, false);
    let all = claimed + u128::from(own);
    // Each claim is rounded, so that sums may be off by as many nanoseconds without meaning
    // anything.
    let rounding = (children.len() as u64 + 1).min(own);
    if all > left + u128::from(rounding) {
        let part = claimed.saturating_mul(left) / all;
        scale(children, false, part as u64, claimed);
    }
    // No child gets more than is available.
    let callee_ns = sum(children, false) as u64;
    TimeShares { exclusive_ns: left as u64 - callee_ns, suspended_ns: available - left as u64, callee_ns }
}

/// Sum of the claims of suspensions or of other children; in odd recordings it exceeds 64 bits.
fn sum(children: &[Claim], suspension: bool) -> u128 {
    children.iter().filter(|c| c.suspension == suspension).map(|c| u128::from(c.ns)).sum()
}

/// Scales the claims of suspensions or of other children from the sum `from` down to at most `to`.
fn scale(children: &mut [Claim], suspension: bool, to: u64, from: u128) {
    let to = u128::from(to);
    if to >= from {
        return;
    }
    for claim in children.iter_mut().filter(|c| c.suspension == suspension) {
        claim.ns = (u128::from(claim.ns) * to / from) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(of: &[(u64, bool)]) -> Vec<Claim> {
        of.iter().map(|&(ns, suspension)| Claim { ns, suspension }).collect()
    }

    #[test]
    fn what_fits_is_given() {
        let mut children = claims(&[(30, false), (5, true), (20, false)]);
        let shared = share_out(100, 45, &mut children);
        assert_eq!(shared, TimeShares { exclusive_ns: 45, suspended_ns: 5, callee_ns: 50 });
        assert_eq!(children, claims(&[(30, false), (5, true), (20, false)]));
    }

    #[test]
    fn too_large_claims_shrink_in_proportion() {
        let mut children = claims(&[(40, false), (10, true), (40, false)]);
        let shared = share_out(70, 40, &mut children);
        assert_eq!(shared, TimeShares { exclusive_ns: 20, suspended_ns: 10, callee_ns: 40 });
    }

    #[test]
    fn rounding_is_taken_from_the_node_itself() {
        let mut children = claims(&[(10, false), (10, false)]);
        assert_eq!(share_out(29, 10, &mut children).exclusive_ns, 9);
        assert_eq!(share_out(31, 10, &mut children).exclusive_ns, 11);
    }

    #[test]
    fn absurd_claims_stay_within_what_there_is() {
        let mut children = claims(&[(u64::MAX, false), (u64::MAX, true), (u64::MAX, false)]);
        let shared = share_out(1000, u64::MAX, &mut children);
        assert_eq!(shared.exclusive_ns + shared.suspended_ns + shared.callee_ns, 1000);
        let mut children = claims(&[(u64::MAX, false), (u64::MAX, false), (u64::MAX, false)]);
        let shared = share_out(u64::MAX, 0, &mut children);
        assert_eq!(shared.exclusive_ns + shared.callee_ns, u64::MAX);
    }
}
