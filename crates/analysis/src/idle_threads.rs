//! Threads whose purpose is to wait: while others work, they stay in one wait all their life, such
//! as the threads of timers and loggers and the main thread. Samples of the clock identify them.

use clrscope_recording::model::{Process, Sample, ThreadRole, ThreadState};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::code_place::{CodePlace, PlacedFrame};
use crate::function::{FunctionRef, is_own};
use crate::samples::thread_numbered;
use crate::waits::{WaitKind, WaitReason, wait_reason};

/// Wait reasons of threads whose purpose is to wait: consumers of queues, and readers of the
/// terminal.
const OF_CONSUMERS: [&str; 7] = [
    "work",
    "a connection",
    WaitReason::SEMAPHORE.what,
    "an event",
    WaitReason::ITEM.what,
    "a pulse (Monitor.Wait)",
    "the terminal",
];
/// Share of its life that a thread must spend in one wait to count as only waiting. The waits of a
/// thread that works a little after each wait do count.
const ALWAYS: f64 = 0.97;
/// Share of the time that a thread must live to be idle: a thread that is started for a single wait
/// is not idle.
const LONG_LIFE: f64 = 0.5;
/// Share of the observed time for which other threads must work, so that the program counts as
/// busy.
const MUCH: f64 = 0.05;
/// For a semaphore that is a lock: share of the time in which one of its waiting threads must be
/// working.
const ALWAYS_HELD: f64 = 0.8;

/// Time that threads were blocked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Blocked {
    pub(crate) ns: u64,
    pub(crate) samples: u64,
}

impl Blocked {
    pub(crate) fn add(&mut self, other: Self) {
        self.ns = self.ns.saturating_add(other.ns);
        self.samples = self.samples.saturating_add(other.samples);
    }
}

/// The wait that the stack of a waiting thread shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitBelow<'a> {
    pub(crate) function: FunctionRef<'a>,
    pub(crate) place: CodePlace<'a>,
    pub(crate) reason: WaitReason,
}

/// Facts that a stack shows about a thread in a state.
#[derive(Debug, Clone, Copy)]
struct StackFacts<'a> {
    /// The wait of the thread below own code; `None` if the thread does not wait, or has no own
    /// code on its stack.
    wait: Option<WaitBelow<'a>>,
    has_own: bool,
}

impl<'a> StackFacts<'a> {
    fn new(process: &'a Process, stack: u32, state: ThreadState) -> Self {
        let frames = || PlacedFrame::all(process, &process.stacks, stack);
        let own = frames().find(|frame| is_own(&frame.function));
        let wait = own.zip(wait_reason(state, frames().map(|frame| frame.function)));
        let wait = wait.map(|(PlacedFrame { function, place }, reason)| WaitBelow { function, place, reason });
        Self { wait, has_own: own.is_some() }
    }
}

/// Times of threads by stack and state.
pub(crate) struct ThreadTimes<'a> {
    process: &'a Process,
    facts: FxHashMap<(u32, ThreadState), StackFacts<'a>>,
    pub(crate) blocked: FxHashMap<(u32, u32, ThreadState), Blocked>,
    lives: FxHashMap<u32, ThreadLife>,
}

/// Activity of a thread in the observed time, nanoseconds.
#[derive(Debug, Default)]
struct ThreadLife {
    all_ns: u64,
    /// Work below own code, and waits below own code that may be a problem.
    busy_ns: u64,
}

impl<'a> ThreadTimes<'a> {
    pub(crate) fn new(process: &'a Process) -> Self {
        Self { process, facts: FxHashMap::default(), blocked: FxHashMap::default(), lives: FxHashMap::default() }
    }

    /// Adds a sample of `wall`. Returns its busy time.
    pub(crate) fn add(&mut self, sample: &Sample) -> u64 {
        let process = self.process;
        let find = || StackFacts::new(process, sample.stack, sample.state);
        let StackFacts { wait, has_own } = *self.facts.entry((sample.stack, sample.state)).or_insert_with(find);
        let is_working = matches!(sample.state, ThreadState::Running | ThreadState::Ready | ThreadState::Suspended);
        let is_busy = match wait {
            Some(wait) => is_trouble(role_of(process, sample.thread), wait.reason),
            None => is_working && has_own,
        };
        let life = self.lives.entry(sample.thread).or_default();
        life.all_ns = life.all_ns.saturating_add(sample.weight_ns);
        let busy_ns = if is_busy { sample.weight_ns } else { 0 };
        life.busy_ns = life.busy_ns.saturating_add(busy_ns);
        if wait.is_some() {
            let more = Blocked { ns: sample.weight_ns, samples: sample.count.into() };
            self.blocked.entry((sample.thread, sample.stack, sample.state)).or_default().add(more);
        }
        busy_ns
    }

