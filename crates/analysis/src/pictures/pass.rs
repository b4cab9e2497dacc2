//! The pass over all runs of nodes that applies every change at once.

use std::sync::{Arc, OnceLock};

use super::changes::{CycleOutcome, NONE, PictureChange, Rule, State};
use super::states::GrowingStates;
use super::{ChangedTree, Nodes, Pictures};
use crate::runs::Runs;

/// Place of nodes outside of every focus.
const OUTSIDE: u32 = u32::MAX;
/// Place of removed nodes, unless they reappear: a recursion may move callees below a place that is
/// not removed.
const GONE: u32 = u32::MAX - 1;

pub(super) fn pass<'a>(pictures: &Pictures<'a>, changes: &[PictureChange], folds: bool) -> ChangedTree<'a> {
    let functions = &pictures.functions;
    let libraries: Vec<u32> = functions.list().iter().map(|one| one.library.unwrap_or(NONE)).collect();
    let mut rules = Vec::new();
    rules.extend(pictures.roots.clone().map(Rule::Focus));
    rules.extend((folds && libraries.iter().any(|library| *library != NONE)).then_some(Rule::Fold));
    rules.extend(changes.iter().map(|change| Rule::from_change(change, functions)));
    let mut making = TreeBuilder::new(&rules, &libraries);
    pictures.trees.iter().for_each(|nodes| making.add_nodes(nodes));
    making.finish(Arc::clone(functions))
}

/// A run of the original tree on the path to the next run.
struct PathRun {
    /// The number after the last run below it.
    end: u32,
    /// Place of its callees in the new tree.
    place: u32,
    /// Number of outermost calls that are known at this run.
    outermost: usize,
}

/// A tree under construction: runs of nodes become other runs, or are removed.
struct TreeBuilder<'r> {
    rules: &'r [Rule],
    libraries: &'r [u32],
    functions: Vec<u32>,
    starts: Vec<u32>,
    parents: Vec<u32>,
    own: Vec<u64>,
    path: Vec<PathRun>,
    /// States of the rules after each run of the path.
    states: Vec<State>,
    /// Current place, and current states of the rules.
    place: u32,
    now: Vec<State>,
    /// Places of the outermost calls of recursive functions, with the states of the rules there.
    outermost: Vec<u32>,
    outermost_states: Vec<State>,
    /// For each rule, the functions that it keeps.
    buffers: Vec<Vec<u32>>,
    /// Runs of a tree with amounts by state, and the place of each in the new tree.
    charged: Vec<(u32, u32)>,
    by_state: GrowingStates,
}

impl<'r> TreeBuilder<'r> {
    fn new(rules: &'r [Rule], libraries: &'r [u32]) -> Self {
        Self {
            rules,
            libraries,
            functions: vec![NONE],
            starts: vec![0],
            parents: vec![0],
            own: vec![0],
            path: Vec::new(),
            states: Vec::new(),
            place: 0,
            now: Vec::new(),
            outermost: Vec::new(),
            outermost_states: Vec::new(),
            buffers: vec![Vec::new(); rules.len()],
            charged: Vec::new(),
            by_state: GrowingStates::default(),
        }
    }

    fn add_nodes(&mut self, nodes: &Nodes) {
        let runs = nodes.runs();
        let mut amounts = nodes.amounts();
        self.begin(runs, amounts.next(0).unwrap_or(0));
        let has_states = matches!(nodes, Nodes::Stacks { states: Some(_), .. });
        if has_states && self.place < GONE {
            self.charged.push((0, self.place));
        }
        let mut of_run = Vec::new();
        let mut run = 1;
        while run < runs.len() {
            let end = runs.end(run);
            let Some(own) = amounts.next(run) else {
                run = end;
                continue;
            };
            self.go_to(run);
            of_run.clear();
            nodes.functions(run, &mut of_run);
            if !self.through(0, &of_run) {
                run = end;
                continue;
            }
            self.place = self.inner(self.place, &self.now);
            self.charge(own);
            if has_states && own > 0 && self.place < GONE {
                self.charged.push((run, self.place));
            }
            if end > run + 1 {
                self.path.push(PathRun { end, place: self.place, outermost: self.outermost.len() });
                self.states.extend_from_slice(&self.now);
            }
            run += 1;
        }
        if let Nodes::Stacks { tree, states: Some(amounts), .. } = nodes {
            let (states, charged) = (&mut self.by_state, &self.charged);
            let ranges = charged.iter().map(|(run, place)| (*place, tree.shape.at_run(*run)));
            amounts.each_in_order(ranges, |state, place, amount| states.add(state, place, amount));
            self.charged.clear();
        }
    }

