//! The table of threads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::blocks::{EdgedTree, TreeRoot, TreeSources, decode};
use super::dictionary::ThreadWords;
use super::parts::PartGains;
use crate::layout::{thread, u32_at, u64_at};
use crate::model::{Part, PartTrees, Thread, ThreadRole, TreeSource};

/// Which trees the threads get.
pub(super) enum ShownTrees {
    /// Trees of everything that was counted.
    Whole,
    /// Trees of what was counted in one period.
    Gains(Arc<PartGains>),
    /// No trees, because it is not known what was counted in the period.
    None,
}

/// Reads the table. `words` are the log's entries about the threads, `mono_start` is the start of
/// the process. Each part gets the trees of its gains.
pub(super) fn read(
    records: &[u8],
    mut words: HashMap<u32, ThreadWords>,
    (trees, shown): (TreeSources, ShownTrees),
    parts: &mut [(Part, Option<Arc<PartGains>>)],
    mono_start: u64,
) -> Vec<Thread> {
    let mut blocks_left = u32::try_from(trees.arena.len() / trees.stride).unwrap_or(u32::MAX);
    let trees = Arc::new(trees);
    let (mut threads, mut roots) = (Vec::new(), Vec::new());
    for bytes in records.chunks_exact(thread::BYTES) {
        let id = u32_at(bytes, thread::SERIAL);
        if id == 0 {
            break;
        }
        let mut found = read_thread(bytes, id, mono_start);
        if let Some(said) = words.remove(&id) {
            found.name = said.name;
            found.role = said.role.unwrap_or(found.role);
        }
        // Threads share the arena, so their claims together can't exceed it.
        let blocks = u32_at(bytes, thread::BLOCKS).min(blocks_left);
        blocks_left -= blocks;
        let root = TreeRoot { offset: u32_at(bytes, thread::ROOT), blocks };
        roots.push(root);
        if root.offset != 0 {
            let trees = Arc::clone(&trees);
            match &shown {
                ShownTrees::Whole => found.tree = TreeSource::lazy(move || decode(&trees, root, None)),
                ShownTrees::Gains(gains) => {
                    let gains = Arc::clone(gains);
                    found.tree = TreeSource::lazy(move || decode(&trees, root, Some(&gains)).pruned());
                }
                ShownTrees::None => {}
            }
        }
        threads.push(found);
    }
    let (roots, last) = (Arc::new(roots), Arc::new(LastTree::default()));
    for (part, gains) in parts {
        let Some(gains) = gains.clone() else { continue };
        let (trees, roots, last) = (Arc::clone(&trees), Arc::clone(&roots), Arc::clone(&last));
        part.trees = PartTrees::lazy(move |thread| {
            let root = roots.get(thread as usize).copied().filter(|root| root.offset != 0)?;
            let (trees, gains, last) = (Arc::clone(&trees), Arc::clone(&gains), Arc::clone(&last));
            Some(TreeSource::lazy(move || {
                let tree = (!gains.is_rest())
                    .then(|| last.tree_of_thread(thread, || EdgedTree::decode(&trees, root)))
                    .flatten();
                if let Some(tree) = tree {
                    return tree.of_part(&gains, trees.ticks());
                }
                decode(&trees, root, Some(&gains)).pruned()
            }))
        });
    }
    threads
}

/// Tree of the thread whose part trees were made last. A caller that wants all parts of a thread
/// asks for them one after another. From the second part on, all of them share one walk over the
/// tree.
#[derive(Debug, Default)]
struct LastTree(Mutex<Option<(u32, Option<Arc<EdgedTree>>)>>);

impl LastTree {
    /// Returns the tree of the thread if the previous request was for the same thread; otherwise
    /// only remembers the thread.
    fn tree_of_thread(&self, thread: u32, make: impl FnOnce() -> EdgedTree) -> Option<Arc<EdgedTree>> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *last {
            Some((of, tree)) if *of == thread => Some(Arc::clone(tree.get_or_insert_with(|| Arc::new(make())))),
            _ => {
                *last = Some((thread, None));
                None
            }
        }
    }
}

fn read_thread(bytes: &[u8], id: u32, mono_start: u64) -> Thread {
    let ended = u64_at(bytes, thread::ENDED);
    Thread {
        id,
        os_id: u32_at(bytes, thread::OS_ID),
        name: String::new(),
        role: ThreadRole::from_number(u32_at(bytes, thread::ROLE)).unwrap_or_default(),
        created_ns: u64_at(bytes, thread::CREATED).saturating_sub(mono_start),
        ended_ns: (ended != 0).then(|| ended.saturating_sub(mono_start)),
        cpu_ns: (u32_at(bytes, thread::CPU_KNOWN) != 0).then(|| u64_at(bytes, thread::CPU)),
        out_of_stack_at: u32_at(bytes, thread::OUT_OF_STACK),
        tree: TreeSource::default(),
    }
}
