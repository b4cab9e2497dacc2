//! Sums over the whole changed tree: by function, by callers and callees of a function, and over
//! functions that match a search.

use std::iter::successors;

use clrscope_recording::parallel::fold;
use rustc_hash::FxHashMap;

use super::ChangedTree;

/// Amounts of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FunctionAmounts {
    /// The function's own amount.
    pub own: u64,
    /// Amount including everything below the function; recursion counts once.
    pub total: u64,
}

/// Amounts of a function, by caller and by callee.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// Amounts by calling function; `None` for the threads themselves.
    pub callers: Vec<(Option<u32>, u64)>,
    /// Amounts by called function.
    pub callees: Vec<(u32, u64)>,
}

/// Amounts by neighbour; an outer occurrence includes the inner ones.
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

/// Number of runs that a worker sums up at a time.
const TOGETHER: usize = 1 << 16;

/// Key of the threads as a caller.
const THREADS: u32 = u32::MAX;

impl ChangedTree<'_> {
    /// Amounts of all functions, by function number. A function's own amount includes the types
    /// that it allocated.
    #[must_use]
    pub fn by_function(&self) -> Vec<FunctionAmounts> {
        let (runs, ends) = (self.runs() as usize, self.ends());
        let new = || Open::new(self.functions.list().len());
        let parts = fold(runs.div_ceil(TOGETHER), new, |open, piece| {
            let from = piece * TOGETHER;
            open.begin(self, from as u32);
            for run in from.max(1) as u32..runs.min(from + TOGETHER) as u32 {
                open.enter(self, run, ends[run as usize]);
            }
        });
        let mut all = vec![FunctionAmounts::default(); self.functions.list().len()];
        for part in parts {
            for (sum, more) in all.iter_mut().zip(part.sums) {
                sum.own = sum.own.saturating_add(more.own);
                sum.total = sum.total.saturating_add(more.total);
            }
        }
        all
    }

    /// Callers and callees of a function, the largest first. If the same pair occurs again below
    /// itself, it counts once.
    #[must_use]
    pub fn neighbours(&self, wanted: u32) -> Neighbours {
        let ends = self.ends();
        let (mut callers, mut callees) = (Side::default(), Side::default());
        // Calls that are open: end, caller and callee.
        let mut path: Vec<(u32, u32, u32)> = Vec::new();
        for run in 1..self.runs() {
            let above = self.parents[run as usize];
            let mut caller = if above == 0 { THREADS } else { self.func[self.last(above) as usize] };
            let functions = self.functions_of_run(run);
            if caller != wanted && !functions.contains(&wanted) {
                continue;
            }
            while let Some((_, caller, function)) = path.pop_if(|(end, ..)| *end <= run) {
                if function == wanted {
                    callers.leave(caller);
                }
                if caller == wanted {
                    callees.leave(function);
                }
            }
            let total = self.sum(run);
            for &function in functions {
                if function == wanted {
                    callers.enter(caller, total);
                }
                if caller == wanted {
                    callees.enter(function, total);
                }
                if function == wanted || caller == wanted {
                    path.push((ends[run as usize], caller, function));
                }
                caller = function;
            }
        }
        let callers = callers.largest_first().into_iter();
        Neighbours {
            callers: callers.map(|(caller, sum)| ((caller != THREADS).then_some(caller), sum)).collect(),
            callees: callees.largest_first(),
        }
    }

    /// Sum of the amounts in and below the marked functions. Each amount counts once.
    #[must_use]
    pub fn matched(&self, marked: &[bool]) -> u64 {
        let ends = self.ends();
        let (mut sum, mut run) = (0_u64, 1);
        while run < self.runs() {
            if self.functions_of_run(run).iter().any(|function| marked.get(*function as usize) == Some(&true)) {
                sum = sum.saturating_add(self.sum(run));
                run = ends[run as usize];
            } else {
                run += 1;
            }
        }
        sum
    }
}

/// Sums of a worker, and how often each function is on the path to the current run.
struct Open {
    sums: Vec<FunctionAmounts>,
    open: Vec<u32>,
    /// Runs of the path, each with its end.
    path: Vec<(u32, u32)>,
}

impl Open {
    fn new(functions: usize) -> Self {
        Self { sums: vec![FunctionAmounts::default(); functions], open: vec![0; functions], path: Vec::new() }
    }

    /// Adds the callers of a run to the path.
    fn begin(&mut self, tree: &ChangedTree<'_>, run: u32) {
        self.leave(tree, u32::MAX);
        let above = |run: u32| Some(tree.parents[run as usize]).filter(|above| *above != 0);
        self.path = successors(above(run), |run| above(*run)).map(|run| (tree.ends()[run as usize], run)).collect();
        self.path.reverse();
        for (_, run) in &self.path {
            tree.functions_of_run(*run).iter().for_each(|function| self.open[*function as usize] += 1);
        }
    }

    /// Removes the runs from the path that `run` is not below.
    fn leave(&mut self, tree: &ChangedTree<'_>, run: u32) {
        while let Some((_, left)) = self.path.pop_if(|(end, _)| *end <= run) {
            tree.functions_of_run(left).iter().for_each(|function| self.open[*function as usize] -= 1);
        }
    }

    fn enter(&mut self, tree: &ChangedTree<'_>, run: u32, end: u32) {
        self.leave(tree, run);
        let (functions, total) = (tree.functions_of_run(run), tree.sum(run));
        for function in functions {
            let open = &mut self.open[*function as usize];
            if *open == 0 {
                let sum = &mut self.sums[*function as usize];
                sum.total = sum.total.saturating_add(total);
            }
            *open += 1;
        }
        if let Some(last) = functions.last() {
            self.add_own(*last, tree.own_of_run(run));
            // What a method allocated is its own, also where its type is a node.
            let list = tree.functions.list();
            let allocating = tree.caller_of_last(run).filter(|_| list[*last as usize].code == "type");
            if let Some(method) = allocating {
                self.add_own(method, tree.own_of_run(run));
            }
        }
        self.path.push((end, run));
    }

    fn add_own(&mut self, function: u32, amount: u64) {
        let sum = &mut self.sums[function as usize];
        sum.own = sum.own.saturating_add(amount);
    }
}
