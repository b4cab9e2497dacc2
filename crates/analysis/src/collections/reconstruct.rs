//! Reconstruction of collections from callbacks and events, in the order of time.

use clrscope_recording::events::{Kind, OwnedRecord, Record, Tag, Value};
use clrscope_recording::model::{EventChunk, Process};
use rustc_hash::FxHashMap;

use super::pauses::Suspension;
use super::{Collection, CollectionKind, GENERATION_NAMES, GenerationSizes, Reason};
use crate::events::{Cursor, Stream};

/// Records of one thread.
pub(super) struct OnThread<'a> {
    started_ns: u64,
    /// Index of the thread in the process.
    thread: u32,
    cursor: Cursor<'a>,
}

impl<'a> OnThread<'a> {
    pub(super) fn new(process: &Process, thread: u32, chunks: Vec<&'a EventChunk>) -> Self {
        Self { started_ns: process.started_ns, thread, cursor: Cursor::new(chunks) }
    }

    /// Applies the next record.
    pub(super) fn step(&mut self, course: &mut Reconstruction<'_>) {
        let Some(record) = self.cursor.record().map(|record| OwnedRecord::from(&record)) else { return };
        let record = record.record();
        course.apply(self.thread, self.started_ns.saturating_add(record.time_ns), &record);
        self.cursor.advance();
    }
}

impl Stream for OnThread<'_> {
    fn time_ns(&mut self) -> Option<u64> {
        let time_ns = self.cursor.record()?.time_ns;
        Some(self.started_ns.saturating_add(time_ns))
    }

    fn unload(&mut self) {
        self.cursor.unload();
    }
}

/// Bits of a collection's mechanisms.
const CONCURRENT: u64 = 1;
const COMPACTING: u64 = 2;

/// The steps of a suspension in the runtime's events.
const SUSPENSION_BEGINS: u64 = 9;
const SUSPENSION_ENDS: u64 = 8;
const RESTART_ENDS: u64 = 3;

/// A thread that asked for a collection.
#[derive(Debug, Clone, Copy)]
struct Trigger {
    time_ns: u64,
    thread: u32,
    stack: u32,
}

/// Collections of a process in the records read so far. A collection is identified by its index in
/// `rows`.
pub(super) struct Reconstruction<'a> {
    process: &'a Process,
    rows: Vec<Collection<'a>>,
    suspension: Option<Suspension>,
    resume_started_ns: u64,
    /// Collection that the last pause belongs to.
    last_paused: Option<usize>,
    /// According to the runtime's events: when the suspension began, and when all threads were
    /// suspended.
    events_say_since: Option<u64>,
    events_say_stopped: Option<u64>,
    trigger: Option<Trigger>,
    blocking: Option<usize>,
    background: Option<usize>,
    last_ended: Option<usize>,
    /// For each thread, the collection whose sizes the thread is reporting.
    reporting: FxHashMap<u32, usize>,
    /// Collections that only a callback has announced so far, and the number of those that only an
    /// event has announced.
    by_callback: Vec<usize>,
    by_event: usize,
}

impl<'a> Reconstruction<'a> {
    pub(super) fn new(process: &'a Process) -> Self {
        Self {
            process,
            rows: Vec::new(),
            suspension: None,
            resume_started_ns: 0,
            last_paused: None,
            events_say_since: None,
            events_say_stopped: None,
            trigger: None,
            blocking: None,
            background: None,
            last_ended: None,
            reporting: FxHashMap::default(),
            by_callback: Vec::new(),
            by_event: 0,
        }
    }

