//! The pass over all nodes that makes every change at once.

use std::sync::{Arc, OnceLock};

use super::changes::{Fate, NONE, PictureChange, Rule, State};
use super::{ChangedTree, Nodes, Pictures};

/// Place of what lies outside of all that is focused on.
const OUTSIDE: u32 = u32::MAX;
/// Place of what is left out, as far as it does not come again: a recursion may put what is called below it where nothing is left out.
const GONE: u32 = u32::MAX - 1;

pub(super) fn pass<'a>(pictures: &Pictures<'a>, changes: &[PictureChange], folds: bool) -> ChangedTree<'a> {
    let functions = &pictures.functions;
    let libraries: Vec<u32> = functions.list().iter().map(|one| one.library.unwrap_or(NONE)).collect();
    let mut rules = Vec::new();
    rules.extend(pictures.roots.clone().map(Rule::Focus));
    rules.extend((folds && libraries.iter().any(|library| *library != NONE)).then_some(Rule::Fold));
    rules.extend(changes.iter().map(|change| Rule::of(change, functions)));
    let mut making = Making::new(&rules, &libraries);
    pictures.trees.iter().for_each(|nodes| making.take(nodes));
    making.finish(Arc::clone(functions))
}

/// Amounts in the order of their nodes, of which the first places are known: those that were folded into callers stand behind those of
/// their callees.
fn sorted(own: Vec<(u32, u64)>, first: &mut [u32]) -> Vec<(u32, u64)> {
    if own.is_sorted_by_key(|(node, _)| *node) {
        return own;
    }
    let mut sorted = vec![(0_u32, 0_u64); own.len()];
    for (node, amount) in own {
        let at = &mut first[node as usize];
        sorted[*at as usize] = (node, amount);
        *at += 1;
    }
    // Now each has the place of the one behind it.
    first.copy_within(..first.len() - 1, 1);
    first[0] = 0;
    sorted
}

/// Numbers nodes in preorder, with their siblings in the order that they have: what is called below a recursion stands behind what was
/// called within it.
fn put_in_order(func: &mut Vec<u32>, parent: &mut Vec<u32>, own: &mut [(u32, u64)]) {
    let size = func.len();
    // Children as linked lists: one pass from the end puts each list in order. No list holds the root, so its number ends each.
    let (mut first_child, mut next_sibling) = (vec![0_u32; size], vec![0_u32; size]);
    for node in (1..size).rev() {
        next_sibling[node] = std::mem::replace(&mut first_child[parent[node] as usize], node as u32);
    }
    let (mut funcs, mut parents, mut places) = (vec![func[0]], vec![0], vec![0_u32; size]);
    let mut open = vec![(first_child[0], 0_u32)];
    while let Some((node, above)) = open.pop() {
        if node == 0 {
            continue;
        }
        let at = funcs.len() as u32;
        places[node as usize] = at;
        funcs.push(func[node as usize]);
        parents.push(above);
        open.push((next_sibling[node as usize], above));
        open.push((first_child[node as usize], at));
    }
    own.iter_mut().for_each(|(node, _)| *node = places[*node as usize]);
    (*func, *parent) = (funcs, parents);
}

/// A tree in the making.
struct Making<'r> {
    rules: &'r [Rule],
    libraries: &'r [u32],
    func: Vec<u32>,
    parent: Vec<u32>,
    /// Own amounts with the nodes that they belong to.
    own: Vec<(u32, u64)>,
    /// The path to the node that is looked at: ends of its nodes before the changes, where they stand behind them, and what each rule
    /// knows there.
    ends: Vec<u32>,
    places: Vec<u32>,
    states: Vec<State>,
}

impl<'r> Making<'r> {
    fn new(rules: &'r [Rule], libraries: &'r [u32]) -> Self {
        Self {
            rules,
            libraries,
            func: vec![NONE],
            parent: vec![0],
            own: Vec::new(),
            ends: Vec::new(),
            places: Vec::new(),
            states: Vec::new(),
        }
    }

