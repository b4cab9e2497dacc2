//! The view `flow`: the begin and the end of every call, one thread after another.
//!
//! Rows are made one at a time while the events are walked, because a recording may hold a hundred
//! million events.

mod decode;
pub(crate) mod dictionary;
mod meaning;
mod replay;
mod values;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{EventChunk, Process, Recording, Thread};
use rustc_hash::FxHashMap;

use crate::catalog::Catalog;
use crate::function::FunctionRef;
use crate::limit::{LeftOut, Limit};
use crate::query::{Query, QueryProblem};
use crate::select::{self, SelectedProcess};

use decode::{EventKind, Raw, RawEvents};
pub use meaning::Elements;
use replay::{End, Replay, Step};
pub use values::{Argument, CapturedValues, Field, Passing, Value};

/// Kind of a row of `flow`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlowKind {
    /// A function was entered.
    Enter,
    /// A call returned, or an exception ended it.
    Leave,
    /// A call ended because the function made a tail call.
    TailCall,
}

impl FlowKind {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enter => "enter",
            Self::Leave => "leave",
            Self::TailCall => "tailcall",
        }
    }
}

/// One row of `flow`.
#[derive(Debug, Clone, Copy)]
pub struct FlowRow<'a> {
    /// Kind of the row.
    pub kind: FlowKind,
    /// Whether an exception ended the call, rather than a return. The call then ended at this time
    /// or earlier.
    pub unwound: bool,
    /// The function.
    pub function: FunctionRef<'a>,
    /// Number of the function, unique within its process.
    pub id: u32,
    /// Number of this call among the function's calls on this thread, from 1; 0 at the end of a
    /// call whose begin was not recorded.
    pub call_count: u64,
    /// The thread.
    pub thread: &'a Thread,
    /// Time of the event, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// The recorded time stamp, which does not depend on when or how the recording is opened.
    pub ticks: u64,
    /// Duration of a call that ends in this row, callees included, in nanoseconds; `None` for
    /// begins, and if the begin was not recorded.
    pub duration_ns: Option<u64>,
    /// Number of calls around this one, from 0. If older events were overwritten, the depth counts
    /// from the outermost known call.
    pub depth: u32,
    /// Recorded arguments or results, and the types that they refer to.
    taken: RawValues<'a>,
}

/// The encoded values of a row.
#[derive(Debug, Clone, Copy)]
struct RawValues<'a> {
    types: &'a dictionary::Types,
    function: u32,
    bytes: &'a [u8],
    registers: &'a [u8],
    /// Result that the code of an `async` method set before it ended.
    result: &'a [u8],
}

impl<'a> FlowRow<'a> {
    /// Values of the call: arguments at its begin, results at its regular end; `None` if the
    /// function's values were not requested.
    #[must_use]
    pub fn captured(&self) -> Option<CapturedValues<'a>> {
        let RawValues { types, function, bytes, registers, result } = self.taken;
        match self.kind {
            FlowKind::Enter => types.at_enter(function, bytes, registers),
            FlowKind::Leave if !self.unwound => types.at_leave(function, bytes, registers, result),
            FlowKind::Leave | FlowKind::TailCall => None,
        }
    }
}

/// Calls of one function.
#[derive(Debug, Clone, Copy)]
pub struct FlowFunction<'a> {
    /// The function.
    pub function: FunctionRef<'a>,
    /// Number of the function, as in [`FlowRow::id`].
    pub id: u32,
    /// Number of times that the function was entered.
    pub calls: u64,
}

/// The events of the processes and threads that a query selects.
pub struct FlowLog<'a> {
    selected: Vec<SelectedProcess<'a>>,
    query: Query,
    max_depth: Option<u32>,
    reads_on: bool,
}

