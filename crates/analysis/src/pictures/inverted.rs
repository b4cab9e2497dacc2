//! Pictures upside down: from the functions that have the amounts to their callers.

use super::upright::{MOST_ROWS, largest};
use super::{ChangedTree, PictureRow};

/// Nodes of one function, each with the amount that is followed to its callers.
struct Group {
    function: u32,
    depth: u32,
    total: u64,
    members: Vec<(u32, u64)>,
}

impl ChangedTree<'_> {
    /// The inverted tree, in all else as [`upright`](Self::upright).
    #[must_use]
    pub fn inverted(&self, share: f64, places: &[u32]) -> Vec<PictureRow> {
        let mut rows = Vec::new();
        let mut whole = self.total();
        let least_of = |whole: u64| ((whole as f64 * share).ceil() as u64).max(1);
        let mut pending = largest(self.innermost(1));
        for (depth, place) in (1_u32..).zip(places) {
            let at = pending.len().checked_sub(*place as usize + 1);
            let Some(group) = at.map(|at| pending.swap_remove(at)) else { return rows };
            whole = group.total;
            let is_last = depth as usize == places.len();
            pending = if is_last { vec![Group { depth: 0, ..group }] } else { self.callers(&group.members, 0, 1).1 };
        }
        let least = least_of(whole);
        while let Some(Group { function, depth, total, members }) = pending.pop() {
            // Whoever looks at a node sees all its callers.
            let is_looked_at = depth == 0 && !places.is_empty();
            let (own, callers) = match total >= least || is_looked_at {
                true => self.callers(&members, depth + 1, if is_looked_at { 1 } else { least }),
                false => (self.uncalled(&members), Vec::new()),
            };
            let mut callers = largest(callers);
            rows.push(PictureRow { depth, function, own, total });
            if rows.len() >= MOST_ROWS {
                break;
            }
            pending.append(&mut callers);
        }
        rows
    }

    /// Amount of nodes that nobody called.
    fn uncalled(&self, nodes: &[(u32, u64)]) -> u64 {
        let outermost = nodes.iter().filter(|(node, _)| self.parent[*node as usize] == 0);
        outermost.map(|(_, amount)| *amount).fold(0, u64::saturating_add)
    }

    /// The functions that have amounts of their own, the smallest first.
    fn innermost(&self, least: u64) -> Vec<Group> {
        let mut sums = vec![0_u64; self.functions.list().len()];
        let owned = || (0..self.owners.len()).filter(|at| self.owners[*at] > 0);
        let function = |at: usize| self.func[self.owners[at] as usize];
        let amount = |at: usize| self.before[at + 1] - self.before[at];
        for at in owned() {
            let sum = &mut sums[function(at) as usize];
            *sum = sum.saturating_add(amount(at));
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut places = vec![u32::MAX; sums.len()];
        for (function, total) in (0..).zip(&sums).filter(|(_, total)| **total >= least) {
            places[function as usize] = groups.len() as u32;
            groups.push(Group { function, depth: 0, total: *total, members: Vec::new() });
        }
        for at in owned() {
            if let Some(group) = groups.get_mut(places[function(at) as usize] as usize) {
                match group.members.last_mut() {
                    Some((node, sum)) if *node == self.owners[at] => *sum = sum.saturating_add(amount(at)),
                    _ => group.members.push((self.owners[at], amount(at))),
                }
            }
        }
        self.smallest_first(&mut groups);
        groups
    }

    /// The callers of some nodes by function, the smallest first, and the amount that nobody called.
    fn callers(&self, nodes: &[(u32, u64)], depth: u32, least: u64) -> (u64, Vec<Group>) {
        let mut own = 0_u64;
        let mut found: Vec<(u32, u32, u64)> = Vec::with_capacity(nodes.len());
        for (node, amount) in nodes {
            match self.parent[*node as usize] {
                0 => own = own.saturating_add(*amount),
                caller => found.push((self.func[caller as usize], caller, *amount)),
            }
        }
        found.sort_unstable();
        let groups = found.chunk_by(|a, b| a.0 == b.0).filter_map(|members| {
            let total = members.iter().map(|(.., amount)| *amount).fold(0, u64::saturating_add);
            (total >= least.max(1)).then(|| {
                // Paths that join go on as one.
                let mut joined: Vec<(u32, u64)> = Vec::with_capacity(members.len());
                for (_, node, amount) in members {
                    match joined.last_mut() {
                        Some((last, sum)) if last == node => *sum = sum.saturating_add(*amount),
                        _ => joined.push((*node, *amount)),
                    }
                }
                Group { function: members[0].0, depth, total, members: joined }
            })
        });
        let mut groups: Vec<Group> = groups.collect();
        self.smallest_first(&mut groups);
        (own, groups)
    }

    fn smallest_first(&self, groups: &mut [Group]) {
        let rank = |group: &Group| self.functions.rank(group.function);
        groups.sort_unstable_by(|a, b| a.total.cmp(&b.total).then_with(|| rank(b).cmp(&rank(a))));
    }
}
