//! Finds the size of the smallest nodes for which a page has room.

use clrscope_analysis::{Forest, TreeNode, TreeOptions};

/// Steps between a node size and its double.
const STEPS: f64 = 16.0;
/// First share of the whole that is tried; each further share is smaller than the previous one by
/// this factor.
const FIRST: f64 = 1.0 / 1_024.0;
const SMALLER: f64 = 1.0 / 8.0;
/// A walk ends after this many times the number of nodes for which there is room.
const MOST: usize = 16;

/// The minimum share of the whole that a node must have, so that the tree has at most `most` nodes;
/// 0 if there is room for all nodes.
///
/// Trees of stacks are walked several times, with ever smaller shares while there is room, because
/// a full walk may visit too many nodes for a page that waits. Trees of `calls` are walked once,
/// thread by thread.
pub(super) fn least_share(forest: &Forest<'_>, most: usize) -> f64 {
    let whole = forest.conditions().total.max(1) as f64;
    if forest.conditions().metric.is_of_calls() {
        let mut sizes = Sizes::default();
        let counted = forest.walk(&TreeOptions::default(), |node| {
            sizes.add(node.times.inclusive_ns);
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(_) = counted;
        return if sizes.count <= most { 0.0 } else { sizes.least(most, 0) / whole };
    }
    let mut share = FIRST;
    loop {
        let mut sizes = Sizes::default();
        let options = TreeOptions { min_share: share, max_depth: None };
        let counted = forest.walk_again(None, &options, |node: &TreeNode<'_>| {
            sizes.add(node.amount.total);
            if sizes.count > most.saturating_mul(MOST) { Err(()) } else { Ok(()) }
        });
        match counted {
            Ok(pruned) if sizes.count <= most && pruned.subtrees == 0 => return 0.0,
            // Shares of less than one of anything are of nothing.
            Ok(_) if sizes.count <= most && share * whole >= 1.0 => share *= SMALLER,
            Ok(_) if sizes.count <= most => return 0.0,
            // More than was seen does not fit, but all of the share before did.
            Err(()) if share < FIRST => return share / SMALLER,
            _ => return sizes.least(most, (share * whole) as u64).max(share * whole) / whole,
        }
    }
}

/// Numbers of nodes by size.
struct Sizes {
    by_size: Vec<usize>,
    count: usize,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { by_size: vec![0; 64 * STEPS as usize + 1], count: 0 }
    }
}

impl Sizes {
    fn add(&mut self, size: u64) {
        self.by_size[Self::step(size)] += 1;
        self.count += 1;
    }

    fn step(size: u64) -> usize {
        (((size + 1) as f64).log2() * STEPS) as usize
    }

    /// Size of the smallest kept nodes, so that at most `most` nodes are kept; no node smaller than
    /// `least` was added.
    fn least(&self, most: usize, least: u64) -> f64 {
        let (mut kept, mut step) = (0, self.by_size.len());
        while step > Self::step(least) && kept + self.by_size[step - 1] <= most {
            step -= 1;
            kept += self.by_size[step];
        }
        (step as f64 / STEPS).exp2() - 1.0
    }
}