    /// Applies a record of the thread with this index. `time_ns` counts from the start of the run.
    pub(super) fn apply(&mut self, thread: u32, time_ns: u64, record: &Record<'_>) {
        let number = |tag| record.number(tag).unwrap_or(0);
        let stack = || u32::try_from(number(Tag::STACK_NODE)).unwrap_or(0);
        match record.kind {
            Kind::RUNTIME_SUSPEND_STARTED => {
                self.suspension = Some(Suspension::new(time_ns, number(Tag::REASON_CODE), thread, stack()));
            }
            Kind::RUNTIME_SUSPEND_FINISHED => {
                self.suspension.iter_mut().for_each(|suspension| suspension.stopped_ns = Some(time_ns));
            }
            Kind::RUNTIME_SUSPEND_ABORTED => self.suspension = None,
            Kind::RUNTIME_RESUME_STARTED => self.resume_started_ns = time_ns,
            Kind::RUNTIME_RESUME_FINISHED => self.resumed(time_ns),
            Kind::GC_SUSPENSION => self.step_of_suspension(time_ns, record),
            Kind::GC_TRIGGERED => self.trigger = Some(Trigger { time_ns, thread, stack: stack() }),
            Kind::GARBAGE_COLLECTION_STARTED => self.announced(time_ns, record),
            Kind::GC_STARTED => self.started(time_ns, record),
            Kind::GC_ENDED => self.ended(time_ns, number(Tag::NUMBER)),
            Kind::GARBAGE_COLLECTION_FINISHED => self.finished(time_ns),
            Kind::GC_MECHANISMS => self.mechanisms(thread, record),
            Kind::GC_HEAP => self.heap(thread, record),
            Kind::GC_STATISTICS => self.statistics(record),
            Kind::GC_FINALIZERS => {
                let last = self.last_ended.and_then(|at| self.rows.get_mut(at));
                last.into_iter().for_each(|row| row.finalizers += number(Tag::COUNT));
            }
            _ => {}
        }
    }

    /// The threads run again.
    fn resumed(&mut self, time_ns: u64) {
        // A server's collector stops the threads once more, to prepare, before it collects in the
        // background what was asked for.
        let has_collected = self.suspension.as_ref().is_some_and(Suspension::has_collected);
        if has_collected && self.trigger.is_some_and(|trigger| trigger.time_ns < self.resume_started_ns) {
            self.trigger = None;
        }
        self.last_paused = None;
        // Callback and event of a collection come in the same pause.
        self.by_callback.clear();
        self.by_event = 0;
        let Some(suspension) = self.suspension.take().filter(Suspension::is_of_collection) else { return };
        let began = suspension.blocking.or(suspension.background);
        self.last_paused = began.or(self.background);
        let Some(row) = self.last_paused.and_then(|at| self.rows.get_mut(at)) else { return };
        row.suspend_ns += suspension.suspend_ns();
        row.pause_ns += time_ns.saturating_sub(suspension.start_ns);
    }

    fn step_of_suspension(&mut self, time_ns: u64, record: &Record<'_>) {
        match record.number(Tag::STEP) {
            Some(SUSPENSION_BEGINS) => (self.events_say_since, self.events_say_stopped) = (Some(time_ns), None),
            Some(SUSPENSION_ENDS) => self.events_say_stopped = Some(time_ns),
            Some(RESTART_ENDS) => {
                let (since, stopped) = (self.events_say_since.take(), self.events_say_stopped.take());
                let row = self.last_paused.and_then(|at| self.rows.get_mut(at));
                if let (Some(since), Some(row)) = (since, row) {
                    *row.runtime_pause_ns.get_or_insert(0) += time_ns.saturating_sub(since);
                    if let Some(stopped) = stopped {
                        *row.runtime_suspend_ns.get_or_insert(0) += stopped.saturating_sub(since);
                    }
                }
            }
            _ => {}
        }
    }

    /// A callback reports a collection. An event may have reported it before.
    fn announced(&mut self, time_ns: u64, record: &Record<'_>) {
        if self.by_event > 0 {
            self.by_event -= 1;
            return;
        }
        let collected = record.number(Tag::GENERATIONS).unwrap_or(1);
        let reason = Reason::Induced(record.number(Tag::ANSWER) == Some(1));
        let generation = (63 - (collected | 1).leading_zeros()).min(2);
        let row = self.begin(time_ns, generation, reason, CollectionKind::Blocking);
        self.by_callback.push(row);
    }

