//! Chains of continuations: from the awaited operation to its awaiters, object by object.

use std::cell::Cell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use clrscope_recording::model::{FunctionKind, RootKind, Thread};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::load::{Hold, LoadedSnapshot};
use super::PendingFrame;
use super::blocked::{Awaited, threads_of_waits};
use super::names::source_in_words;
use super::roles::{ITERATOR_PROMISE, Part, Role, roles};

/// Maximum number of links between a continuation and the awaiter: a wrapper, a delegate, a list,
/// its array.
const MOST_LINKS: usize = 8;
/// Maximum number of frames of a stack; further frames are merged into one.
const MOST_FRAMES: usize = 200;
/// Maximum number of steps, for a snapshot with few objects and per object. With many awaiters per
/// task there are more paths than objects.
const FEWEST_STEPS: usize = 20_000_000;
const STEPS_PER_OBJECT: usize = 16;

/// Label of the awaited operation if the box itself is that operation.
const ITSELF: &str = "itself";
/// Label of the awaited operation if the waiting one is in a queue of the thread pool.
const READY: &str = "a thread of the pool";
/// Label for operations that a variable of a thread refers to and that nothing completes.
const RUNNING: &str = "[running]";
/// Label of the awaited operation if no object identifies it.
const UNKNOWN: &str = "[not known]";

/// A logical stack and the operation that it waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Path {
    pub(super) waits_for: Arc<str>,
    pub(super) frames: Vec<PendingFrame>,
}

/// Operations with the same path.
#[derive(Debug, Default)]
pub(super) struct PathSum {
    pub(super) count: u64,
    /// Threads that block on them, by the operating system's numbers.
    pub(super) threads: BTreeSet<u32>,
}

/// Paths with their operations.
#[derive(Debug, Default)]
pub(super) struct Followed<'a> {
    pub(super) sums: FxHashMap<Path, PathSum>,
    /// Threads that block on async methods, by their numbers in the recording.
    pub(super) blocked: BTreeMap<u32, (&'a Thread, Awaited)>,
    pub(super) not_followed: u64,
}

fn most_steps(objects: usize) -> usize {
    objects.saturating_mul(STEPS_PER_OBJECT).max(FEWEST_STEPS)
}

/// The objects of a snapshot that form chains of continuations.
pub(super) struct Chains<'h, 'a> {
    loaded: &'h LoadedSnapshot<'a>,
    roles: Vec<Role>,
    /// Objects with a role in a chain, in ascending order.
    nodes: Vec<u32>,
    /// Continuations of each node, as indices into the nodes.
    next: Vec<Vec<u32>>,
    /// Whether the node is the continuation of another node.
    is_continued: Vec<bool>,
    /// Tasks of the objects of type `TaskCompletionSource`.
    of_sources: FxHashSet<u32>,
    /// Objects in queues of the thread pool.
    ready: FxHashSet<u32>,
    /// Objects that variables of methods hold, each with the root.
    on_stacks: FxHashMap<u32, u32>,
    /// Wait objects whose threads are known.
    waits: FxHashMap<u32, &'a Thread>,
    /// Number of links that may still be followed.
    links: Cell<usize>,
}

impl<'h, 'a> Chains<'h, 'a> {
    pub(super) fn new(loaded: &'h LoadedSnapshot<'a>) -> Self {
        let roles = roles(loaded.classes());
        let is_node = |object: &u32| {
            let part = &roles[loaded.class[*object as usize] as usize].part;
            matches!(part, Part::Method(_) | Part::BlockedThread | Part::Source)
        };
        let nodes: Vec<u32> = (0..loaded.len() as u32).filter(is_node).collect();
        let links = Cell::new(most_steps(loaded.len()));
        let (next, is_continued, of_sources) = (Vec::new(), Vec::new(), FxHashSet::default());
        let (ready, on_stacks) = (queued(loaded), held_by_stacks(loaded));
        let is_wait = |object: u32| matches!(roles[loaded.class[object as usize] as usize].part, Part::BlockedThread);
        let waits = threads_of_waits(loaded, is_wait);
        let mut chains = Self { loaded, roles, nodes, next, is_continued, of_sources, ready, on_stacks, waits, links };
        chains.is_continued = vec![false; chains.nodes.len()];
        let next: Vec<Vec<u32>> = chains.nodes.iter().map(|&object| chains.continuations(object)).collect();
        next.iter().flatten().for_each(|&node| chains.is_continued[node as usize] = true);
        chains.next = next;
        chains.of_sources = chains.tasks_of_sources();
        chains
    }

    fn role(&self, object: u32) -> &Role {
        &self.roles[self.loaded.class[object as usize] as usize]
    }

    fn part(&self, node: u32) -> &Part {
        &self.role(self.nodes[node as usize]).part
    }