impl<'a> FlowLog<'a> {
    /// Selects events. Calls deeper than `max_depth` are left out; `None` keeps all.
    ///
    /// # Errors
    /// When the query selects no process or thread, or `flow` was not recorded.
    pub fn open(recording: &'a Recording, query: &Query, max_depth: Option<u32>) -> Result<Self, QueryProblem> {
        query.without_metric("flow")?;
        if query.sort.is_some() {
            let why = "its rows are ordered by time";
            return Err(QueryProblem::NotAvailable { option: "--sort", view: "flow", why });
        }
        let selected = select::threads(recording, query)?;
        if selected.iter().all(|s| s.process.arenas(instrument::FLOW).next().is_none()) {
            return Err(QueryProblem::NotRecorded { view: "flow", instrument: instrument::FLOW });
        }
        query.all_requests("flow", "its calls are not linked to requests")?;
        Ok(Self { selected, query: query.clone(), max_depth, reads_on: false })
    }

    /// Makes [`walk`](Self::walk) read all events, even beyond the query's limit, so that the calls
    /// by function cover the whole recording.
    #[must_use]
    pub fn reading_on(self) -> Self {
        Self { reads_on: true, ..self }
    }

    /// Visits every row, process by process, thread by thread, ordered by time. Stops at the first
    /// error of `visit`. Returns the calls by function that pass the filters, most called first,
    /// and the number of rows that the query's limit left out. If that number is not exact
    /// ([`LeftOut::is_whole`]), the calls by function are incomplete, too.
    ///
    /// # Errors
    /// The error of `visit`.
    pub fn walk<E>(
        &self,
        mut visit: impl FnMut(&FlowRow<'_>) -> Result<(), E>,
    ) -> Result<(Vec<FlowFunction<'a>>, LeftOut), E> {
        let mut outcome = Ok(());
        let counted = self.walk_while(&mut |row| {
            outcome = visit(row);
            outcome.is_ok()
        });
        outcome.map(|()| counted)
    }

    /// Visits rows as [`walk`](Self::walk) does, until `visit` returns false. Not generic, so it is
    /// compiled and optimised once in this crate.
    fn walk_while(&self, visit: &mut Visit<'_>) -> (Vec<FlowFunction<'a>>, LeftOut) {
        let mut functions = Vec::new();
        let mut limit = Limit::new(self.query.limit);
        if self.reads_on {
            limit = limit.counting_all();
        }
        for selected in &self.selected {
            let walk = ProcessWalk::new(self, selected.process);
            let mut calls = vec![0; walk.catalog.len()];
            let goes_on = selected.threads.iter().all(|thread| walk.thread(thread, &mut calls, &mut limit, visit));
            functions.extend(walk.summary(&calls));
            if !goes_on {
                break;
            }
        }
        functions.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.function.compare(&b.function)));
        (functions, limit.left_out())
    }
}

/// Number of a thread's events that are read ahead to find the call depth before the first event,
/// if a limit ends the walk early.
const LOOK_AHEAD: u64 = 1_000_000;

/// Visits a row. Returns whether it wants more.
type Visit<'v> = dyn FnMut(&FlowRow<'_>) -> bool + 'v;

