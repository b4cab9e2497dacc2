//! Sharing out a node's compensated time among itself and its children.
//!
//! A sampled tree has time on few nodes and hooks on all of them, so time less cost is negative on
//! many small paths. Clamping each at zero would make the sums grow; here the sum is given from above
//! and what is positive gets it in proportion, so that every node's columns add up.

/// What was shared out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Shared {
    pub(super) exclusive_ns: u64,
    pub(super) suspended_ns: u64,
    pub(super) callee_ns: u64,
}

/// One child's claim; what it gets replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) ns: u64,
    /// Suspensions have no hooks: their time is exact and served first.
    pub(super) suspension: bool,
}

/// Shares out `available` among a node's own claim and its children's.
pub(super) fn share_out(available: u64, own: u64, children: &mut [Claim]) -> Shared {
    let sum = |children: &[Claim], suspension| {
        let claims = children.iter().filter(|c| c.suspension == suspension);
        claims.fold(0u64, |all, c| all.saturating_add(c.ns))
    };
    let suspended = sum(children, true);
    scale(children, true, available.min(suspended), suspended);
    let suspended_ns = sum(children, true);
    let left = available - suspended_ns;
    let claimed = sum(children, false);
    let excess = claimed.saturating_add(own).saturating_sub(left);
    // Each claim is rounded, so that sums may be off by as many nanoseconds without meaning anything.
    let rounding = children.len() as u64 + 1;
    if excess > own.min(rounding) {
        let part = u128::from(claimed) * u128::from(left) / (u128::from(claimed) + u128::from(own)).max(1);
        scale(children, false, part as u64, claimed);
    }
    let callee_ns = sum(children, false);
    Shared { exclusive_ns: left - callee_ns, suspended_ns, callee_ns }
}

/// Scales the claims of one sort from the sum `from` down to at most `to`.
fn scale(children: &mut [Claim], suspension: bool, to: u64, from: u64) {
    if to >= from {
        return;
    }
    for claim in children.iter_mut().filter(|c| c.suspension == suspension) {
        claim.ns = (u128::from(claim.ns) * u128::from(to) / u128::from(from)) as u64;
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
        assert_eq!(shared, Shared { exclusive_ns: 45, suspended_ns: 5, callee_ns: 50 });
        assert_eq!(children, claims(&[(30, false), (5, true), (20, false)]));
    }

    #[test]
    fn too_large_claims_shrink_in_proportion() {
        let mut children = claims(&[(40, false), (10, true), (40, false)]);
        let shared = share_out(70, 40, &mut children);
        assert_eq!(shared, Shared { exclusive_ns: 20, suspended_ns: 10, callee_ns: 40 });
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
    }
}
