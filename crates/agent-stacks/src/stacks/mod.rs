//! Call stacks of the calling thread, in callbacks of the runtime, each as a number in the
//! recording's stack table.
//!
//! A stack at a callback is walked with known rules for its return addresses, and by the runtime
//! where these are not enough:
//!
//! | module | what it holds |
//! |---|---|
//! | `unwind_rules` | the rules for return addresses, and the walk that uses them |
//! | `unwind_training` | how the rules are found: by comparison with the runtime's own walks |
//! | `stack_cache` | stacks whose words were read before |
//! | `block_addresses` | the resume addresses of catch, finally and filter blocks, which the runtime's walk leaves out |
//! | `hidden_returns` | return addresses that no frame pointer leads to, for code that follows only frame pointers |
//! | `code_locations` | functions and IL offsets by address |
//! | `throw_blocks` | the statements of checks that throw in a block without a statement of its own |
//! | `table` | the recording's stack table |
//!
//! Rules for all of it: only on the thread that owns the stack, only in a callback in which the
//! runtime may be queried (exceptions, allocations; not in hooks, nor while a collection has
//! suspended the program), and without a lock while the runtime is asked. Frames are those that the
//! runtime shows: compiled methods and dynamic ones, without native code.

pub mod block_addresses;
mod code_locations;
pub mod hidden_returns;
pub mod stack_cache;
pub mod table;
mod throw_blocks;
mod unwind_rules;
mod unwind_training;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher as _};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use clr_profiler::internals::{CurrentStack, NativeFrame};
use clr_profiler::{Error, FunctionId, HResult, ProfilerInfo, Result, StackFrame, StackWalk};

use clrscope_recording::model::StackFrame as RecordedFrame;

use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::helper::Task;
use code_locations::CodeLocations;
pub use code_locations::{CodeLocation, code_start};
pub(crate) use code_locations::{code_around, recorded_place};
use stack_cache::{StackCache, StoredStack};
use table::RecordedStacks;
pub use unwind_rules::Mix;
use unwind_rules::{MOST, Outcome, Trust, UnwindRules, Words};
use unwind_training::{RuleUpdate, RuntimeWalk, Training};

use crate::awaiters::{Awaiters, Chain, Questions, Resumed, ResumedSearch};
use crate::inlined::InlinedMethods;

/// Adds an address to a hash of addresses.
#[inline]
pub fn mix_address(mixed: u64, address: usize) -> u64 {
    let mut mix = Mix::after(mixed);
    mix.write_usize(address);
    mix.finish()
}

/// Start of the next count of unloads, so that no stack of an earlier recording is taken for one of
/// this recording.
static FIRST_UNLOAD: AtomicU64 = AtomicU64::new(0);
/// A number of unloads that no recording reaches.
const UNLOADS_OF_ONE: u64 = 1 << 40;

/// How stacks are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    /// By known rules for the frames, and by the runtime if the rules are not enough.
    Frames,
    /// Always by the runtime.
    Snapshot,
    /// Both ways, and the results are compared.
    Check,
}

/// How an instrument's stacks are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackOptions {
    /// Number of innermost frames that are kept of a stack; 0 for no stacks.
    pub frames: usize,
    /// How to walk the stacks.
    pub walk: Walk,
    /// Whether frame pointers are needed, which only the runtime's walk gives.
    pub frame_pointers: bool,
    /// Most stacks that are remembered at a time; also the most addresses.
    pub remembered: usize,
}

/// How many stacks are remembered by default.
pub const REMEMBERED: usize = MOST;
/// Bytes of memory for a remembered stack and an address. Tables may be half empty.
pub const BYTES_OF_A_STACK: usize = 2 * (2 * size_of::<u64>() + size_of::<(usize, CodeLocation)>());

/// A frame of the calling thread's stack, from the runtime's own walk.
#[derive(Debug, Clone, Copy)]
pub struct WalkedFrame {
    /// The function and the position in it.
    pub location: CodeLocation,
    /// Number of frames of the recorded stack that are further in than this one.
    pub position: usize,
    /// The frame pointer, if it was requested.
    pub frame_pointer: Option<usize>,
}

