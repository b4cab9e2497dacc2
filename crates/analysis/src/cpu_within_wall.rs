//! Limits the CPU time of one thread to its wall time.
//!
//! A sample charges the CPU time since the previous sample to the thread's current place in the
//! code. On a busy machine that can be much more than the wall time that the hooks measured there,
//! for example 79 ms of CPU time in a call of 1.3 ms. The thread did use this CPU time, but
//! elsewhere. So no function and no path keeps more CPU time than its wall time in the thread. The
//! excess of a path moves to the function's other paths. The excess of a function moves to the
//! thread's other functions that were charged CPU time.

use clrscope_recording::model::{CallTree, NodeValues, ROOT};
use rustc_hash::FxHashMap;

/// Times of one function in the thread.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    wall_ns: u64,
    /// CPU time that samples charged.
    charged_ns: u64,
    /// Sum over the function's paths of the charged time that each may keep.
    kept_ns: u64,
    /// CPU time that the function gets.
    cpu_ns: u64,
    /// CPU time still to be distributed to the function's paths, and the free room of these paths
    /// in all.
    left_ns: u64,
    room_ns: u64,
}

/// Limits the CPU time in the tree of one thread to the wall time. The sum of all CPU times stays
/// the same if the functions with CPU time have enough wall time.
pub(crate) fn cpu_within_wall(tree: &mut CallTree) {
    if tree.values().iter().all(|(_, time)| time.cpu_ns <= time.metric) {
        return;
    }
    let functions: Vec<u32> = tree.values().iter().map(|&(node, _)| function_of(tree, node)).collect();
    let mut sums: FxHashMap<u32, Sum> = FxHashMap::default();
    for (function, (_, time)) in functions.iter().zip(tree.values()) {
        let sum = sums.entry(*function).or_default();
        sum.wall_ns = sum.wall_ns.saturating_add(time.metric);
        sum.charged_ns = sum.charged_ns.saturating_add(time.cpu_ns);
        sum.kept_ns = sum.kept_ns.saturating_add(time.cpu_ns.min(time.metric));
    }
    share_among_functions(&mut sums);
    for sum in sums.values_mut() {
        sum.left_ns = sum.cpu_ns.saturating_sub(sum.kept_ns);
        sum.room_ns = sum.wall_ns.saturating_sub(sum.kept_ns);
    }
    for (function, (_, time)) in functions.iter().zip(tree.values_mut()) {
        let Some(sum) = sums.get_mut(function) else { continue };
        share_among_paths(sum, time);
    }
}

/// Function of a node; the thread itself is not a function.
fn function_of(tree: &CallTree, node: u32) -> u32 {
    if node == ROOT { u32::MAX } else { tree.functions()[node as usize] }
}

/// Gives each function its charged time, up to its wall time, and distributes the rest to the
/// others in proportion.
fn share_among_functions(sums: &mut FxHashMap<u32, Sum>) {
    let mut excess = 0_u64;
    for sum in sums.values_mut() {
        sum.cpu_ns = sum.charged_ns.min(sum.wall_ns);
        excess = excess.saturating_add(sum.charged_ns - sum.cpu_ns);
    }
    // Each round fills a function or distributes the whole excess.
    while excess > 0 {
        let has_room = |sum: &Sum| sum.cpu_ns > 0 && sum.cpu_ns < sum.wall_ns;
        let all: u128 = sums.values().filter(|sum| has_room(sum)).map(|sum| u128::from(sum.cpu_ns)).sum();
        if all == 0 {
            return;
        }
        let (before, mut left) = (excess, excess);
        for sum in sums.values_mut().filter(|sum| has_room(sum)) {
            let part = (u128::from(before) * u128::from(sum.cpu_ns)).div_ceil(all) as u64;
            let given = part.min(sum.wall_ns - sum.cpu_ns).min(left);
            sum.cpu_ns += given;
            left -= given;
        }
        excess = left;
    }
}

/// Gives a path its part of the function's remaining time, in proportion to its room. The last path
/// gets the rest.
fn share_among_paths(sum: &mut Sum, time: &mut NodeValues) {
    let kept = time.cpu_ns.min(time.metric);
    let room = time.metric - kept;
    let part = (u128::from(sum.left_ns) * u128::from(room)).checked_div(u128::from(sum.room_ns)).unwrap_or(0) as u64;
    let given = part.min(room).min(sum.left_ns);
    sum.room_ns = sum.room_ns.saturating_sub(room);
    sum.left_ns -= given;
    time.cpu_ns = kept + given;
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::{CallTreeBuilder, Node, NodeFlags};

    use super::*;

    /// Makes a tree of a root with paths below it: function, wall time and CPU time.
    fn tree(paths: &[(u32, u64, u64)]) -> CallTree {
        let mut builder = CallTreeBuilder::new(NodeValues::default());
        for &(function, metric, cpu_ns) in paths {
            let values = NodeValues { metric, cpu_ns };
            builder.push(Node { parent: ROOT, function, calls: 1, values, flags: NodeFlags::default() });
        }
        builder.finish()
    }

    fn cpu_of(paths: &[(u32, u64, u64)]) -> Vec<u64> {
        let mut tree = tree(paths);
        cpu_within_wall(&mut tree);
        (1..=paths.len() as u32).map(|node| tree.values_of(node).cpu_ns).collect()
    }

    #[test]
    fn no_function_of_a_thread_has_more_cpu_time_than_wall_time() {
        // A static constructor of 1.33 ms that a sample charged with 78.8 ms, alongside work of a
        // second.
        assert_eq!(cpu_of(&[(1, 1_330_000, 78_800_000), (2, 1_000_000_000, 300_000_000)]), [1_330_000, 377_470_000]);
        assert_eq!(cpu_of(&[(1, 10, 9), (2, 5, 5)]), [9, 5], "nothing to change");
    }

    #[test]
    fn what_one_path_can_not_have_had_goes_to_the_functions_other_paths() {
        assert_eq!(cpu_of(&[(1, 10, 40), (1, 90, 0), (2, 100, 50)]), [10, 30, 50]);
        assert_eq!(cpu_of(&[(1, 3, 9), (1, 3, 0), (1, 3, 0)]), [3, 3, 3], "no nanosecond is lost to rounding");
    }

    #[test]
    fn functions_that_were_never_seen_at_work_get_nothing() {
        assert_eq!(cpu_of(&[(1, 10, 40), (2, 1_000, 0)]), [10, 0]);
        assert_eq!(
            cpu_of(&[(1, 10, 40), (2, 20, 10), (3, 100, 10)]),
            [10, 20, 30],
            "a function that is full leaves the rest"
        );
        assert_eq!(cpu_of(&[(1, u64::MAX, u64::MAX), (2, 1, u64::MAX)]), [u64::MAX, 1]);
    }
}
