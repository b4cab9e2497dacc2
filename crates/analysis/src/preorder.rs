//! Depth-first order: a subtree is a range of node numbers, and the path to a node is a stack.

use clrscope_recording::model::{CallTree, CallTreeBuilder, NodeTime, ROOT};

/// A copy of the tree in depth-first preorder; siblings keep their order.
pub(crate) fn renumber(tree: &CallTree) -> CallTree {
    let parents = tree.parents();
    if parents.is_empty() {
        return CallTree::default();
    }
    // Children as linked lists: one pass from the end puts each list in order.
    let mut first_child = vec![ROOT; parents.len()];
    let mut next_sibling = vec![ROOT; parents.len()];
    for node in (1..parents.len()).rev() {
        let parent = parents[node] as usize;
        next_sibling[node] = first_child[parent];
        first_child[parent] = node as u32;
    }
    let root_time = tree.times().first().filter(|t| t.0 == ROOT).map_or(NodeTime::default(), |t| t.1);
    let mut builder = CallTreeBuilder::new(root_time);
    let mut path = vec![(first_child[ROOT as usize], ROOT)];
    while let Some((old, parent)) = path.pop() {
        // No list holds the root, so its number ends each list.
        let Some(mut node) = tree.node(old).filter(|_| old != ROOT) else { continue };
        node.parent = parent;
        let new = builder.push(node);
        path.push((next_sibling[old as usize], parent));
        path.push((first_child[old as usize], new));
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clrscope_recording::model::{Node, NodeFlags};

    fn tree(nodes: &[(u32, u32)]) -> CallTree {
        let mut builder = CallTreeBuilder::new(NodeTime { wall_ns: 1, cpu_ns: 1 });
        for (at, &(parent, function)) in nodes.iter().enumerate() {
            let time = NodeTime { wall_ns: at as u64 + 2, cpu_ns: 0 };
            builder.push(Node { parent, function, calls: function.into(), time, flags: NodeFlags::default() });
        }
        builder.finish()
    }

    #[test]
    fn breadth_first_becomes_depth_first() {
        let breadth = tree(&[(0, 10), (0, 20), (1, 11), (2, 21), (1, 12)]);
        let depth = renumber(&breadth);
        assert_eq!(depth.functions(), [0, 10, 11, 12, 20, 21]);
        assert_eq!(depth.parents(), [0, 0, 1, 1, 0, 4]);
        let walls: Vec<u64> = (0..6).map(|n| depth.time(n).wall_ns).collect();
        assert_eq!(walls, [1, 2, 4, 6, 3, 5]);
    }

    #[test]
    fn depth_first_stays_as_it_is() {
        let depth = tree(&[(0, 10), (1, 11), (1, 12), (0, 20)]);
        assert_eq!(renumber(&depth), depth);
        assert_eq!(renumber(&CallTree::default()), CallTree::default());
    }
}