/// The stacks of one instrument: the rules for walking them, and their numbers.
pub struct CallStacks {
    options: StackOptions,
    info: ProfilerInfo,
    functions: Arc<Functions>,
    locations: CodeLocations,
    inlined: Arc<InlinedMethods>,
    awaiters: Arc<Awaiters>,
    recorded: &'static RecordedStacks,
    known: RwLock<RulesAndNumbers>,
    cache: StackCache,
    /// Counts unloads: a result from before an unload is not used after it. Changed with `known`
    /// locked.
    unloads: AtomicU64,
    comparison: Comparison,
}

/// The outcome of [`Walk::Check`].
#[derive(Default)]
struct Comparison {
    /// Number of stacks that only the runtime could walk.
    asked: AtomicU64,
    same: AtomicU64,
    differ: AtomicU64,
    /// Numbers of the first stack that differed, as walked by frames and by the runtime.
    first: OnceLock<(u32, u32)>,
}

#[derive(Default)]
struct RulesAndNumbers {
    rules: UnwindRules,
    /// Numbers of stacks by their [`Sum`]s. Sums are of locations, which unloads do not change.
    numbers: HashMap<u64, u32, BuildHasherDefault<Mix>>,
}

/// Hash of the locations of a stack.
#[derive(Default, Clone, Copy)]
struct Sum(Mix);

impl Sum {
    #[inline]
    fn add(&mut self, location: CodeLocation) {
        let offset = location.il_offset.map_or(0, |offset| offset + 1);
        self.0.write_u64(u64::from(location.function) << 32 | u64::from(offset));
        // Few frames have either, and one must not be taken for the other.
        if location.il_span != 0 || location.inlined.number() != 0 {
            self.0.write_u64(u64::from(location.inlined.number()) << 16 | u64::from(location.il_span));
        }
    }

    fn finish(mut self, cut: bool) -> u64 {
        self.0.write_u64(cut.into());
        self.0.finish()
    }
}

impl CallStacks {
    /// Creates stacks that are stored in `recorded`. They include inlined methods, from `inlined`,
    /// and awaiters.
    ///
    /// # Errors
    /// A message for the user: the process has no thread key left.
    pub fn new(
        options: StackOptions,
        info: &ProfilerInfo,
        functions: &Arc<Functions>,
        (recorded, inlined, awaiters): (&'static RecordedStacks, &Arc<InlinedMethods>, &Arc<Awaiters>),
    ) -> std::result::Result<Self, String> {
        Ok(Self {
            options,
            info: info.clone(),
            functions: Arc::clone(functions),
            locations: CodeLocations::new(options.remembered, Arc::clone(inlined), Arc::clone(awaiters)),
            inlined: Arc::clone(inlined),
            awaiters: Arc::clone(awaiters),
            recorded,
            known: RwLock::default(),
            cache: StackCache::new().map_err(|error| format!("no thread key: {error}"))?,
            unloads: AtomicU64::new(FIRST_UNLOAD.fetch_add(UNLOADS_OF_ONE, Ordering::Relaxed)),
            comparison: Comparison::default(),
        })
    }

    fn known(&self) -> RwLockReadGuard<'_, RulesAndNumbers> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_mut(&self) -> RwLockWriteGuard<'_, RulesAndNumbers> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// To be called for each module and dynamic method that unloads, as other code may be placed at
    /// its addresses.
    pub fn code_unloaded(&self) {
        self.locations.code_unloaded();
        let mut known = self.known_mut();
        known.rules.clear();
        self.unloads.fetch_add(1, Ordering::AcqRel);
    }

    /// The result of [`Walk::Check`] as text; `None` if it was not requested.
    pub fn comparison(&self) -> Option<String> {
        (self.options.walk == Walk::Check).then(|| self.comparison.in_words())
    }

    /// Bytes of memory that remembered stacks take.
    pub fn own_bytes(&self) -> u64 {
        let stacks = self.known().numbers.capacity() * 2 * size_of::<u64>();
        (stacks + self.locations.own_bytes()) as u64
    }

    /// Task of the helper thread that serves these stacks.
    pub fn task(&self) -> Box<dyn Task> {
        Box::new(StackTask { table: self.recorded.task(), awaiters: Arc::clone(&self.awaiters) })
    }

    /// In a forked child: releases the stack table. Async-signal-safe.
    pub fn detach_in_child(&self) {
        self.recorded.detach_in_child();
    }

    /// The number of the calling thread's stack in the recording's stack table; 0 for none. `frame`
    /// is the frame that the framework's callback got. If frame pointers were requested, `visit`
    /// gets the kept frames, innermost first.
    ///
    /// # Errors
    /// The runtime's error, if its own walk was needed.
    pub fn number_here(&self, frame: NativeFrame, visit: impl FnOnce(&[WalkedFrame])) -> Result<u32> {
        if self.options.frames == 0 {
            return Ok(0);
        }
        if self.options.frame_pointers {
            let asked = self.with_frame_pointers(frame, visit)?;
            self.comparison.add(None, asked);
            return Ok(asked);
        }
        let stack = if self.options.walk == Walk::Snapshot { None } else { CurrentStack::here() };
        let walked = stack.and_then(|stack| self.walked(stack, frame));
        if self.options.walk == Walk::Check {
            let asked = self.asked(stack, frame)?;
            self.comparison.add(walked, asked);
            return Ok(asked);
        }
        walked.map_or_else(|| self.asked(stack, frame), Ok)
    }

    /// The number of the calling thread's stack, walked by the runtime; 0 for none. For rare
    /// callbacks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn snapshot_here(&self) -> Result<u32> {
        if self.options.frames == 0 {
            return Ok(0);
        }
        self.asked(None, NativeFrame::new(0))
    }