    /// Nodes that continue when an object is completed.
    fn continuations(&self, object: u32) -> Vec<u32> {
        let mut found = Vec::new();
        self.onward(object).for_each(|target| self.resolve(target, MOST_LINKS, &mut found));
        if let Part::Method(_) = self.role(object).part {
            // An async iterator's consumer waits for the iterator, which is the state machine of
            // its box.
            let machines = self.role(object).machine.iter().filter_map(|slot| self.loaded.graph.at(object, *slot));
            machines
                .filter(|machine| self.is_iterator(*machine))
                .for_each(|machine| self.resolve(machine, 0, &mut found));
        }
        // A method awaits one thing at a time, whatever leads to it.
        found.sort_unstable();
        found.dedup();
        found
    }

    fn is_iterator(&self, object: u32) -> bool {
        let class = self.loaded.classes().get(self.loaded.class[object as usize]);
        class.fields.iter().any(|field| field == ITERATOR_PROMISE)
    }

    fn onward(&self, object: u32) -> impl Iterator<Item = u32> + '_ {
        let (role, graph) = (self.role(object), &self.loaded.graph);
        let slots = role.onward.iter().filter_map(move |slot| graph.at(object, *slot));
        let elements = role.is_array.then(|| graph.targets(object).iter().copied());
        slots.chain(elements.into_iter().flatten())
    }

    fn resolve(&self, object: u32, links: usize, found: &mut Vec<u32>) {
        let Some(left) = self.links.get().checked_sub(1) else { return };
        self.links.set(left);
        match self.role(object).part {
            Part::Link if links > 0 => {
                self.onward(object).for_each(|target| self.resolve(target, links - 1, found));
            }
            Part::Method(_) | Part::BlockedThread | Part::Source => {
                if let Ok(node) = self.nodes.binary_search(&object) {
                    found.push(node as u32);
                }
            }
            Part::Link | Part::None => {}
        }
    }

    /// Finds the tasks of objects of the type `TaskCompletionSource`.
    fn tasks_of_sources(&self) -> FxHashSet<u32> {
        let classes = self.loaded.classes();
        let is_source: Vec<bool> = (0..classes.len() as u32)
            .map(|class| classes.name(class).starts_with("System.Threading.Tasks.TaskCompletionSource"))
            .collect();
        let sources =
            (0..self.loaded.len() as u32).filter(|object| is_source[self.loaded.class[*object as usize] as usize]);
        sources.flat_map(|object| self.loaded.graph.targets(object).iter().copied()).collect()
    }

    /// Whether the method of a box has not ended: an ended method keeps no state.
    fn is_alive(&self, object: u32) -> bool {
        self.role(object).machine.iter().any(|slot| self.loaded.graph.at(object, *slot).is_some())
    }

    /// Follows every chain from the awaited operation to its end.
    pub(super) fn follow(&self) -> Followed<'a> {
        let mut walk =
            Walk { chains: self, followed: Followed::default(), is_met: vec![false; self.nodes.len()], steps: 0 };
        walk.steps = most_steps(self.nodes.len());
        // If no links were left, some links are missing.
        walk.followed.not_followed += u64::from(self.links.get() == 0);
        let all = || 0..self.nodes.len() as u32;
        for node in all().filter(|node| !self.is_continued[*node as usize]) {
            let object = self.nodes[node as usize];
            match self.part(node) {
                Part::Source if !self.next[node as usize].is_empty() => {
                    let name = self.loaded.classes().name(self.loaded.class[object as usize]);
                    let words = source_in_words(&name, self.of_sources.contains(&object));
                    walk.from(node, words);
                }
                Part::Method(_) if self.is_alive(object) => walk.from(node, self.state_in_words(object)),
                _ => {}
            }
        }
        // The remaining methods wait in a cycle, or for a method in a cycle.
        for node in all() {
            let is_left = !walk.is_met[node as usize] && self.is_continued[node as usize];
            if is_left && matches!(self.part(node), Part::Method(_)) && self.is_alive(self.nodes[node as usize]) {
                walk.from(node, ITSELF);
            }
        }
        walk.followed
    }

    /// Label of the operation that a method waits for if nothing completes it.
    fn state_in_words(&self, object: u32) -> &'static str {
        match (self.ready.contains(&object), self.on_stacks.contains_key(&object)) {
            (true, _) => READY,
            (false, true) => RUNNING,
            (false, false) => UNKNOWN,
        }
    }

    /// The frame of a node, if it has one.
    fn frame(&self, node: u32) -> Option<PendingFrame> {
        let object = self.nodes[node as usize];
        match self.part(node) {
            Part::Method(name) => {
                let place = self.loaded.awaits.get(&object).copied();
                Some(PendingFrame { name: name.clone(), kind: FunctionKind::Managed, place })
            }
            Part::BlockedThread => {
                let name = match self.waits.get(&object) {
                    Some(thread) if !thread.name.is_empty() => format!("[thread {}]", thread.name),
                    Some(thread) => format!("[thread {}]", thread.os_id),
                    None => "[thread]".to_owned(),
                };
                Some(PendingFrame::runtime(name))
            }
            _ => None,
        }
    }

    /// The thread that blocks on a task with this node as its continuation.
    fn blocked_thread(&self, node: u32) -> Option<&'a Thread> {
        self.waits.get(&self.nodes[node as usize]).copied()
    }
}