    /// An event reports a collection. A callback may have reported it before.
    fn started(&mut self, time_ns: u64, record: &Record<'_>) {
        let number = |tag| u32::try_from(record.number(tag).unwrap_or(0)).unwrap_or(u32::MAX);
        let kind = match number(Tag::GC_TYPE) {
            1 => CollectionKind::Background,
            2 => CollectionKind::Foreground,
            _ => CollectionKind::Blocking,
        };
        let (generation, reason) = (number(Tag::GENERATION).min(2), Reason::Known(number(Tag::REASON_CODE)));
        let row = match self.by_callback.pop() {
            Some(row) => {
                let announced = &mut self.rows[row];
                (announced.generation, announced.reason, announced.kind) = (generation, reason, kind);
                self.is_under_way(row, kind);
                row
            }
            None => {
                self.by_event += 1;
                self.begin(time_ns, generation, reason, kind)
            }
        };
        self.rows[row].number = Some(number(Tag::NUMBER));
    }

    /// Adds a collection that was not reported before.
    fn begin(&mut self, time_ns: u64, generation: u32, reason: Reason, kind: CollectionKind) -> usize {
        let row = self.rows.len();
        let suspension = self.suspension.as_ref();
        let of_suspension = suspension.map(|suspension| (suspension.thread, suspension.stack));
        let cause = match self.trigger {
            // Where the thread that asked stops the others itself, its stack stands with the
            // suspension.
            Some(Trigger { thread, stack: 0, .. }) => {
                Some((thread, of_suspension.filter(|(own, _)| *own == thread).map_or(0, |(_, stack)| stack)))
            }
            Some(Trigger { thread, stack, .. }) => Some((thread, stack)),
            None => of_suspension.filter(|(_, stack)| *stack != 0),
        };
        let (thread, stack) = cause.unwrap_or((u32::MAX, 0));
        self.rows.push(Collection {
            process: self.process,
            number: None,
            generation,
            reason,
            kind,
            compacting: None,
            start_ns: suspension.map_or(time_ns, |suspension| suspension.start_ns),
            end_ns: None,
            suspend_ns: 0,
            pause_ns: 0,
            runtime_pause_ns: None,
            runtime_suspend_ns: None,
            generations: Vec::new(),
            promoted_bytes: None,
            allocated_bytes: None,
            pinned_objects: None,
            handles: None,
            finalizers: 0,
            memory_load: None,
            thread: self.process.threads.get(thread as usize),
            stack,
        });
        self.is_under_way(row, kind);
        row
    }

    fn is_under_way(&mut self, row: usize, kind: CollectionKind) {
        let is_background = kind == CollectionKind::Background;
        if is_background {
            self.background = Some(row);
        }
        // One that was meant for the background may turn out to be blocking.
        self.blocking = Some(row);
        if let Some(suspension) = &mut self.suspension {
            if is_background {
                if suspension.blocking == Some(row) {
                    suspension.blocking = None;
                }
                suspension.background.get_or_insert(row);
            } else {
                suspension.blocking.get_or_insert(row);
            }
        }
    }

    fn ended(&mut self, time_ns: u64, number: u64) {
        let is_it = |row: &&Collection<'_>| row.number.map(u64::from) == Some(number);
        let open = [self.blocking, self.background].into_iter().flatten();
        let Some(at) = open.into_iter().find(|at| self.rows.get(*at).filter(is_it).is_some()) else { return };
        self.rows[at].end_ns = Some(time_ns);
        self.last_ended = Some(at);
    }

    /// A callback reports the end of a collection. It is the last collection for which no event has
    /// reported the end.
    fn finished(&mut self, time_ns: u64) {
        let open = self.blocking.filter(|at| self.rows[*at].number.is_none() && self.rows[*at].end_ns.is_none());
        if let Some(at) = open {
            self.rows[at].end_ns = Some(time_ns);
            self.last_ended = Some(at);
        }
    }