    /// The number of a stack that has only one method, whose awaiters are unknown. `at` holds the
    /// method's index and IL offset. 0 once recording has ended.
    pub fn number_alone(&self, at: (u32, u32)) -> u32 {
        self.number(&[at_await(at)], false, Some(&Chain::default()))
    }

    /// The number of the stack of a method that resumes after an `await`, together with its
    /// awaiters. `this` is the address of its state machine. To be called on the thread that runs
    /// the method, where objects don't move. Asks the runtime nothing.
    pub fn number_of_resumed(&self, at: (u32, u32), function: FunctionId, this: usize) -> u32 {
        let chain = self.awaiters.chain_of(function, this, Questions::Noted);
        self.number(&[at_await(at)], false, Some(&chain))
    }

    /// Walks with the known rules for frames.
    fn walked(&self, stack: CurrentStack, frame: NativeFrame) -> Option<u32> {
        let unloads = self.unloads.load(Ordering::Acquire);
        let mut walked = None;
        let stored = self.cache.stored(stack, frame, unloads, |words| {
            let (sum, cut, resumed) = self.sum(words, frame)?;
            walked = Some((cut, resumed));
            match resumed {
                Some(resumed) => Some(StoredStack { number: 0, resumed: Some((resumed, sum)) }),
                None => {
                    let number = self.known().numbers.get(&sum).copied()?;
                    Some(StoredStack { number, resumed: None })
                }
            }
        });
        match stored {
            Some(StoredStack { resumed: Some((resumed, sum)), .. }) => {
                let chain = self.awaiters.chain(resumed);
                let number = self.known().numbers.get(&mixed(sum, &chain)).copied();
                number.or_else(|| {
                    let cut =
                        walked.map_or_else(|| self.sum(stack, frame).map(|(_, cut, _)| cut), |(cut, _)| Some(cut));
                    Some(self.number(&self.locations(stack, frame), cut?, Some(&chain)))
                })
            }
            Some(stored) => Some(stored.number),
            None => Some(self.number(&self.locations(stack, frame), walked?.0, None)),
        }
    }

    /// The hash of a stack, whether it has more frames than are kept, and the method that was
    /// resumed on it.
    #[cold]
    fn sum(&self, words: impl Words, frame: NativeFrame) -> Option<(u64, bool, Option<Resumed>)> {
        let (mut sum, mut resumed) = (Sum::default(), ResumedSearch::default());
        let (known, limit) = (self.known(), self.options.frames);
        let visit = |_, sp, location: CodeLocation| {
            sum.add(location);
            resumed.caller_at(sp);
            resumed.frame(location.part, None);
        };
        let cut = match known.rules.walk(words, frame, limit, Trust::Sure, |_| (), visit) {
            Outcome::Whole => false,
            Outcome::Cut => true,
            Outcome::Lost(_) => return None,
        };
        Some((sum.finish(cut), cut, self.resumed(resumed)))
    }

