//! Chooses the amounts that are counted, and expresses the other amounts as sums of them.

use std::cmp::Reverse;

use super::flow::Flow;

/// Maximum number of counters in a sum: readers add them up, and each one is stored.
const MOST_TERMS: usize = 16;
/// Number of rounds that try to express unwanted amounts by wanted ones.
const ROUNDS: usize = 8;

/// The sum for each wanted amount. Amounts that are always equal are treated as one, under the
/// lowest number.
pub(super) struct Sums {
    equal: Equal,
    /// By amount: the counted amounts that it is the sum of.
    terms: Vec<Vec<usize>>,
}

/// An amount, and the amounts that it is the sum of.
struct Equation {
    whole: usize,
    parts: Vec<usize>,
}

impl Sums {
    /// Returns sums for the wanted amounts of a method.
    pub(super) fn new(flow: &Flow, wanted: impl Iterator<Item = usize>) -> Self {
        let mut equal = Equal::from_flow(flow);
        let equations = equations(flow, &mut equal);
        let mut wanted: Vec<usize> = wanted.map(|amount| equal.find(amount)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut choice = Choice::new(flow.amounts(), &wanted, equations);
        choice.make_others();
        let depths = depths(flow, &mut equal);
        // Begin with the amounts that grow most often: saving their counters is worth most.
        wanted.sort_by_key(|amount| Reverse(depths[*amount]));
        for amount in wanted {
            choice.try_to_derive(amount);
        }
        equal.flatten();
        Self { equal, terms: choice.terms }
    }

    /// The number under which these sums have an amount.
    pub(super) fn amount(&self, amount: usize) -> usize {
        self.equal.parents[amount]
    }

    /// The counted amounts that add up to this amount.
    pub(super) fn terms(&self, amount: usize) -> &[usize] {
        &self.terms[self.amount(amount)]
    }
}

/// Number of loops around each amount.
fn depths(flow: &Flow, equal: &mut Equal) -> Vec<u32> {
    let mut depths = vec![0; flow.amounts()];
    for (number, block) in flow.blocks.iter().enumerate() {
        depths[equal.find(flow.of_block(number))] = block.depth;
    }
    depths
}

/// Equations with several terms: the edges into a block, and the edges out of it.
fn equations(flow: &Flow, equal: &mut Equal) -> Vec<Equation> {
    let mut equations = Vec::new();
    for (number, block) in flow.blocks.iter().enumerate() {
        let ins = (!block.is_entry).then_some(&block.ins);
        let outs = (!block.leaks).then_some(&block.outs);
        for ways in [ins, outs].into_iter().flatten().filter(|ways| ways.len() > 1) {
            let whole = equal.find(flow.of_block(number));
            equations.push(Equation { whole, parts: ways.iter().map(|way| equal.find(*way)).collect() });
        }
    }
    equations
}

/// Choice of the counted amounts.
struct Choice {
    equations: Vec<Equation>,
    /// Equations by the amount on their left side.
    by_whole: Vec<Vec<usize>>,
    terms: Vec<Vec<usize>>,
    /// For each amount, the amounts that may have it as a term.
    users: Vec<Vec<usize>>,
}

impl Choice {
    /// Starts with every wanted amount counted.
    fn new(amounts: usize, wanted: &[usize], equations: Vec<Equation>) -> Self {
        let mut by_whole = vec![Vec::new(); amounts];
        for (number, equation) in equations.iter().enumerate() {
            by_whole[equation.whole].push(number);
        }
        let mut terms = vec![Vec::new(); amounts];
        for amount in wanted {
            terms[*amount].push(*amount);
        }
        Self { equations, by_whole, terms, users: vec![Vec::new(); amounts] }
    }

    /// Expresses unwanted amounts by counted ones, where possible.
    fn make_others(&mut self) {
        for _ in 0..ROUNDS {
            let mut is_done = true;
            for number in 0..self.equations.len() {
                let whole = self.equations[number].whole;
                if !self.terms[whole].is_empty() {
                    continue;
                }
                if let Some(terms) = self.sum(number, None) {
                    self.set(whole, terms);
                    is_done = false;
                }
            }
            if is_done {
                return;
            }
        }
    }

    /// Stops counting an amount if it is a sum of other counted amounts.
    fn try_to_derive(&mut self, amount: usize) {
        for at in 0..self.by_whole[amount].len() {
            let Some(sum) = self.sum(self.by_whole[amount][at], Some(amount)) else { continue };
            let users = self.users[amount].clone();
            let longer = |user: &usize| {
                self.terms[*user].contains(&amount) && self.terms[*user].len() + sum.len() > MOST_TERMS + 1
            };
            if users.iter().any(longer) {
                continue;
            }
            for user in users {
                self.replace(user, amount, &sum);
            }
            self.set(amount, sum);
            return;
        }
    }

    /// The terms of an equation's right side; `None` if one is unknown, or is `but`.
    fn sum(&self, equation: usize, but: Option<usize>) -> Option<Vec<usize>> {
        let mut sum = Vec::new();
        for part in &self.equations[equation].parts {
            let terms = &self.terms[*part];
            if terms.is_empty() || sum.len() + terms.len() > MOST_TERMS || but.is_some_and(|but| terms.contains(&but)) {
                return None;
            }
            sum.extend_from_slice(terms);
        }
        Some(sum)
    }

    fn set(&mut self, amount: usize, terms: Vec<usize>) {
        for term in &terms {
            self.users[*term].push(amount);
        }
        self.terms[amount] = terms;
    }

    fn replace(&mut self, user: usize, amount: usize, sum: &[usize]) {
        if !self.terms[user].contains(&amount) {
            return;
        }
        let others =
            self.terms[user].iter().flat_map(|term| if *term == amount { sum } else { std::slice::from_ref(term) });
        let terms = others.copied().collect();
        self.set(user, terms);
    }
}

/// Amounts that are always equal.
struct Equal {
    /// A lower number of an equal amount, or the amount itself.
    parents: Vec<usize>,
}

impl Equal {
    /// Finds equal amounts: a block runs as often as its only incoming edge, and as often as its
    /// only outgoing edge.
    fn from_flow(flow: &Flow) -> Self {
        let mut equal = Self { parents: (0..flow.amounts()).collect() };
        for (number, block) in flow.blocks.iter().enumerate() {
            if let ([way], false) = (block.ins.as_slice(), block.is_entry) {
                equal.join(flow.of_block(number), *way);
            }
            if let ([way], false) = (block.outs.as_slice(), block.leaks) {
                equal.join(flow.of_block(number), *way);
            }
        }
        equal
    }

    fn find(&mut self, amount: usize) -> usize {
        let mut at = amount;
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.parents[one.max(other)] = one.min(other);
    }

    /// Makes every amount refer to the lowest one directly.
    fn flatten(&mut self) {
        for amount in 0..self.parents.len() {
            self.parents[amount] = self.find(amount);
        }
    }
}