    /// Adds the threads of a process to the path.
    fn begin(&mut self, runs: &Runs, own: u64) {
        let is_focused = self.rules.iter().any(Rule::is_focus);
        self.place = if is_focused { OUTSIDE } else { 0 };
        if !is_focused {
            // Reserved memory costs nothing until it is written to.
            self.functions.reserve_exact(runs.functions.len());
            [&mut self.starts, &mut self.parents].into_iter().for_each(|list| list.reserve_exact(runs.len() as usize));
            self.own.reserve_exact(runs.len() as usize);
        }
        self.now = vec![State::BEGIN; self.rules.len()];
        self.path = vec![PathRun { end: runs.len(), place: self.place, outermost: 0 }];
        self.states = self.now.clone();
        self.cut_outermost(0);
        self.charge(own);
    }

    /// Returns to the run that calls this one.
    fn go_to(&mut self, run: u32) {
        while self.path.pop_if(|above| above.end <= run).is_some() {}
        let most = self.rules.len();
        self.states.truncate(self.path.len() * most);
        self.now.copy_from_slice(&self.states[(self.path.len() - 1) * most..]);
        let Some(above) = self.path.last() else { return };
        self.place = above.place;
        self.cut_outermost(above.outermost);
    }

    fn cut_outermost(&mut self, to: usize) {
        self.outermost.truncate(to);
        self.outermost_states.truncate(to * self.rules.len());
    }

    fn charge(&mut self, amount: u64) {
        if self.place < GONE {
            let own = &mut self.own[self.place as usize];
            *own = own.saturating_add(amount);
        }
    }

    /// The place of callees, given these states of the rules.
    fn inner(&self, place: u32, states: &[State]) -> u32 {
        let is_inside = || self.rules.iter().zip(states).all(|(rule, state)| rule.is_inside(*state));
        if place == OUTSIDE && is_inside() { 0 } else { place }
    }

    /// Appends functions to the path, as the rules from number `at` on keep them. Returns `false`
    /// if the rules remove the functions and everything below them.
    fn through(&mut self, at: usize, functions: &[u32]) -> bool {
        let rules = self.rules;
        let Some(rule) = rules.get(at).filter(|_| !functions.is_empty()) else {
            self.put(functions);
            return true;
        };
        if let Rule::Recursion(marked) = rule {
            self.through_recursion(at, marked, functions);
            return true;
        }
        let mut kept = std::mem::take(&mut self.buffers[at]);
        kept.clear();
        let is_there = match rule.pass(&mut self.now[at], functions, self.libraries, &mut kept) {
            CycleOutcome::Part(part) => self.through(at + 1, &functions[part]),
            CycleOutcome::Kept => self.through(at + 1, &kept),
            CycleOutcome::Gone => {
                self.place = GONE;
                // A later repetition may lead to another outcome.
                rules[..at].iter().any(|rule| matches!(rule, Rule::Recursion(_)))
            }
        };
        self.buffers[at] = kept;
        is_there
    }