    /// Threads that stay in one wait all their life while others work. A thread that always waits
    /// for a lock is not one of them.
    ///
    /// `others_ns`: busy time of threads that have no samples here.
    pub(crate) fn idle_threads(&self, watched_ns: u64, others_ns: u64) -> FxHashSet<u32> {
        let waiting = self.threads_that_always_wait(watched_ns, |role, reason| {
            role != ThreadRole::Pool && reason.kind != WaitKind::Lock && is_trouble(role, reason)
        });
        let idle = |kinds: &[WaitKind]| -> FxHashSet<u32> {
            waiting.iter().filter(|(_, kind)| kinds.contains(kind)).map(|(thread, _)| *thread).collect()
        };
        let others = self.lives.iter().filter(|(thread, _)| !waiting.contains_key(thread));
        let busy_ns = others.fold(others_ns, |sum, (_, life)| sum.saturating_add(life.busy_ns));
        let is_of_others = busy_enough(busy_ns, watched_ns);
        // Where no other thread works, a wait for a file or socket matters more than a sleep.
        match waiting.values().any(|kind| *kind == WaitKind::Io) {
            _ if is_of_others => waiting.keys().copied().collect(),
            true => idle(&[WaitKind::Sleep, WaitKind::Signal]),
            false => FxHashSet::default(),
        }
    }

    /// Main threads that spend all their life in one wait for other threads' work.
    pub(crate) fn waiting_mains(&self, watched_ns: u64) -> FxHashSet<u32> {
        let is_of_main = |role, reason: WaitReason| role == ThreadRole::Main && !is_trouble(role, reason);
        self.threads_that_always_wait(watched_ns, is_of_main).into_keys().collect()
    }

    /// Threads that spend all their life in one wait that `counts` accepts, with the kind of the
    /// wait.
    fn threads_that_always_wait(
        &self,
        watched_ns: u64,
        counts: impl Fn(ThreadRole, WaitReason) -> bool,
    ) -> FxHashMap<u32, WaitKind> {
        // Stacks of one wait differ by addresses in native code.
        let mut by_place: FxHashMap<(u32, &str, CodePlace<'_>, WaitReason), u64> = FxHashMap::default();
        for (&(thread, stack, state), blocked) in &self.blocked {
            let Some(WaitBelow { function, place, reason }) = self.wait(stack, state) else { continue };
            let role = role_of(self.process, thread);
            if counts(role, reason) {
                let ns = by_place.entry((thread, function.name(), place, reason)).or_default();
                *ns = ns.saturating_add(blocked.ns);
            }
        }
        let lived_ns = |thread| self.lives.get(&thread).map_or(0, |life| life.all_ns);
        let always = by_place.into_iter();
        let always = always.filter(|((thread, ..), ns)| may_always_wait(*ns, lived_ns(*thread), watched_ns));
        always.map(|((thread, .., reason), _)| (thread, reason.kind)).collect()
    }

    /// Own functions that wait for a semaphore that serves as a lock. In nearly all of the time,
    /// one of the threads that wait below these functions is working. Consumers of a queue, in
    /// contrast, wait at the same time.
    pub(crate) fn semaphores_held(&self, watched_ns: u64) -> FxHashSet<&'a str> {
        let mut waiting: FxHashMap<&str, FxHashSet<u32>> = FxHashMap::default();
        for &(thread, stack, state) in self.blocked.keys() {
            if let Some(wait) = self.wait(stack, state).filter(|wait| wait.reason == WaitReason::SEMAPHORE) {
                waiting.entry(wait.function.name()).or_default().insert(thread);
            }
        }
        let busy_ns = |thread: &u32| self.lives.get(thread).map_or(0, |life| life.busy_ns);
        let is_held = |threads: &FxHashSet<u32>| {
            threads.len() > 1 && threads.iter().map(busy_ns).sum::<u64>() as f64 >= ALWAYS_HELD * watched_ns as f64
        };
        waiting.into_iter().filter(|(_, threads)| is_held(threads)).map(|(function, _)| function).collect()
    }

    /// Returns the wait below own code of a thread with this stack and state.
    pub(crate) fn wait(&self, stack: u32, state: ThreadState) -> Option<WaitBelow<'a>> {
        self.facts.get(&(stack, state)).and_then(|facts| facts.wait)
    }
}

/// Whether a thread or async method that waited this long may have been in one wait all its life.
pub(crate) fn may_always_wait(waited_ns: u64, lived_ns: u64, watched_ns: u64) -> bool {
    waited_ns as f64 >= ALWAYS * lived_ns as f64 && lived_ns as f64 >= LONG_LIFE * watched_ns as f64
}

/// Whether the busy time of other threads is long enough for the program to count as busy.
pub(crate) fn busy_enough(busy_ns: u64, watched_ns: u64) -> bool {
    busy_ns as f64 >= MUCH * watched_ns as f64
}

/// Whether a wait of a thread with this role may be a performance problem.
pub(crate) fn is_trouble(role: ThreadRole, reason: WaitReason) -> bool {
    if OF_CONSUMERS.contains(&reason.what) {
        return false;
    }
    match role {
        ThreadRole::Pool => true,
        // A thread that waits for the work of others is not the cause of the delay.
        ThreadRole::Main => reason.kind != WaitKind::Signal || reason == WaitReason::PROCESS,
        ThreadRole::User => {
            reason.kind != WaitKind::Signal || [WaitReason::TASK, WaitReason::PROCESS].contains(&reason)
        }
        _ => false,
    }
}

/// Returns the role of a thread. `thread` is its number in samples.
pub(crate) fn role_of(process: &Process, thread: u32) -> ThreadRole {
    thread_numbered(process, thread).map_or(ThreadRole::User, |thread| thread.role)
}