    fn take(&mut self, nodes: &Nodes) {
        let root = if self.rules.iter().any(Rule::is_focus) { OUTSIDE } else { 0 };
        self.ends.clear();
        self.places.clear();
        self.states.clear();
        self.ends.push(nodes.len());
        self.places.push(root);
        self.states.resize(self.rules.len(), State::BEGIN);
        self.charge(root, nodes.own(0));
        let is_whole = nodes.is_whole();
        if is_whole && root != OUTSIDE {
            // Memory that is never written to is none.
            self.func.reserve_exact(nodes.len() as usize);
            self.parent.reserve_exact(nodes.len() as usize);
        }
        let mut node = 1;
        while node < nodes.len() {
            if !is_whole && !nodes.is_there(node) {
                node = nodes.end(node);
                continue;
            }
            while self.ends.last().is_some_and(|end| *end <= node) {
                self.ends.pop();
                self.places.pop();
            }
            self.states.truncate(self.ends.len() * self.rules.len());
            let Some(place) = self.step(nodes.function(node)) else {
                node = nodes.end(node);
                continue;
            };
            self.charge(place, nodes.own(node));
            let end = nodes.end(node);
            if end > node + 1 {
                self.ends.push(end);
                self.places.push(place);
            } else {
                self.states.truncate(self.ends.len() * self.rules.len());
            }
            node += 1;
        }
    }

    fn charge(&mut self, place: u32, amount: u64) {
        if amount > 0 && place < GONE {
            self.own.push((place, amount));
        }
    }

    /// Puts a function behind the path, and gives its place in the new tree; `None` where it and all below it is gone.
    #[inline]
    fn step(&mut self, mut function: u32) -> Option<u32> {
        let (most, depth) = (self.rules.len(), self.ends.len());
        let above = (depth - 1) * most;
        let mut place = self.places[depth - 1];
        self.states.extend_from_within(above..above + most);
        let here = depth * most;
        let (mut is_shown, mut may_come_again) = (true, false);
        for (at, rule) in self.rules.iter().enumerate() {
            match rule.step(&mut self.states[here + at], function, depth as u32, self.libraries) {
                Fate::Shown(shown) => {
                    function = shown;
                    may_come_again |= matches!(rule, Rule::Recursion(_));
                }
                Fate::Gone if !may_come_again => return None,
                Fate::Gone => {
                    place = GONE;
                    is_shown = false;
                }
                Fate::Folded | Fate::Outside => is_shown = false,
                Fate::Again(outermost) => {
                    let outermost = outermost as usize;
                    place = self.places[outermost];
                    for later in at..most {
                        self.states[here + later] = self.states[outermost * most + later];
                    }
                    is_shown = false;
                }
            }
            if !is_shown {
                break;
            }
        }
        if place == OUTSIDE {
            let states = &self.states[here..here + most];
            if !self.rules.iter().zip(states).all(|(rule, state)| rule.is_inside(*state)) {
                return Some(OUTSIDE);
            }
            place = 0;
        }
        if !is_shown || place == GONE {
            return Some(place);
        }
        self.func.push(function);
        self.parent.push(place);
        Some(self.func.len() as u32 - 1)
    }

    fn finish<'a>(self, functions: Arc<super::PictureFunctions<'a>>) -> ChangedTree<'a> {
        let is_in_order = !self.rules.iter().any(|rule| matches!(rule, Rule::Recursion(_)));
        let Self { mut func, mut parent, mut own, .. } = self;
        func.shrink_to_fit();
        parent.shrink_to_fit();
        if !is_in_order {
            put_in_order(&mut func, &mut parent, &mut own);
        }
        let mut first = vec![0_u32; func.len() + 1];
        own.iter().for_each(|(node, _)| first[*node as usize + 1] += 1);
        for node in 1..first.len() {
            first[node] += first[node - 1];
        }
        let sorted = sorted(own, &mut first);
        let mut before = Vec::with_capacity(sorted.len() + 1);
        let mut sum = 0_u64;
        for (_, amount) in &sorted {
            before.push(sum);
            sum = sum.saturating_add(*amount);
        }
        before.push(sum);
        let owners = sorted.into_iter().map(|(node, _)| node).collect();
        ChangedTree { functions, func, parent, first, owners, before, ends: OnceLock::new() }
    }
}
