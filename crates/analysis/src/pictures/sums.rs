//! Sums over the whole of a changed tree: by function, of what calls one and what it calls, of what a search matches.

use rustc_hash::FxHashMap;

use super::ChangedTree;

/// Amounts of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FunctionAmounts {
    /// Own amount.
    pub own: u64,
    /// With everything below; recursion counts once.
    pub total: u64,
}

/// Amounts that a function gets from each caller and hands to each callee.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// By function; `None` stands for the threads themselves.
    pub callers: Vec<(Option<u32>, u64)>,
    /// By function.
    pub callees: Vec<(u32, u64)>,
}

/// Amounts by neighbour, of which an outer one holds those within.
#[derive(Default)]
struct Side {
    sums: FxHashMap<u32, u64>,
    open: FxHashMap<u32, u32>,
}

impl Side {
    fn enter(&mut self, other: u32, total: u64) {
        let open = self.open.entry(other).or_default();
        *open += 1;
        if *open == 1 {
            let sum = self.sums.entry(other).or_default();
            *sum = sum.saturating_add(total);
        }
    }

    fn leave(&mut self, other: u32) {
        if let Some(open) = self.open.get_mut(&other) {
            *open -= 1;
        }
    }

    fn largest_first(self) -> Vec<(u32, u64)> {
        let mut all: Vec<(u32, u64)> = self.sums.into_iter().collect();
        all.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        all
    }
}

impl ChangedTree<'_> {
    /// Amounts by number of the function.
    #[must_use]
    pub fn by_function(&self) -> Vec<FunctionAmounts> {
        let mut sums = vec![FunctionAmounts::default(); self.functions.list().len()];
        let mut open = vec![0_u32; sums.len()];
        let ends = self.ends();
        let mut path: Vec<(u32, u32)> = Vec::new();
        for node in 1..self.func.len() as u32 {
            while let Some((_, function)) = path.pop_if(|(end, _)| *end <= node) {
                open[function as usize] -= 1;
            }
            let (function, end) = (self.func[node as usize], ends[node as usize]);
            let sum = &mut sums[function as usize];
            sum.own = sum.own.saturating_add(self.own(node));
            if open[function as usize] == 0 {
                sum.total = sum.total.saturating_add(self.sum(node, end));
            }
            if end > node + 1 {
                open[function as usize] += 1;
                path.push((end, function));
            }
        }
        sums
    }

    /// Callers and callees of a function, those with most first; a pair that calls each other again below itself counts once.
    #[must_use]
    pub fn neighbours(&self, wanted: u32) -> Neighbours {
        /// Key of the threads.
        const THREADS: u32 = u32::MAX;
        let ends = self.ends();
        let (mut callers, mut callees) = (Side::default(), Side::default());
        let mut path: Vec<(u32, u32)> = Vec::new();
        let around = |node: u32| {
            let above = self.parent[node as usize];
            let caller = if above == 0 { THREADS } else { self.func[above as usize] };
            (caller, self.func[node as usize])
        };
        for node in 1..self.func.len() as u32 {
            while let Some((_, left)) = path.pop_if(|(end, _)| *end <= node) {
                let (caller, function) = around(left);
                if function == wanted {
                    callers.leave(caller);
                }
                if caller == wanted {
                    callees.leave(function);
                }
            }
            let (caller, function) = around(node);
            if function != wanted && caller != wanted {
                continue;
            }
            let total = self.sum(node, ends[node as usize]);
            if function == wanted {
                callers.enter(caller, total);
            }
            if caller == wanted {
                callees.enter(function, total);
            }
            path.push((ends[node as usize], node));
        }
        let callers = callers.largest_first().into_iter();
        Neighbours {
            callers: callers.map(|(caller, sum)| ((caller != THREADS).then_some(caller), sum)).collect(),
            callees: callees.largest_first(),
        }
    }

    /// Sum of what lies in or below functions that are marked, each amount once.
    #[must_use]
    pub fn matched(&self, marked: &[bool]) -> u64 {
        let ends = self.ends();
        let (mut sum, mut node) = (0_u64, 1);
        while node < self.func.len() as u32 {
            if marked.get(self.func[node as usize] as usize) == Some(&true) {
                sum = sum.saturating_add(self.sum(node, ends[node as usize]));
                node = ends[node as usize];
            } else {
                node += 1;
            }
        }
        sum
    }
}
