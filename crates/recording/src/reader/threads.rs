//! The table of threads.

use std::collections::HashMap;
use std::sync::Arc;

use super::blocks::{TreeRoot, TreeSources, decode};
use super::dictionary::ThreadWords;
use super::parts::PartGains;
use crate::layout::{thread, u32_at, u64_at};
use crate::model::{Part, PartTrees, Thread, ThreadRole, TreeSource};

/// Reads the table. `words` is what the log says of the threads, `mono_start` when the process began. Each part gets the trees of
/// what it gained.
pub(super) fn read(
    records: &[u8],
    mut words: HashMap<u32, ThreadWords>,
    trees: TreeSources,
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
            found.tree = TreeSource::lazy(move || decode(&trees, root, None));
        }
        threads.push(found);
    }
    let roots = Arc::new(roots);
    for (part, gains) in parts {
        let Some(gains) = gains.clone() else { continue };
        let (trees, roots) = (Arc::clone(&trees), Arc::clone(&roots));
        part.trees = PartTrees::lazy(move |thread| {
            let root = roots.get(thread as usize).copied().filter(|root| root.offset != 0)?;
            let (trees, gains) = (Arc::clone(&trees), Arc::clone(&gains));
            Some(TreeSource::lazy(move || decode(&trees, root, Some(&gains)).pruned()))
        });
    }
    threads
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
