//! The stacks at throws, each stored once and then named by its number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher as _};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use clr_profiler::{NativeFrame, OwnStack, ProfilerInfo, Result, StackFrame};
use clrscope_recording::events::{Encoder, Kind, Tag, Thing};

use super::again::Again;
use super::arguments;
use super::learn::{Learner, Seen};
use super::places::{Place, Places};
use super::rules::{MOST, Mix, Noting, Outcome, Rules, Trust};
use crate::services::dictionary::Dictionary;
use crate::services::event_log::EventLog;
use crate::services::functions::Functions;

/// How stacks are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Walk {
    /// By what is known of the frames, and by the runtime where that is not enough.
    Frames,
    /// Always by the runtime.
    Snapshot,
    /// Both ways, and they are compared.
    Check,
}

/// The stacks seen so far.
pub(super) struct Stacks {
    limit: usize,
    walk: Walk,
    /// Frame pointers are wanted, which only the runtime can tell.
    with_arguments: bool,
    known: RwLock<Known>,
    again: Again,
    /// Counts unloads: what was found out before one is not believed after it. Changed with `known` locked.
    unloads: AtomicU64,
    last: AtomicU32,
    check: Check,
}

/// What [`Walk::Check`] found.
#[derive(Default)]
struct Check {
    /// Stacks that could only be had from the runtime.
    asked: AtomicU64,
    same: AtomicU64,
    differ: AtomicU64,
}

#[derive(Default)]
struct Known {
    rules: Rules,
    /// By what [`Sum`] says. Numbers name places, which no unload changes.
    numbers: HashMap<u64, u32, BuildHasherDefault<Mix>>,
}

/// What the instrument has that a stack is found with.
pub(super) struct Finder<'a> {
    pub(super) info: &'a ProfilerInfo,
    pub(super) names: &'a Dictionary,
    pub(super) functions: &'a Functions,
    pub(super) places: &'a Places,
    pub(super) log: &'a EventLog,
}

/// Adds up the places of a stack.
#[derive(Default, Clone, Copy)]
struct Sum(Mix);

impl Sum {
    #[inline]
    fn add(&mut self, place: Place) {
        self.0.write_u64(u64::from(place.function) << 32 | u64::from(place.il_offset.map_or(0, |offset| offset + 1)));
    }

    fn finish(mut self, cut: bool) -> u64 {
        self.0.write_u64(cut.into());
        self.0.finish()
    }
}