/// Objects in the queues of the thread pool: the global queue, and the queues of its threads.
fn queued(loaded: &LoadedSnapshot<'_>) -> FxHashSet<u32> {
    const QUEUES: &str = "System.Threading.ThreadPoolWorkQueue";
    const PARTS: [&str; 3] = [QUEUES, "System.Collections.Concurrent.ConcurrentQueue", "object[]"];
    let classes = loaded.classes();
    let names: Vec<Arc<str>> = (0..classes.len() as u32).map(|class| classes.name(class)).collect();
    let name = |object: u32| &*names[loaded.class[object as usize] as usize];
    let mut next: Vec<u32> = (0..loaded.len() as u32).filter(|object| name(*object).starts_with(QUEUES)).collect();
    let mut met: FxHashSet<u32> = next.iter().copied().collect();
    let mut found = FxHashSet::default();
    while let Some(part) = next.pop() {
        for &target in loaded.graph.targets(part) {
            match PARTS.iter().any(|part| name(target).starts_with(part)) {
                true if met.insert(target) => next.push(target),
                true => {}
                false => _ = found.insert(target),
            }
        }
    }
    found
}

/// Objects that variables of methods hold, each with the first such root.
fn held_by_stacks(loaded: &LoadedSnapshot<'_>) -> FxHashMap<u32, u32> {
    let is_of_stack = |hold: &&Hold| loaded.roots[hold.root as usize].kind == RootKind::Stack;
    let mut held = FxHashMap::default();
    for hold in loaded.holds.iter().filter(is_of_stack) {
        held.entry(hold.object).or_insert(hold.root);
    }
    held
}

/// A walk along chains.
struct Walk<'c, 'h, 'a> {
    chains: &'c Chains<'h, 'a>,
    followed: Followed<'a>,
    is_met: Vec<bool>,
    /// Number of steps left.
    steps: usize,
}

impl<'a> Walk<'_, '_, 'a> {
    fn from(&mut self, node: u32, waits_for: &str) {
        let waits_for: Arc<str> = waits_for.into();
        // Nodes on the path, each with the number of its continuations that were taken.
        let mut path: Vec<(u32, usize)> = vec![(node, 0)];
        self.is_met[node as usize] = true;
        let mut is_on_path = FxHashSet::from_iter([node]);
        // Whether the last node had a continuation.
        let mut went_on = false;
        while let Some((at, taken)) = path.last_mut() {
            let next = self.chains.next[*at as usize].get(*taken).copied();
            *taken += 1;
            match next {
                Some(next) if is_on_path.contains(&next) => {}
                Some(next) => {
                    let Some(left) = self.steps.checked_sub(1) else {
                        self.followed.not_followed += 1;
                        return;
                    };
                    self.steps = left;
                    self.is_met[next as usize] = true;
                    is_on_path.insert(next);
                    path.push((next, 0));
                    went_on = false;
                }
                None => {
                    if !went_on {
                        self.end(&waits_for, &path);
                    }
                    let (left, _) = path.pop().unwrap_or_default();
                    is_on_path.remove(&left);
                    went_on = true;
                }
            }
        }
    }

    fn end(&mut self, waits_for: &Arc<str>, path: &[(u32, usize)]) {
        let frame = |(node, _): &(u32, usize)| self.chains.frame(*node);
        let mut frames: Vec<PendingFrame> = path.iter().filter_map(frame).collect();
        if frames.is_empty() {
            return;
        }
        let thread = path.last().and_then(|(node, _)| self.chains.blocked_thread(*node));
        if let Some(thread) = thread {
            // The last frame is the thread's.
            let methods = &frames[..frames.len() - 1];
            self.blocks(thread, waits_for, &methods[methods.len().saturating_sub(MOST_FRAMES)..]);
        }
        let more = frames.len().saturating_sub(MOST_FRAMES);
        if more > 0 {
            frames.truncate(MOST_FRAMES);
            frames.push(PendingFrame::runtime(format!("[{more} more]")));
        }
        let sum = self.followed.sums.entry(Path { waits_for: waits_for.clone(), frames }).or_default();
        sum.count += 1;
        sum.threads.extend(thread.map(|thread| thread.os_id));
    }

    /// Notes that a thread blocks on the last of these methods.
    fn blocks(&mut self, thread: &'a Thread, waits_for: &Arc<str>, methods: &[PendingFrame]) {
        let found = Awaited { waits_for: Some(waits_for.clone()), frames: methods.to_vec() };
        match self.followed.blocked.entry(thread.id) {
            Entry::Vacant(entry) => _ = entry.insert((thread, found)),
            Entry::Occupied(mut entry) => entry.get_mut().1.add(&found),
        }
    }
}
