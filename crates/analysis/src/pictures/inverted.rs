//! Inverted pictures: from the functions with own amounts to their callers.

use super::grouped::by_function;
use super::upright::{MOST_ROWS, largest};
use super::{ChangedTree, PictureRow, Place};

/// Nodes of one function, each with the amount that is traced to its callers.
struct Group {
    function: u32,
    depth: u32,
    total: u64,
    members: Vec<(Place, u64)>,
}

impl ChangedTree<'_> {
    /// The rows of the inverted tree. The parameters are those of [`upright`](Self::upright).
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
            // The selected node shows all its callers.
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

    /// The calling node; `None` if the threads are the caller.
    #[inline]
    pub(super) fn caller(&self, (run, node): Place) -> Option<Place> {
        if node > self.starts[run as usize] {
            return Some((run, node - 1));
        }
        let caller = self.parents[run as usize];
        (caller != 0).then(|| (caller, self.last(caller)))
    }

    /// Amount of nodes without a caller.
    fn uncalled(&self, nodes: &[(Place, u64)]) -> u64 {
        let outermost = nodes.iter().filter(|(place, _)| self.caller(*place).is_none());
        outermost.map(|(_, amount)| *amount).fold(0, u64::saturating_add)
    }

    /// The functions with own amounts, the smallest first.
    fn innermost(&self, least: u64) -> Vec<Group> {
        let owner = |run: u32| {
            let (node, own) = (self.last(run), self.own_of_run(run));
            (own > 0).then(|| (self.func[node as usize], ((run, node), own)))
        };
        let owners = (1..self.runs()).filter_map(owner).collect();
        self.groups(owners, 0, least)
    }

    /// The callers of some nodes by function, the smallest first, and the amount of nodes without a
    /// caller.
    fn callers(&self, nodes: &[(Place, u64)], depth: u32, least: u64) -> (u64, Vec<Group>) {
        let mut own = 0_u64;
        let mut found: Vec<(u32, (Place, u64))> = Vec::with_capacity(nodes.len());
        for (place, amount) in nodes {
            match self.caller(*place) {
                None => own = own.saturating_add(*amount),
                Some(caller) => found.push((self.func[caller.1 as usize], (caller, *amount))),
            }
        }
        (own, self.groups(found, depth, least))
    }

    /// Groups nodes by function, the smallest group first, without groups that have less than
    /// `least`.
    fn groups(&self, found: Vec<(u32, (Place, u64))>, depth: u32, least: u64) -> Vec<Group> {
        let mut found = by_function(found, self.functions.list().len());
        let groups = found.chunk_by_mut(|a, b| a.0 == b.0).filter_map(|members| {
            let total = members.iter().map(|(_, (_, amount))| *amount).fold(0, u64::saturating_add);
            (total >= least.max(1)).then(|| {
                if !members.is_sorted_by_key(|(_, (place, _))| *place) {
                    members.sort_unstable_by_key(|(_, (place, _))| *place);
                }
                // Paths that join continue as one path.
                let mut joined: Vec<(Place, u64)> = Vec::with_capacity(members.len());
                for (_, (place, amount)) in &*members {
                    match joined.last_mut() {
                        Some((last, sum)) if last == place => *sum = sum.saturating_add(*amount),
                        _ => joined.push((*place, *amount)),
                    }
                }
                Group { function: members[0].0, depth, total, members: joined }
            })
        });
        let mut groups: Vec<Group> = groups.collect();
        self.smallest_first(&mut groups);
        groups
    }

    fn smallest_first(&self, groups: &mut [Group]) {
        let rank = |group: &Group| self.functions.rank(group.function);
        groups.sort_unstable_by(|a, b| a.total.cmp(&b.total).then_with(|| rank(b).cmp(&rank(a))));
    }
}