/// Detects calls of `async` methods that return their result by a tail call. For the program this
/// is the regular end of the method: its source has no tail call.
#[derive(Default)]
struct ReplacedCalls(Option<Raw<'static>>);

impl ReplacedCalls {
    /// Passes an event on; a tail call only once the next event is known.
    fn forward(&mut self, event: &Raw<'_>, next: &mut impl FnMut(&Raw<'_>) -> bool) -> bool {
        match (self.0.take(), event.what) {
            (Some(Raw { what: EventKind::TailCall(function), ticks, sp, .. }), EventKind::Result) if sp == event.sp => {
                let left = Raw { ticks, what: EventKind::Leave(function), sp, values: &[], registers: &[] };
                return next(event) && next(&left);
            }
            (Some(before), _) if !next(&before) => return false,
            _ => {}
        }
        if let EventKind::TailCall(_) = event.what {
            self.0 = Some(Raw { values: &[], registers: &[], ..*event });
            return true;
        }
        next(event)
    }

    /// Passes on the remaining event.
    fn end(&mut self, next: &mut impl FnMut(&Raw<'_>) -> bool) -> bool {
        self.0.take().is_none_or(|last| next(&last))
    }
}

struct ProcessWalk<'l, 'a> {
    log: &'l FlowLog<'a>,
    process: &'a Process,
    catalog: Catalog<'a>,
    wanted: Vec<bool>,
    types: dictionary::Types,
    /// The chunks of each thread, by its id, in their order.
    chunks: FxHashMap<u32, Vec<&'a EventChunk>>,
}

impl<'l, 'a> ProcessWalk<'l, 'a> {
    fn new(log: &'l FlowLog<'a>, process: &'a Process) -> Self {
        let catalog = Catalog::new(process);
        let wanted = catalog.wanted(&log.query);
        let mut chunks: FxHashMap<u32, Vec<&'a EventChunk>> = FxHashMap::default();
        for chunk in process.arenas(instrument::FLOW).flat_map(|arena| &arena.chunks) {
            if let Some(thread) = process.threads.get(chunk.thread as usize) {
                chunks.entry(thread.id).or_default().push(chunk);
            }
        }
        Self { log, process, catalog, wanted, types: dictionary::Types::read(process), chunks }
    }

    /// Calls `take` with the events of a thread one by one, with one chunk in memory at a time,
    /// until `take` has enough.
    fn events(&self, thread: &Thread, mut take: impl FnMut(&Raw<'_>) -> bool) {
        for chunk in self.chunks.get(&thread.id).into_iter().flatten() {
            let bytes = chunk.bytes.load();
            for event in RawEvents::new(&bytes).filter(|event| self.is_known(event)) {
                if !take(&event) {
                    return;
                }
            }
        }
    }

    /// Call depth of the thread before its first event, as far as the events show it. Reads all
    /// events, or the first [`LOOK_AHEAD`] if the walk need not read all.
    fn base(&self, thread: &Thread) -> u32 {
        let mut replay = Replay::new(0);
        let stops = self.log.query.limit.is_some() && !self.log.reads_on;
        let mut left = if stops { LOOK_AHEAD } else { u64::MAX };
        self.events(thread, |event| {
            replay.apply(event, &mut |_, _| ());
            left -= 1;
            left > 0
        });
        replay.unmatched()
    }

    /// Whether the function of an event is in the dictionary. Otherwise the recording is damaged.
    fn is_known(&self, event: &Raw<'_>) -> bool {
        match event.what {
            EventKind::Enter(f) | EventKind::Leave(f) | EventKind::TailCall(f) => {
                (f as usize) < self.process.functions.len()
            }
            _ => true,
        }
    }

    /// Visits the rows of a thread. Returns whether `visit` wanted more after the last row.
    fn thread(&self, thread: &Thread, calls: &mut [u64], limit: &mut Limit, visit: &mut Visit<'_>) -> bool {
        let mut replay = Replay::new(self.base(thread));
        let mut goes_on = true;
        let mut take = |event: &Raw<'_>| {
            let time_ns = self.process.started_ns.saturating_add(self.process.ticks.ns_since_start(event.ticks));
            replay.apply(event, &mut |step, result| {
                let row = self.row(thread, step, (event.ticks, time_ns), event, result);
                if goes_on && self.shows(&row) {
                    calls[row.id as usize] += u64::from(row.kind == FlowKind::Enter);
                    if limit.admit_row() {
                        goes_on = visit(&row);
                    }
                }
            });
            goes_on = goes_on && limit.step();
            goes_on
        };
        let mut replaced = ReplacedCalls::default();
        let mut wants_more = true;
        self.events(thread, |event| {
            wants_more = replaced.forward(event, &mut take);
            wants_more
        });
        wants_more && replaced.end(&mut take)
    }

    fn row<'r>(
        &'r self,
        thread: &'r Thread,
        step: Step,
        (ticks, time_ns): (u64, u64),
        event: &Raw<'r>,
        result: &'r [u8],
    ) -> FlowRow<'r> {
        let (kind, unwound, function, depth, call_count, since) = match step {
            Step::Begin { function, depth, call } => (FlowKind::Enter, false, function, depth, call, None),
            Step::End { function, depth, call, how, since } => {
                let kind = if how == End::TailCall { FlowKind::TailCall } else { FlowKind::Leave };
                (kind, how == End::Unwound, function, depth, call, since)
            }
        };
        let clock = &self.process.ticks;
        let duration_ns = since.map(|since| clock.ns_since_start(ticks).saturating_sub(clock.ns_since_start(since)));
        let id = self.catalog.slot(function);
        let (bytes, registers) = (event.values, event.registers);
        let taken = RawValues { types: &self.types, function, bytes, registers, result };
        let function = self.catalog.function(id);
        FlowRow { kind, unwound, function, id, call_count, thread, time_ns, ticks, duration_ns, depth, taken }
    }

    fn shows(&self, row: &FlowRow<'_>) -> bool {
        let query = &self.log.query;
        self.wanted.get(row.id as usize).copied().unwrap_or(true)
            && self.log.max_depth.is_none_or(|most| row.depth <= most)
            && query.wants_time(self.process, row.time_ns)
    }

    fn summary(&self, calls: &[u64]) -> impl Iterator<Item = FlowFunction<'a>> {
        let called = calls.iter().enumerate().filter(|(_, calls)| **calls > 0);
        called.map(|(slot, &calls)| FlowFunction {
            function: self.catalog.function(slot as u32),
            id: slot as u32,
            calls,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replayed(events: &[(EventKind, u32, &'static [u8])]) -> Vec<(Step, Vec<u8>)> {
        let mut replay = Replay::new(0);
        let mut found = Vec::new();
        let mut take = |event: &Raw<'_>| {
            replay.apply(event, &mut |step, result| found.push((step, result.to_vec())));
            true
        };
        let mut replaced = ReplacedCalls::default();
        for &(what, sp, values) in events {
            assert!(replaced.forward(&Raw { ticks: 0, what, sp, values, registers: &[] }, &mut take));
        }
        assert!(replaced.end(&mut take));
        found
    }

    #[test]
    fn results_belong_to_the_code_that_set_them() {
        let found = replayed(&[
            (EventKind::Enter(1), 900, &[]),
            (EventKind::Enter(2), 800, &[]),
            (EventKind::Result, 800, &[7]),
            (EventKind::Enter(3), 700, &[]),
            (EventKind::Leave(3), 700, &[]),
            (EventKind::Leave(2), 800, &[]),
            (EventKind::Leave(1), 900, &[]),
        ]);
        let ends: Vec<_> = found.iter().filter(|(step, _)| matches!(step, Step::End { .. })).collect();
        let results: Vec<&[u8]> = ends.iter().map(|(_, result)| result.as_slice()).collect();
        assert_eq!(results, [&[][..], &[7], &[]], "{found:?}");
    }

    #[test]
    fn code_that_is_replaced_by_the_call_that_sets_its_result_has_ended_in_order() {
        let found = replayed(&[
            (EventKind::Enter(1), 900, &[]),
            (EventKind::TailCall(1), 900, &[]),
            (EventKind::Result, 900, &[7]),
            (EventKind::Enter(2), 900, &[]),
            (EventKind::TailCall(2), 900, &[]),
            (EventKind::Enter(3), 900, &[]),
            (EventKind::TailCall(3), 900, &[]),
        ]);
        let ends: Vec<_> = found
            .iter()
            .filter_map(|(step, result)| match step {
                Step::End { function, how, .. } => Some((*function, *how, result.as_slice())),
                Step::Begin { .. } => None,
            })
            .collect();
        assert_eq!(ends, [(1, End::Leave, &[7][..]), (2, End::TailCall, &[]), (3, End::TailCall, &[])]);
    }
}
