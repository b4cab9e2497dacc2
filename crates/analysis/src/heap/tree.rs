//! The view `dominators`: the dominator tree, merged by type.

use std::cmp::Reverse;
use std::io;
use std::sync::Arc;

use clrscope_recording::model::Process;
use rustc_hash::FxHashMap;

use super::heaps::{Heaps, OpenHeap};
use super::load::LoadedSnapshot;
use super::preorder::TOP;
use super::retained::RetainedBytes;
use super::snapshots::{HeapQuery, SnapshotRef};
use crate::query::QueryProblem;

/// Deeper nodes are merged into the node at this depth.
const MOST_DEEP: u32 = 200;

/// Objects of one type that the objects of the parent node dominate directly.
///
/// Objects of the same type that dominate each other count in one node. Otherwise a linked list
/// would become a tree a million levels deep.
#[derive(Debug, Clone)]
pub struct DominatorNode<'a> {
    /// The process.
    pub process: &'a Process,
    /// Depth in the tree; 0 for objects that no single object holds.
    pub depth: u32,
    /// Name of the type.
    pub type_name: Arc<str>,
    /// Name of the module that declares the type.
    pub module: &'a str,
    /// Number of objects.
    pub objects: u64,
    /// Bytes of the objects, without the bytes that they retain.
    pub bytes: u64,
    /// Bytes that the objects retain: their own bytes, and those of all nodes below.
    pub retained_bytes: u64,
}

/// Nodes that a walk left out of a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SmallerNodes {
    /// Number of nodes that were left out. The nodes below them are not counted.
    pub nodes: u64,
    /// Bytes that the nodes retain.
    pub bytes: u64,
}

/// The view `dominators`.
#[derive(Debug)]
pub struct DominatorTree<'a> {
    heaps: Vec<Arc<OpenHeap<'a>>>,
    query: HeapQuery,
    /// The snapshots.
    pub snapshots: Vec<SnapshotRef<'a>>,
}

/// The dominator tree of the snapshots that a query selects.
///
/// # Errors
/// When the query selects no process or snapshot.
pub fn dominator_tree<'a>(heaps: &Heaps<'a>, query: &HeapQuery) -> Result<DominatorTree<'a>, QueryProblem> {
    let chosen = query.select(heaps.recording, "dominators")?.into_iter();
    let heaps: Vec<_> = chosen.filter_map(|(process, snapshot)| heaps.open(process, snapshot)).collect();
    let snapshots = heaps.iter().map(|heap| SnapshotRef::new(&heap.loaded)).collect();
    Ok(DominatorTree { heaps, query: query.clone(), snapshots })
}

impl<'a> DominatorTree<'a> {
    /// Calls `visit` with every node in preorder. Among siblings, the node that retains most comes
    /// first. Nodes that retain less than `min_share` of their heap, and children of a node beyond
    /// the query's limit, are only counted.
    ///
    /// # Errors
    /// The error of `visit`.
    pub fn walk(
        &self,
        min_share: f64,
        mut visit: impl FnMut(&DominatorNode<'a>) -> io::Result<()>,
    ) -> io::Result<SmallerNodes> {
        let mut smaller = SmallerNodes::default();
        for heap in &self.heaps {
            let (loaded, retained) = (&heap.loaded, heap.retained());
            let least = (min_share * loaded.bytes() as f64) as u64;
            let walk = Walk { loaded, retained, query: &self.query, least };
            walk.all(&mut smaller, &mut visit)?;
        }
        Ok(smaller)
    }
}

/// The objects of a node, and the objects that they dominate.
struct Group {
    kind: u32,
    objects: u64,
    bytes: u64,
    retained: u64,
    /// Numbers of the objects of other types directly below.
    below: Vec<u32>,
}

struct Walk<'w, 'a> {
    loaded: &'w LoadedSnapshot<'a>,
    retained: &'w RetainedBytes,
    query: &'w HeapQuery,
    least: u64,
}

impl<'a> Walk<'_, 'a> {
    fn all(
        &self,
        smaller: &mut SmallerNodes,
        visit: &mut impl FnMut(&DominatorNode<'a>) -> io::Result<()>,
    ) -> io::Result<()> {
        // Groups that are not visited yet, the next one last, each with its depth.
        let mut open: Vec<(u32, Group)> = Vec::new();
        self.open(self.retained.children(TOP).to_vec(), 0, smaller, &mut open);
        while let Some((depth, group)) = open.pop() {
            let classes = self.loaded.classes();
            visit(&DominatorNode {
                process: self.loaded.process,
                depth,
                type_name: classes.name(group.kind),
                module: classes.module(group.kind),
                objects: group.objects,
                bytes: group.bytes,
                retained_bytes: group.retained,
            })?;
            if depth < MOST_DEEP {
                self.open(group.below, depth + 1, smaller, &mut open);
            }
        }
        Ok(())
    }

    /// Makes groups of numbers by type and opens the groups that are large enough, the largest
    /// last.
    fn open(&self, numbers: Vec<u32>, depth: u32, smaller: &mut SmallerNodes, open: &mut Vec<(u32, Group)>) {
        let mut members: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for number in numbers {
            members.entry(self.kind(number)).or_default().push(number);
        }
        let is_top = depth == 0;
        let wanted = |kind: &u32| {
            !is_top || self.query.wants(&self.loaded.classes().name(*kind), self.loaded.classes().module(*kind))
        };
        let sums = members.into_iter().filter(|(kind, _)| wanted(kind)).map(|(kind, members)| {
            let retained = members.iter().fold(0_u64, |sum, &number| sum.saturating_add(self.retained.bytes(number)));
            (Reverse(retained), self.loaded.classes().name(kind), kind, members)
        });
        let mut sums: Vec<_> = sums.collect();
        sums.sort_unstable_by(|a, b| (a.0, &a.1, a.2).cmp(&(b.0, &b.1, b.2)));
        let large = sums.iter().take_while(|(retained, ..)| retained.0 >= self.least).count();
        let shown = large.min(self.query.query.limit.unwrap_or(usize::MAX));
        for (retained, ..) in sums.drain(shown..) {
            *smaller = SmallerNodes { nodes: smaller.nodes + 1, bytes: smaller.bytes.saturating_add(retained.0) };
        }
        open.extend(
            sums.into_iter().rev().map(|(retained, _, kind, members)| (depth, self.group(kind, members, retained.0))),
        );
    }

    /// The group of numbers of one type, with the objects of this type that they dominate.
    fn group(&self, kind: u32, mut members: Vec<u32>, retained: u64) -> Group {
        let (mut objects, mut bytes, mut below) = (0, 0_u64, Vec::new());
        while let Some(number) = members.pop() {
            objects += 1;
            bytes = bytes.saturating_add(self.loaded.sizes[self.retained.order.object[number as usize] as usize]);
            for &child in self.retained.children(number) {
                if self.kind(child) == kind { members.push(child) } else { below.push(child) }
            }
        }
        Group { kind, objects, bytes, retained, below }
    }

    fn kind(&self, number: u32) -> u32 {
        self.loaded.kind(self.retained.order.object[number as usize])
    }
}