    /// A thread reports how a collection works; the collection is about to end or has ended.
    fn mechanisms(&mut self, thread: u32, record: &Record<'_>) {
        let mechanisms = record.number(Tag::MECHANISMS).unwrap_or(0);
        let of = if mechanisms & CONCURRENT != 0 { self.background } else { self.blocking };
        let Some(at) = of else { return };
        self.reporting.insert(thread, at);
        let row = &mut self.rows[at];
        if mechanisms & CONCURRENT == 0 && row.kind == CollectionKind::Background {
            row.kind = CollectionKind::Blocking;
        }
        row.compacting = Some(mechanisms & COMPACTING != 0);
        row.memory_load = record.number(Tag::MEMORY_LOAD);
    }

    fn heap(&mut self, thread: u32, record: &Record<'_>) {
        let Some(row) = self.reporting.get(&thread).and_then(|at| self.rows.get_mut(*at)) else { return };
        row.generations.resize(GENERATION_NAMES.len(), GenerationSizes::default());
        let mut generation = usize::MAX;
        for field in record.fields() {
            let Value::Number(number) = field.value else { continue };
            if field.tag == Tag::GENERATION {
                generation = usize::try_from(number).unwrap_or(usize::MAX);
            }
            let Some(sizes) = row.generations.get_mut(generation) else { continue };
            let sum = match field.tag {
                Tag::BEFORE => &mut sizes.before,
                Tag::AFTER => &mut sizes.after,
                Tag::FREE_BEFORE => &mut sizes.free_before,
                Tag::FREE_AFTER => &mut sizes.free_after,
                _ => continue,
            };
            *sum = sum.saturating_add(number);
        }
    }

    fn statistics(&mut self, record: &Record<'_>) {
        let Some(row) = self.last_ended.and_then(|at| self.rows.get_mut(at)) else { return };
        let promoted = record.fields().filter(|field| field.tag == Tag::PROMOTED);
        let promoted =
            promoted.filter_map(|field| if let Value::Number(bytes) = field.value { Some(bytes) } else { None });
        row.promoted_bytes = Some(promoted.fold(0, u64::saturating_add));
        row.pinned_objects = record.number(Tag::PINNED);
        row.handles = record.number(Tag::HANDLES);
    }

    /// All collections, in the order in which they began. A collection that is under way at the end
    /// of the records has no end.
    pub(super) fn finish(mut self) -> Vec<Collection<'a>> {
        if let Some(suspension) = self.suspension.take() {
            // The program ended while it stood still; for how long is unknown.
            let row = suspension.blocking.or(suspension.background).and_then(|at| self.rows.get_mut(at));
            row.into_iter().for_each(|row| row.suspend_ns += suspension.suspend_ns());
        }
        add_allocations(&mut self.rows);
        self.rows
    }
}

/// Generations in which objects are allocated: generation 0, large and pinned objects.
pub(super) const ALLOCATED_IN: [usize; 3] = [0, 3, 4];

/// Adds the bytes allocated between collections.
fn add_allocations(rows: &mut [Collection<'_>]) {
    let mut left: Option<[u64; ALLOCATED_IN.len()]> = None;
    // A background collection reports the sizes before it long after they were measured.
    for row in rows.iter_mut().filter(|row| row.kind != CollectionKind::Background && !row.generations.is_empty()) {
        let sizes = ALLOCATED_IN.map(|generation| row.generations[generation]);
        let met = sizes.map(|sizes| sizes.before.saturating_sub(sizes.free_before));
        row.allocated_bytes = left.map(|left| met.iter().zip(left).map(|(met, left)| met.saturating_sub(left)).sum());
        left = Some(sizes.map(|sizes| sizes.after.saturating_sub(sizes.free_after)));
    }
}
