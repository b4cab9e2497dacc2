//! The view `gc`: garbage collections, and facts that follow from them.
//!
//! Two sources are merged: the callbacks about suspensions and collections, and the runtime's own
//! events. A pause lasts from the moment when the runtime begins to suspend the threads until they
//! run again. A pause belongs to the collection that began during the pause. If both a background
//! and a blocking collection began during the pause, it belongs to the blocking one. If none began,
//! the pause belongs to the background collection under way. So each pause of the program counts
//! once, in one collection.
//!
//! The bytes allocated between two collections are the heap size before the second collection minus
//! the heap size after the first. So a small allocation may appear only with the next collection.

mod facts;
mod pauses;
mod reasons;
mod reconstruct;
mod survivors;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{EventArena, Process, Recording, StackFrame, Thread};

use crate::code_place::CodePlace;
use crate::events::in_turns;
use crate::exceptions::CallStack;
use crate::function::FunctionRef;
use crate::query::{Query, QueryProblem, Sort};
use crate::select::{self, SelectedProcess};

pub use facts::{CollectionFacts, Growth, collection_facts};
pub use reasons::Reason;
pub use survivors::{SurvivorQuery, SurvivorRow, survivors};

/// Names of the generations, in the order of the runtime's numbers.
pub const GENERATION_NAMES: [&str; 5] = ["gen0", "gen1", "gen2", "loh", "poh"];

/// How a collection runs relative to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CollectionKind {
    /// The program is paused until the end of the collection.
    #[default]
    Blocking,
    /// The program runs during most of the collection.
    Background,
    /// A blocking collection during a background collection.
    Foreground,
}

impl CollectionKind {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Background => "background",
            Self::Foreground => "foreground",
        }
    }
}

/// Sizes of a generation over all heaps, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GenerationSizes {
    /// Bytes before the collection.
    pub before: u64,
    /// Bytes after the collection.
    pub after: u64,
    /// Free bytes before the collection.
    pub free_before: u64,
    /// Free bytes after the collection.
    pub free_after: u64,
}

/// One collection.
#[derive(Debug, Clone)]
pub struct Collection<'a> {
    /// The process.
    pub process: &'a Process,
    /// Number of the collection, counted by the runtime from the program's start; `None` if only
    /// callbacks reported the collection.
    pub number: Option<u32>,
    /// The highest generation that was collected: 0, 1 or 2.
    pub generation: u32,
    /// Reason of the collection.
    pub reason: Reason,
    /// How the collection ran relative to the program.
    pub kind: CollectionKind,
    /// Whether the collection compacted; `None` if that is not known.
    pub compacting: Option<bool>,
    /// Start of the first pause or of the collection itself, whichever is earlier, in nanoseconds
    /// since the start of the run.
    pub start_ns: u64,
    /// End of the collection, in nanoseconds since the start of the run; `None` if the end was not
    /// recorded.
    pub end_ns: Option<u64>,
    /// Time in the pauses until all threads were suspended, in nanoseconds.
    pub suspend_ns: u64,
    /// Time that the program was paused, in nanoseconds.
    pub pause_ns: u64,
    /// Pause time according to the runtime's own events; `None` if they were not recorded.
    pub runtime_pause_ns: Option<u64>,
    /// The part of that pause time until all threads were suspended, according to the runtime's own
    /// events; `None` if they were not recorded.
    pub runtime_suspend_ns: Option<u64>,
    /// Sizes by generation, as in [`GENERATION_NAMES`]; empty if they are not known.
    pub generations: Vec<GenerationSizes>,
    /// Bytes that survived in the collected generations.
    pub promoted_bytes: Option<u64>,
    /// Bytes allocated since the previous collection.
    pub allocated_bytes: Option<u64>,
    /// Number of pinned objects.
    pub pinned_objects: Option<u64>,
    /// Number of GC handles.
    pub handles: Option<u64>,
    /// Number of finalizers that ran between this collection and the next.
    pub finalizers: u64,
    /// Part of the machine's memory that was in use, in percent.
    pub memory_load: Option<u64>,
    /// The thread that triggered the collection.
    pub thread: Option<&'a Thread>,
    /// Number of that thread's stack in the table of stacks.
    stack: u32,
}