    /// Like [`through`](Self::through), for recursive functions: callees of a repetition become
    /// callees of the outermost call.
    fn through_recursion(&mut self, at: usize, marked: &[bool], functions: &[u32]) {
        let most = self.rules.len();
        let mut from = 0;
        for (here, function) in functions.iter().enumerate() {
            if !marked[*function as usize] {
                continue;
            }
            if self.now[at].known == 0 {
                self.through(at + 1, &functions[from..=here]);
                self.now[at].known = self.outermost.len() as u32 + 1;
                self.outermost.push(self.inner(self.place, &self.now));
                self.outermost_states.extend_from_slice(&self.now);
            } else {
                // No frame remains between the two calls.
                let outermost = self.now[at].known as usize - 1;
                self.place = self.outermost[outermost];
                let known = &self.outermost_states[outermost * most..][..most];
                self.now[at..].copy_from_slice(&known[at..]);
            }
            from = here + 1;
        }
        self.through(at + 1, &functions[from..]);
    }

    /// Begins a run of the new tree.
    fn put(&mut self, functions: &[u32]) {
        if functions.is_empty() || self.place == GONE {
            return;
        }
        let run = self.starts.len() as u32;
        self.starts.push(self.functions.len() as u32);
        self.parents.push(if self.place == OUTSIDE { 0 } else { self.place });
        self.own.push(0);
        self.functions.extend_from_slice(functions);
        self.place = run;
    }

    fn finish<'a>(self, functions: Arc<super::PictureFunctions<'a>>) -> ChangedTree<'a> {
        let is_in_order = !self.rules.iter().any(|rule| matches!(rule, Rule::Recursion(_)));
        let Self { functions: func, mut starts, parents, own, by_state, .. } = self;
        starts.push(func.len() as u32);
        let made = BuiltRuns { func, starts, parents, own };
        let (made, numbers) = if is_in_order { (made, None) } else { made.in_order() };
        let BuiltRuns { mut func, mut starts, mut parents, own } = made;
        let states = by_state.finish(parents.len(), numbers.as_deref());
        func.shrink_to_fit();
        [&mut starts, &mut parents].into_iter().for_each(Vec::shrink_to_fit);
        let mut sum = 0_u64;
        let mut before: Vec<u64> = own;
        before.iter_mut().for_each(|own| {
            let next = sum.saturating_add(*own);
            *own = std::mem::replace(&mut sum, next);
        });
        before.push(sum);
        before.shrink_to_fit();
        ChangedTree { functions, func, starts, parents, before, ends: OnceLock::new(), states }
    }
}

/// Runs with their own amounts, in any order in which callers come before their callees.
struct BuiltRuns {
    func: Vec<u32>,
    /// First node of each run; the last entry is the number of nodes.
    starts: Vec<u32>,
    parents: Vec<u32>,
    own: Vec<u64>,
}

impl BuiltRuns {
    /// Numbers runs in preorder and keeps the order of siblings: callees that were moved out of a
    /// recursion follow the callees within it. Also returns the new numbers.
    fn in_order(self) -> (Self, Option<Vec<u32>>) {
        let size = self.parents.len();
        let mut numbers = vec![0_u32; size];
        // Children as linked lists: one pass from the end puts each list in order. No list holds
        // the root, so its number ends each.
        let (mut first_child, mut next_sibling) = (vec![0_u32; size], vec![0_u32; size]);
        for run in (1..size).rev() {
            next_sibling[run] = std::mem::replace(&mut first_child[self.parents[run] as usize], run as u32);
        }
        let mut ordered = Self { func: vec![self.func[0]], starts: vec![0], parents: vec![0], own: vec![self.own[0]] };
        let mut open = vec![(first_child[0], 0_u32)];
        while let Some((run, above)) = open.pop() {
            if run == 0 {
                continue;
            }
            let (at, run) = (ordered.parents.len() as u32, run as usize);
            numbers[run] = at;
            ordered.starts.push(ordered.func.len() as u32);
            ordered.func.extend_from_slice(&self.func[self.starts[run] as usize..self.starts[run + 1] as usize]);
            ordered.parents.push(above);
            ordered.own.push(self.own[run]);
            open.push((next_sibling[run], above));
            open.push((first_child[run], at));
        }
        ordered.starts.push(ordered.func.len() as u32);
        (ordered, Some(numbers))
    }
}
