//! Threads that block on tasks, as far as the snapshot proves it.
//!
//! A thread that blocks in `Task.Wait` has registered a wait object as a continuation of the task,
//! and a variable on its stack holds that object. So the snapshot shows which thread waits for
//! which task.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use clrscope_recording::model::{RootKind, Thread};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::load::LoadedSnapshot;
use super::PendingFrame;

/// Returns the thread of each wait object. Leaves out wait objects that are on the stacks of
/// several threads. If a stack has several wait objects, all of them are left out, because a thread
/// blocks in only one wait.
pub(super) fn threads_of_waits<'a>(
    loaded: &LoadedSnapshot<'a>,
    is_wait: impl Fn(u32) -> bool,
) -> FxHashMap<u32, &'a Thread> {
    let mut found: FxHashMap<u32, Option<&'a Thread>> = FxHashMap::default();
    for hold in loaded.holds.iter().filter(|hold| is_wait(hold.object)) {
        let root = &loaded.roots[hold.root as usize];
        if root.kind != RootKind::Stack {
            continue;
        }
        match found.entry(hold.object) {
            Entry::Vacant(entry) => _ = entry.insert(root.thread),
            Entry::Occupied(mut entry) => {
                if entry.get().map(|thread| thread.id) != root.thread.map(|thread| thread.id) {
                    entry.insert(None);
                }
            }
        }
    }
    let certain = || found.iter().filter_map(|(object, thread)| Some((*object, (*thread)?)));
    let (mut met, mut several) = (FxHashSet::default(), FxHashSet::default());
    for (_, thread) in certain() {
        if !met.insert(thread.id) {
            several.insert(thread.id);
        }
    }
    certain().filter(|(_, thread)| !several.contains(&thread.id)).collect()
}

/// The operation that a thread blocks on.
#[derive(Debug, Clone)]
pub(super) struct Awaited {
    /// The operation that the innermost method waits for; `None` if the branches wait for different
    /// operations.
    pub(super) waits_for: Option<Arc<str>>,
    /// The methods that all branches have in common. The last is the outermost, on which the thread
    /// blocks.
    pub(super) frames: Vec<PendingFrame>,
}

impl Awaited {
    /// Adds another branch that ends in the same wait.
    pub(super) fn add(&mut self, other: &Self) {
        let pairs = self.frames.iter().rev().zip(other.frames.iter().rev());
        let common = pairs.take_while(|(one, other)| one == other).count();
        self.frames.drain(..self.frames.len() - common);
        if self.waits_for != other.waits_for {
            self.waits_for = None;
        }
    }
}