impl<'a> Collection<'a> {
    /// Bytes of all generations before the collection.
    #[must_use]
    pub fn before_bytes(&self) -> Option<u64> {
        self.sum(|sizes| sizes.before)
    }

    /// Bytes of all generations after the collection.
    #[must_use]
    pub fn after_bytes(&self) -> Option<u64> {
        self.sum(|sizes| sizes.after)
    }

    /// Bytes of live objects in all generations after the collection, without free space.
    #[must_use]
    pub fn live_bytes(&self) -> Option<u64> {
        self.sum(|sizes| sizes.after.saturating_sub(sizes.free_after))
    }

    fn sum(&self, of: impl Fn(&GenerationSizes) -> u64) -> Option<u64> {
        let sum = || self.generations.iter().fold(0_u64, |sum, sizes| sum.saturating_add(of(sizes)));
        (!self.generations.is_empty()).then(sum)
    }

    /// Functions on the stack of the thread that triggered the collection, innermost first. Each
    /// comes with the offset in its IL.
    pub fn stack(&self) -> impl Iterator<Item = (FunctionRef<'a>, Option<u32>)> + use<'a> {
        let process = self.process;
        process.stacks.frames(self.stack).map(move |frame| {
            let (function, il_offset) = match frame {
                StackFrame::Method { function, il_offset, .. } => (function, il_offset),
                _ => (0, None),
            };
            let known = process.functions.get(function as usize).filter(|_| function != 0);
            (FunctionRef::new(process, known), il_offset)
        })
    }

    /// The innermost own function on the stack that caused the collection, with the place in its
    /// code.
    fn own_cause(&self) -> Option<(FunctionRef<'a>, CodePlace<'a>)> {
        CallStack::new(self.process, &self.process.stacks, self.stack).innermost_own()
    }

    /// The function that caused the collection: the innermost own function on the stack, or the
    /// innermost function if there is no own function.
    #[must_use]
    pub fn cause(&self) -> Option<FunctionRef<'a>> {
        let innermost = || self.stack().next();
        self.own_cause().map(|(function, _)| function).or_else(|| innermost().map(|(function, _)| function))
    }
}

/// Collections of the processes that a query selects.
///
/// # Errors
/// When the query selects no process or thread, or `gc` was not recorded.
pub fn collections<'a>(recording: &'a Recording, query: &Query) -> Result<Vec<Collection<'a>>, QueryProblem> {
    query.without_metric("gc")?;
    let (mut rows, mut is_recorded) = (Vec::new(), false);
    for SelectedProcess { process, .. } in select::threads(recording, query)? {
        for arena in process.arenas(instrument::GC) {
            is_recorded = true;
            rows.extend(of_arena(process, arena).into_iter().filter(|row| wants(query, row)));
        }
    }
    if !is_recorded {
        return Err(QueryProblem::NotRecorded { view: "gc", instrument: instrument::GC });
    }
    match query.sort {
        Some(Sort::Suspended) => rows.sort_by_key(|row| std::cmp::Reverse(row.suspend_ns)),
        Some(Sort::Exclusive | Sort::Inclusive) => rows.sort_by_key(|row| std::cmp::Reverse(row.pause_ns)),
        _ => rows.sort_by_key(|row| row.start_ns),
    }
    Ok(rows)
}

fn of_arena<'a>(process: &'a Process, arena: &EventArena) -> Vec<Collection<'a>> {
    let mut streams: Vec<_> = arena
        .by_thread()
        .into_iter()
        .map(|(thread, chunks)| reconstruct::OnThread::new(process, thread, chunks))
        .collect();
    let mut course = reconstruct::Reconstruction::new(process);
    in_turns(&mut streams, |stream| {
        stream.step(&mut course);
        true
    });
    course.finish()
}

fn wants(query: &Query, row: &Collection<'_>) -> bool {
    let last_ns = row.end_ns.unwrap_or(row.start_ns).max(row.start_ns.saturating_add(row.pause_ns));
    let in_time = query.wanted_ns(row.process, row.start_ns, last_ns).is_some();
    let is_named = |function: FunctionRef<'_>| query.wants_function(function.module(), function.function);
    let of_function = !query.filters_functions() || row.stack().any(|(function, _)| is_named(function));
    in_time && query.wants_thread_if_known(row.thread) && of_function
}