    fn locations(&self, stack: CurrentStack, frame: NativeFrame) -> Vec<CodeLocation> {
        let mut locations = Vec::new();
        let visit = |_, _, location| locations.push(location);
        self.known().rules.walk(stack, frame, self.options.frames, Trust::Sure, |_| (), visit);
        locations
    }

    /// Lets the runtime walk, and learns from the walk.
    fn asked(&self, stack: Option<CurrentStack>, frame: NativeFrame) -> Result<u32> {
        let unloads = self.unloads.load(Ordering::Acquire);
        let (frames, cut) = self.walked_by_runtime()?;
        let kept = self.kept(&frames, frame);
        if let Some(stack) = stack {
            let names = self.functions.names();
            // If only the rest of the stack determines a frame's place, and not its address alone,
            // no rule can express that.
            let by_address = |at: usize, frame: StackFrame| {
                let location = self.locations.location_of_frame(&self.info, &self.functions, frame);
                kept.get(at).is_none_or(|kept| *kept == location).then_some(location)
            };
            let located: Vec<_> =
                frames.iter().enumerate().map(|(at, frame)| (*frame, by_address(at, *frame))).collect();
            let walk = RuntimeWalk { frames: &located, cut };
            self.learn(
                &Training { info: &self.info, names, shapes: &self.locations.shapes, stack, frame },
                &walk,
                unloads,
            );
        }
        Ok(self.number(&kept, cut, self.chain_of(&kept, &frames).as_ref()))
    }

    /// The chain of awaiters of the method resumed on a stack that the runtime walked.
    fn chain_of(&self, kept: &[CodeLocation], frames: &[StackFrame]) -> Option<Chain> {
        let mut resumed = ResumedSearch::default();
        kept.iter().zip(frames).for_each(|(location, frame)| resumed.frame(location.part, frame.frame_pointer));
        self.resumed(resumed).map(|resumed| self.awaiters.chain(resumed))
    }

    /// The resumed method. None is used while walks are compared, because the awaiters may change
    /// between two walks.
    fn resumed(&self, search: ResumedSearch) -> Option<Resumed> {
        search.found().filter(|_| self.options.walk != Walk::Check)
    }

    fn with_frame_pointers(&self, frame: NativeFrame, visit: impl FnOnce(&[WalkedFrame])) -> Result<u32> {
        let (frames, cut) = self.walked_by_runtime()?;
        let kept = self.kept(&frames, frame);
        let mut next = 0;
        let walked = kept.iter().zip(&frames).map(|(&location, frame)| {
            let position = next + self.inlined.len(location.inlined);
            next = position + 1;
            WalkedFrame { location, position, frame_pointer: frame.frame_pointer }
        });
        let walked: Vec<_> = walked.collect();
        visit(&walked);
        Ok(self.number(&kept, cut, self.chain_of(&kept, &frames).as_ref()))
    }