impl Stacks {
    /// # Errors
    /// When the process has no thread key left.
    pub(super) fn new(limit: usize, walk: Walk, with_arguments: bool) -> std::io::Result<Self> {
        let (known, again) = (RwLock::default(), Again::new()?);
        let (unloads, last, check) = (AtomicU64::new(0), AtomicU32::new(0), Check::default());
        Ok(Self { limit, walk, with_arguments, known, again, unloads, last, check })
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn known_mut(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Code is gone; other code may come to lie at its addresses.
    pub(super) fn unloaded(&self) {
        let mut known = self.known_mut();
        known.rules.clear();
        self.unloads.fetch_add(1, Ordering::AcqRel);
    }

    /// What the comparison has found, in words, where one was asked for.
    pub(super) fn checked(&self) -> Option<String> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Check { asked, same, differ } = &self.check;
        let (asked, same, differ) = (count(asked), count(same), count(differ));
        (self.walk == Walk::Check).then(|| {
            format!("exceptions: stacks by frames: {same} as by snapshot, {differ} other, {asked} only by snapshot")
        })
    }

    /// The number of the calling thread's stack; 0 for none.
    ///
    /// # Errors
    /// What the runtime answers when it is asked.
    pub(super) fn here(&self, finder: &Finder<'_>, frame: NativeFrame) -> Result<u32> {
        if self.limit == 0 {
            return Ok(0);
        }
        let stack = if self.walk == Walk::Snapshot { None } else { OwnStack::here() };
        let walked = stack.filter(|_| !self.with_arguments).and_then(|stack| self.walked(finder, stack, frame));
        if self.walk == Walk::Check {
            let asked = self.asked(finder, stack, frame)?;
            self.check.compare(walked, asked);
            return Ok(asked);
        }
        walked.map_or_else(|| self.asked(finder, stack, frame), Ok)
    }

    /// By what is known of the frames.
    fn walked(&self, finder: &Finder<'_>, stack: OwnStack, frame: NativeFrame) -> Option<u32> {
        let unloads = self.unloads.load(Ordering::Acquire);
        let mut cut = None;
        let stored = self.again.number(stack, frame, unloads, |words| {
            let (sum, was_cut) = self.sum(words, frame)?;
            cut = Some(was_cut);
            self.known().numbers.get(&sum).copied()
        });
        stored.or_else(|| Some(self.number(finder, &self.places(stack, frame), cut?)))
    }

    /// What a stack adds up to, and whether there are more frames than are kept.
    #[cold]
    fn sum(&self, words: Noting<'_>, frame: NativeFrame) -> Option<(u64, bool)> {
        let mut sum = Sum::default();
        let known = self.known();
        let outcome = known.rules.walk(words, frame, self.limit, Trust::Sure, |_| (), |_, _, place| sum.add(place));
        let cut = match outcome {
            Outcome::Whole => false,
            Outcome::Cut => true,
            Outcome::Lost(_) => return None,
        };
        Some((sum.finish(cut), cut))
    }

    fn places(&self, stack: OwnStack, frame: NativeFrame) -> Vec<Place> {
        let mut places = Vec::new();
        self.known().rules.walk(stack, frame, self.limit, Trust::Sure, |_| (), |_, _, place| places.push(place));
        places
    }

    /// By the runtime, and learns from it.
    fn asked(&self, finder: &Finder<'_>, stack: Option<OwnStack>, frame: NativeFrame) -> Result<u32> {
        let unloads = self.unloads.load(Ordering::Acquire);
        let mut frames: Vec<(StackFrame, Place)> = Vec::new();
        let mut cut = false;
        // One more than is kept, to know that there are more.
        let visit = |frame| {
            frames.push((frame, finder.places.of(finder.info, finder.names, frame)));
            cut = frames.len() > self.limit;
            if cut { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        if self.with_arguments {
            finder.info.stack_here_with_frame_pointers(visit)?;
            write_arguments(finder.log, &frames[..frames.len().min(self.limit)]);
        } else {
            finder.info.stack_here(visit)?;
        }
        if let Some(stack) = stack.filter(|_| !self.with_arguments) {
            let names = finder.functions.names();
            self.learn(&Learner { info: finder.info, names, stack, frame }, &Seen { frames: &frames, cut }, unloads);
        }
        let places: Vec<Place> = frames.iter().take(self.limit).map(|(_, place)| *place).collect();
        Ok(self.number(finder, &places, cut))
    }

    /// Never holds the lock while the runtime is asked.
    fn learn(&self, learner: &Learner<'_>, seen: &Seen<'_>, unloads: u64) {
        let apply = |lesson: super::learn::Lesson| {
            let mut known = self.known_mut();
            if self.unloads.load(Ordering::Acquire) == unloads {
                lesson.apply(&mut known.rules);
            }
        };
        let what = |address| self.known().rules.addresses.get(&address).map(|rule| rule.what);
        apply(learner.missing(seen, what));
        let trial = learner.trial(seen, &self.known().rules);
        apply(learner.compare(seen, &trial, |end| self.known().rules.ends.contains(&end)));
    }

    /// The number of a stack, stored in the recording when it is new.
    fn number(&self, finder: &Finder<'_>, places: &[Place], cut: bool) -> u32 {
        let mut sum = Sum::default();
        places.iter().for_each(|&place| sum.add(place));
        let sum = sum.finish(cut);
        if let Some(&number) = self.known().numbers.get(&sum) {
            return number;
        }
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let stored = finder.log.write_with(None, Kind::EXCEPTION_STACK, |encoder| {
            encoder.number(Tag::STACK, number.into());
            put(encoder, places, cut);
        });
        if stored {
            let mut known = self.known_mut();
            if known.numbers.len() >= MOST {
                known.numbers.clear();
            }
            known.numbers.insert(sum, number);
        }
        number
    }
}

impl Check {
    fn compare(&self, walked: Option<u32>, asked: u32) {
        let counter = match walked {
            None => &self.asked,
            Some(walked) if walked == asked => &self.same,
            Some(_) => &self.differ,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// The arguments of each frame that has some, before the throw they belong to.
fn write_arguments(log: &EventLog, frames: &[(StackFrame, Place)]) {
    for (position, (frame, place)) in frames.iter().enumerate() {
        let Some(frame_pointer) = frame.frame_pointer else { continue };
        arguments::of_frame(place.function, frame_pointer, |bytes| {
            log.write_with(None, Kind::EXCEPTION_ARGUMENTS, |encoder| {
                encoder.number(Tag::POSITION, position as u64);
                encoder.thing(Tag::FUNCTION, Thing { id: 0, index: place.function }).opaque(Tag::ARGUMENTS, bytes);
            })
        });
    }
}

fn put(encoder: &mut Encoder<'_>, places: &[Place], cut: bool) {
    for place in places {
        encoder.thing(Tag::FRAME, Thing { id: 0, index: place.function });
        if let Some(offset) = place.il_offset {
            encoder.number(Tag::IL_OFFSET, offset.into());
        }
    }
    if cut {
        encoder.number(Tag::FRAMES_CUT, 1);
    }
}
