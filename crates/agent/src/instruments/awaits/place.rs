//! A place where an async method awaits, as the code of the method knows it.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use clr_profiler::{FunctionId, Token};

use crate::services::await_places::{AsyncCode, Await, Awaited};

/// A place where a method awaits. Inserted code contains its address, so it is never freed.
#[derive(Debug)]
pub(super) struct Place {
    /// Offset in the IL of the statement with the await.
    pub(super) il_offset: u32,
    /// Whether the code reports when the awaited operation returns its result.
    pub(super) has_result: bool,
    awaited: Awaited,
    /// Upper half: number of the recording that knows the place. Lower half: number of the stack of
    /// the method alone.
    known: AtomicU64,
    /// The function that was compiled last, and its index in that recording.
    function: AtomicUsize,
    index: AtomicU32,
}

impl Place {
    /// A place that no recording knows yet.
    fn of_await(found: &Await) -> Self {
        Self {
            il_offset: found.il_offset,
            has_result: found.result.is_some(),
            awaited: found.awaited.clone(),
            known: AtomicU64::new(0),
            function: AtomicUsize::new(0),
            index: AtomicU32::new(0),
        }
    }

    /// Address of the place, as inserted code contains it.
    pub(super) fn address(&self) -> u64 {
        (&raw const *self).expose_provenance() as u64
    }

    /// Whether this recording already has a stack for the place.
    #[inline]
    pub(super) fn is_known_to(&self, recording: u32) -> bool {
        (self.known.load(Ordering::Acquire) >> 32) as u32 == recording
    }

    /// The number that this recording has for the stack of only the method at this place; 0 if it
    /// has none.
    pub(super) fn stack_in(&self, recording: u32) -> u32 {
        let known = self.known.load(Ordering::Acquire);
        if (known >> 32) as u32 == recording { known as u32 } else { 0 }
    }

    /// The function that was compiled last, and its index in the recording that knows the place.
    pub(super) fn function(&self) -> (usize, u32) {
        (self.function.load(Ordering::Relaxed), self.index.load(Ordering::Relaxed))
    }

    /// Makes the place known to a recording. `stack` is the number of the stack of only the method
    /// at this place. `function` is the function that was compiled last, with its `index` in the
    /// recording.
    pub(super) fn know(&self, recording: u32, stack: u32, (function, index): (FunctionId, u32)) {
        self.function.store(function.as_raw(), Ordering::Relaxed);
        self.index.store(index, Ordering::Relaxed);
        self.known.store((u64::from(recording) << 32) | u64::from(stack), Ordering::Release);
    }

    /// Name of the awaited operation. `own` gives the names of the module's own methods.
    pub(super) fn awaited(&self, own: impl Fn(Token) -> String) -> String {
        match &self.awaited {
            Awaited::Own(token) => own(*token),
            Awaited::Named(name) => name.clone(),
        }
    }
}

/// The places of a method.
#[derive(Debug)]
pub(super) struct MethodPlaces(Box<[Place]>);

impl MethodPlaces {
    pub(super) fn new(code: &AsyncCode) -> Self {
        Self(code.awaits.iter().map(Place::of_await).collect())
    }

    pub(super) fn places(&self) -> &[Place] {
        &self.0
    }
}
