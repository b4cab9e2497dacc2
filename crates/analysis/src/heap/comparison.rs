//! Two snapshots side by side: what came, what went, and what retains more.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use clrscope_recording::model::Recording;

use super::rows::heap;
use super::snapshots::{HeapQuery, SnapshotRef};
use crate::query::{QueryProblem, Sort};

/// Objects of a type in one snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeapAmounts {
    /// Number of objects.
    pub objects: u64,
    /// Bytes of the objects alone.
    pub bytes: u64,
    /// Bytes that they retain together.
    pub retained_bytes: u64,
}

/// A type in two snapshots.
#[derive(Debug, Clone)]
pub struct HeapChange {
    /// Name as C# writes it.
    pub type_name: Arc<str>,
    /// Name of the module that declares the type.
    pub module: String,
    /// Amounts in the first snapshot.
    pub before: HeapAmounts,
    /// Amounts in the second snapshot.
    pub after: HeapAmounts,
}

/// Two snapshots, or sets of snapshots of several processes, side by side.
#[derive(Debug)]
pub struct HeapChanges<'a> {
    /// Types with what changed, the largest growth first.
    pub rows: Vec<HeapChange>,
    /// Rows that the limit left out.
    pub left_out: usize,
    /// The snapshots on both sides.
    pub snapshots: [Vec<SnapshotRef<'a>>; 2],
}

impl HeapChange {
    /// Growth from the first snapshot to the second, of objects, bytes and retained bytes.
    #[must_use]
    pub fn growth(&self) -> [i64; 3] {
        let of = |amounts: HeapAmounts| [amounts.objects, amounts.bytes, amounts.retained_bytes];
        let (before, after) = (of(self.before), of(self.after));
        [0, 1, 2].map(|at| after[at].wrapping_sub(before[at]) as i64)
    }
}

/// The types of two snapshots, of one recording or of two. The second query says order and limit. Types that are alike in
/// both have no row.
///
/// # Errors
/// When no process or snapshot is meant on either side.
pub fn heap_changes<'a>(
    before: (&'a Recording, &HeapQuery),
    after: (&'a Recording, &HeapQuery),
) -> Result<HeapChanges<'a>, QueryProblem> {
    let mut rows: BTreeMap<(Arc<str>, String), [HeapAmounts; 2]> = BTreeMap::new();
    let mut snapshots = [Vec::new(), Vec::new()];
    for (side, (recording, query)) in [before, after].into_iter().enumerate() {
        let mut query = query.clone();
        query.query.limit = None;
        let view = heap(recording, &query)?;
        for row in view.rows {
            let amounts = &mut rows.entry((row.type_name, row.module.to_owned())).or_default()[side];
            amounts.objects = amounts.objects.saturating_add(row.objects);
            amounts.bytes = amounts.bytes.saturating_add(row.bytes);
            amounts.retained_bytes = amounts.retained_bytes.saturating_add(row.retained_bytes);
        }
        snapshots[side] = view.snapshots;
    }
    let changed = rows.into_iter().filter(|(_, [before, after])| before != after);
    let row = |((type_name, module), [before, after]): ((Arc<str>, String), [HeapAmounts; 2])| HeapChange {
        type_name,
        module,
        before,
        after,
    };
    let mut rows: Vec<HeapChange> = changed.map(row).collect();
    let query = &after.1.query;
    match query.sort.unwrap_or(Sort::Total) {
        Sort::Own => rows.sort_by_key(|row| Reverse(row.growth()[1])),
        Sort::Calls => rows.sort_by_key(|row| Reverse(row.growth()[0])),
        Sort::Name => {}
        Sort::Module => rows.sort_by(|a, b| a.module.cmp(&b.module)),
        _ => rows.sort_by_key(|row| Reverse([row.growth()[2], row.growth()[1]])),
    }
    let left_out = query.cut(&mut rows);
    Ok(HeapChanges { rows, left_out, snapshots })
}
