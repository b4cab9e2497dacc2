//! Times by state of the nodes of a picture.

use rustc_hash::FxHashMap;

use super::{ChangedTree, PictureRow, Place};
use crate::stack_trees::StateTimes;
use crate::waits::TimeState;

/// Amounts by state of the runs of a changed tree under construction.
#[derive(Default)]
pub(super) struct GrowingStates(Vec<(TimeState, Vec<u64>)>);

impl GrowingStates {
    /// Adds an amount of a run.
    pub(super) fn add(&mut self, state: TimeState, run: u32, amount: u64) {
        let at = self.0.iter().position(|(known, _)| *known == state).unwrap_or_else(|| {
            self.0.push((state, Vec::new()));
            self.0.len() - 1
        });
        let own = &mut self.0[at].1;
        own.resize(own.len().max(run as usize + 1), 0);
        own[run as usize] = own[run as usize].saturating_add(amount);
    }

    /// Returns the sums before each of `runs` runs, and the total. `numbers`: the new numbers of
    /// the runs, if they were renumbered.
    pub(super) fn finish(self, runs: usize, numbers: Option<&[u32]>) -> Vec<(TimeState, Vec<u64>)> {
        let sums = |own: Vec<u64>| {
            let mut before = vec![0_u64; runs + 1];
            for (run, own) in own.into_iter().enumerate() {
                before[numbers.map_or(run, |numbers| numbers[run] as usize) + 1] = own;
            }
            for run in 0..runs {
                before[run + 1] = before[run + 1].saturating_add(before[run]);
            }
            before
        };
        self.0.into_iter().map(|(state, own)| (state, sums(own))).collect()
    }
}

/// Nodes by function, each with an amount of one state; in inverted pictures the amount of the path
/// that contains the node.
type Members = FxHashMap<u32, Vec<(Place, u64)>>;

impl ChangedTree<'_> {
    /// Times of the whole tree by state; `None` if states are not known.
    #[must_use]
    pub fn state_times(&self) -> Option<StateTimes> {
        let mut all = StateTimes::default();
        self.states.iter().for_each(|(state, before)| all.add(*state, before.last().copied().unwrap_or(0)));
        (!self.states.is_empty()).then_some(all)
    }

    /// Returns own times and totals by state for the rows of a picture. `inverted` and `places`
    /// must be those that the picture was made with. Empty if states are not known.
    #[must_use]
    pub fn states_of_rows(&self, rows: &[PictureRow], inverted: bool, places: &[u32]) -> Vec<[StateTimes; 2]> {
        if self.states.is_empty() {
            return Vec::new();
        }
        let mut found = vec![[StateTimes::default(); 2]; rows.len()];
        let path = self.path_to(inverted, places);
        for (state, before) in &self.states {
            self.add_state((*state, before), rows, (inverted, &path), &mut found);
        }
        found
    }

    /// Functions on the path to the node at some places, without the node itself.
    fn path_to(&self, inverted: bool, places: &[u32]) -> Vec<u32> {
        let above = places.len().saturating_sub(1);
        (1..=above).filter_map(|depth| self.function_at(inverted, &places[..depth])).collect()
    }

    fn function_at(&self, inverted: bool, places: &[u32]) -> Option<u32> {
        let rows = if inverted { self.inverted(1.0, places) } else { self.upright(1.0, places) };
        rows.first().map(|row| row.function)
    }

    /// Adds the times in one state to the times of the rows. `before` has the sums before each run.
    fn add_state(
        &self,
        (state, before): (TimeState, &[u64]),
        rows: &[PictureRow],
        (inverted, path): (bool, &[u32]),
        found: &mut [[StateTimes; 2]],
    ) {
        let times = StateOfTree { tree: self, before, inverted };
        let mut outermost = times.outermost();
        for function in path {
            outermost = times.next(&outermost.remove(function).unwrap_or_default());
        }
        // Nodes that rows to come are made of, by depth.
        let mut levels = vec![outermost];
        for (at, (row, found)) in rows.iter().zip(found).enumerate() {
            levels.truncate(row.depth as usize + 1);
            let members = levels.last_mut().and_then(|level| level.remove(&row.function)).unwrap_or_default();
            let sum = |amount: &dyn Fn(&(Place, u64)) -> u64| members.iter().map(amount).fold(0, u64::saturating_add);
            found[0].add(state, sum(&|member| times.own(member)));
            found[1].add(state, sum(&|(_, amount)| *amount));
            let has_children = rows.get(at + 1).is_some_and(|next| next.depth > row.depth);
            levels.push(if has_children { times.next(&members) } else { Members::default() });
        }
    }
}

/// Times of a changed tree in one state.
struct StateOfTree<'t, 'a> {
    tree: &'t ChangedTree<'a>,
    /// Sums before each run, and the total.
    before: &'t [u64],
    inverted: bool,
}

impl StateOfTree<'_, '_> {
    /// Time of a run and everything below it.
    fn sum(&self, run: u32) -> u64 {
        self.before[self.tree.ends()[run as usize] as usize] - self.before[run as usize]
    }

    fn own_of_run(&self, run: u32) -> u64 {
        self.before[run as usize + 1] - self.before[run as usize]
    }

    /// The own amount of a row that comes from one node. In inverted pictures, the amount of the
    /// paths that begin at the node.
    fn own(&self, (place, amount): &(Place, u64)) -> u64 {
        let (run, node) = *place;
        match self.inverted {
            true if self.tree.caller(*place).is_none() => *amount,
            false if node == self.tree.last(run) => self.own_of_run(run),
            _ => 0,
        }
    }

    fn outermost(&self) -> Members {
        if !self.inverted {
            return self.next(&[((0, 0), 0)]);
        }
        let mut found = Members::default();
        for run in 1..self.tree.runs() {
            let (node, own) = (self.tree.last(run), self.own_of_run(run));
            if own > 0 {
                found.entry(self.tree.func[node as usize]).or_default().push(((run, node), own));
            }
        }
        found
    }

    /// The nodes of the rows directly below the rows of these nodes.
    fn next(&self, members: &[(Place, u64)]) -> Members {
        let mut found = Members::default();
        for (place, amount) in members {
            if self.inverted {
                if let Some(caller) = self.tree.caller(*place) {
                    found.entry(self.tree.func[caller.1 as usize]).or_default().push((caller, *amount));
                }
                continue;
            }
            self.tree.each_called(*place, |function, (run, node)| {
                let sum = self.sum(run);
                if sum > 0 {
                    found.entry(function).or_default().push(((run, node), sum));
                }
            });
        }
        found
    }
}