    /// The frames that the runtime's walk shows, at most one more than are kept, and whether there
    /// is one more.
    fn walked_by_runtime(&self) -> Result<(Vec<StackFrame>, bool)> {
        let mut frames = Vec::new();
        has_frames(self.info.stack_here_with_frame_pointers(|frame| {
            frames.push(frame);
            let is_cut = frames.len() > self.options.frames;
            if is_cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?)?;
        let cut = frames.len() > self.options.frames;
        Ok((frames, cut))
    }

    /// The locations of the kept frames. `start` is the frame that the framework's callback got, or
    /// 0 if it got none.
    fn kept(&self, frames: &[StackFrame], start: NativeFrame) -> Vec<CodeLocation> {
        let kept = &frames[..frames.len().min(self.options.frames)];
        let Some(stack) = CurrentStack::here() else {
            return kept
                .iter()
                .map(|frame| self.locations.location_of_frame(&self.info, &self.functions, *frame))
                .collect();
        };
        // Without a frame, nothing was thrown.
        let may_fail = start.address() != 0;
        let start = if may_fail { start.address() } else { (&raw const stack).addr() };
        self.locations.all((&self.info, &self.functions), (stack, start), kept, may_fail)
    }

    /// Never holds the lock while the runtime is asked.
    fn learn(&self, training: &Training<'_>, seen: &RuntimeWalk<'_>, unloads: u64) {
        let apply = |lesson: RuleUpdate| {
            let mut known = self.known_mut();
            if self.unloads.load(Ordering::Acquire) == unloads {
                lesson.apply(&mut known.rules);
            }
        };
        let kind = |address| self.known().rules.addresses.get(&address).map(|rule| rule.kind);
        apply(training.missing(seen, kind));
        let trial = training.trial(seen, &self.known().rules);
        apply(training.compare(seen, &trial, |end| self.known().rules.ends.contains(&end)));
    }

    /// The number of a stack together with its chain of awaiters. A new stack is stored in the
    /// recording.
    fn number(&self, locations: &[CodeLocation], cut: bool, chain: Option<&Chain>) -> u32 {
        let mut sum = Sum::default();
        locations.iter().for_each(|&location| sum.add(location));
        let sum = chain.map_or(sum.finish(cut), |chain| mixed(sum.finish(cut), chain));
        if let Some(&number) = self.known().numbers.get(&sum) {
            return number;
        }
        let frames = self.frames_of(locations);
        let number = match chain {
            None => self.recorded.number(&frames, cut),
            Some(chain) => self.recorded.number_awaited(&frames, cut, chain),
        };
        // A stack without room is tried again.
        if number != 0 {
            let mut known = self.known_mut();
            if known.numbers.len() >= self.options.remembered {
                known.numbers.clear();
            }
            known.numbers.insert(sum, number);
        }
        number
    }

    /// The frames in their recorded form. Before each method's frame come those of the methods
    /// inlined into it.
    fn frames_of(&self, locations: &[CodeLocation]) -> Vec<RecordedFrame> {
        let mut frames = Vec::with_capacity(locations.len());
        for location in locations {
            self.inlined.add_frames(location.inlined, &mut frames);
            frames.push((*location).into());
        }
        frames
    }
}

impl Comparison {
    fn add(&self, walked: Option<u32>, asked: u32) {
        let counter = match walked {
            None => &self.asked,
            Some(walked) if walked == asked => &self.same,
            Some(walked) => {
                let _ = self.first.set((walked, asked));
                &self.differ
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn in_words(&self) -> String {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (asked, same, differ) = (count(&self.asked), count(&self.same), count(&self.differ));
        let of = |(walked, asked): &(u32, u32)| format!("; the first is stack #{walked}, by snapshot #{asked}");
        let first = self.first.get().map_or_else(String::new, of);
        format!("stacks by frames: {same} as by snapshot, {differ} other, {asked} only by snapshot{first}")
    }
}

/// The helper thread's work for stacks.
struct StackTask {
    table: Box<dyn Task>,
    awaiters: Arc<Awaiters>,
}

impl Task for StackTask {
    fn tick(&mut self, now_ns: u64) {
        self.table.tick(now_ns);
        self.awaiters.look_up_wanted();
    }

    fn write_out(&mut self) {
        self.table.write_out();
    }
}

/// The frame of a method at an await, given the index of its function and the IL offset.
fn at_await((function, il_offset): (u32, u32)) -> CodeLocation {
    CodeLocation { il_offset: Some(il_offset), ..CodeLocation::of_function(function) }
}

/// The hash of a stack together with a chain of awaiters.
fn mixed(sum: u64, chain: &Chain) -> u64 {
    let mut mix = Mix::after(sum);
    mix.write_u64(chain.mixed());
    mix.finish()
}

/// Refuses a walk without frames: stacks are requested where managed code runs, so the walk has
/// failed.
fn has_frames(walk: StackWalk) -> Result<()> {
    match walk {
        StackWalk::NoManagedFrames => Err(Error::new(HResult::FAIL, "DoStackSnapshot")),
        _ => Ok(()),
    }
}
