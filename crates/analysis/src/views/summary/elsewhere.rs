//! Time that threads did not spend on the work of functions, by kind.

use std::cmp::Reverse;

use clrscope_recording::events::{Kind, Records, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{FunctionKind, GC_NAME, JIT_NAME, Recording};

use super::finding::FindingPlace;
use super::{OwnSums, OwnWait};
use crate::exceptions::{ExceptionLog, ExceptionQuery};
use crate::function::FunctionRef;
use crate::query::Query;
use crate::select;
use crate::views::conditions::Conditions;
use crate::views::rows::FunctionRow;
use crate::waits::WaitKind;

/// Kind of the time in a row of [`Elsewhere`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElsewhereKind {
    /// Threads waited.
    Wait(WaitKind),
    /// The runtime compiled methods.
    Compilation,
    /// Threads collected garbage.
    Collecting,
    /// The runtime had stopped threads, mostly to collect.
    Suspension,
    /// Garbage collections, if `events` recorded them.
    Collections,
    /// Exceptions, if `exceptions` recorded them.
    Exceptions,
    /// Exceptions, if only the calls of their constructors were recorded.
    ExceptionsMade,
}

impl ElsewhereKind {
    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Wait(kind) => kind.name(),
            Self::Compilation => "compilation",
            Self::Collecting => "collecting",
            Self::Suspension => "suspension",
            Self::Collections => "collections",
            Self::Exceptions => "exceptions",
            Self::ExceptionsMade => "exceptions_made",
        }
    }

    /// The title for display.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Wait(kind) => kind.title(),
            Self::Compilation => "compiling methods",
            Self::Collecting => "collecting garbage",
            Self::Suspension => "stopped by the runtime",
            Self::Collections => "garbage collections",
            Self::Exceptions => "exceptions",
            Self::ExceptionsMade => "exceptions made",
        }
    }
}

/// The exceptions with the most frequent combination of type and location.
#[derive(Debug, Clone)]
pub struct FrequentExceptions<'a> {
    /// Type of the exception; empty if only calls of constructors were recorded.
    pub type_name: Box<str>,
    /// Number of exceptions of that type thrown there.
    pub count: u64,
    /// The innermost own function on the stacks, or the throwing function if there is no own one.
    pub place: Option<FunctionRef<'a>>,
    /// Where the function's code threw the first exception; `None` if the function is not the
    /// program's own.
    pub at: Option<FindingPlace>,
}

/// Time that threads did not spend on the work of functions.
#[derive(Debug, Clone)]
pub struct Elsewhere<'a> {
    /// Kind of the time.
    pub kind: ElsewhereKind,
    /// Thread time, summed over all threads; `None` if not measured.
    pub time_ns: Option<u64>,
    /// CPU time; `None` if not measured.
    pub cpu_ns: Option<u64>,
    /// Number of occurrences; `None` if not counted.
    pub count: Option<u64>,
    /// The own function with the largest part of the time, and that part.
    pub most: Option<(FunctionRef<'a>, u64)>,
    /// Number of collections by the highest collected generation: 0, 1, and 2 or above.
    pub generations: [u64; 3],
    /// The most frequent exceptions by type and location. If only calls of constructors were
    /// recorded, the own function below which most exceptions were created.
    pub exceptions: Option<FrequentExceptions<'a>>,
}

impl Elsewhere<'_> {
    const fn new(kind: ElsewhereKind) -> Self {
        Self { kind, time_ns: None, cpu_ns: None, count: None, most: None, generations: [0; 3], exceptions: None }
    }
}

/// Returns the rows; `with_waits` includes the waits of threads.
pub(super) fn elsewhere<'a>(
    recording: &'a Recording,
    query: &Query,
    rows: &[FunctionRow<'a>],
    below: &OwnSums<'a>,
    with_waits: bool,
    conditions: &Conditions<'a>,
) -> Vec<Elsewhere<'a>> {
    let mut found = Vec::new();
    if !query.filters_functions() {
        let kinds = if with_waits { WaitKind::ALL } else { &[] };
        found.extend(kinds.iter().filter_map(|&kind| waited(kind, &below.waits)));
        found.extend(of_runtime(ElsewhereKind::Compilation, JIT_NAME, rows));
        found.extend(of_runtime(ElsewhereKind::Collecting, GC_NAME, rows));
        let suspended_ns = conditions.totals.suspended_ns;
        let suspension = Elsewhere { time_ns: Some(suspended_ns), ..Elsewhere::new(ElsewhereKind::Suspension) };
        found.extend((suspended_ns > 0).then_some(suspension));
        found.extend(collections(recording, query));
    }
    let thrown = thrown(recording, query);
    let made = || made(&below.exceptions).filter(|_| !query.filters_functions());
    found.extend(thrown.or_else(made));
    found
}

/// One row with all waits of a kind.
fn waited<'a>(kind: WaitKind, waits: &[OwnWait<'a>]) -> Option<Elsewhere<'a>> {
    let all = || waits.iter().filter(|wait| wait.kind == kind);
    let ns = all().fold(0_u64, |sum, wait| sum.saturating_add(wait.ns));
    // Waits of idle threads are not caused by a function's code.
    let named = all().filter(|_| kind != WaitKind::Idle);
    let most = named.filter_map(|wait| Some((wait.function?, wait.ns)));
    let most = most.min_by(|a, b| Reverse(a.1).cmp(&Reverse(b.1)).then_with(|| a.0.compare(&b.0)));
    let row = Elsewhere { time_ns: Some(ns), most, ..Elsewhere::new(ElsewhereKind::Wait(kind)) };
    (ns > 0).then_some(row)
}

/// Work of the runtime that the recording contains as a pseudo-function.
fn of_runtime<'a>(kind: ElsewhereKind, name: &str, rows: &[FunctionRow<'a>]) -> Option<Elsewhere<'a>> {
    let is_it = |row: &&FunctionRow<'_>| row.function.kind() == FunctionKind::Runtime && row.function.name() == name;
    let found = || rows.iter().filter(is_it);
    let count = found().fold(0_u64, |sum, row| sum.saturating_add(row.times.calls));
    let time_ns = Some(found().fold(0_u64, |sum, row| sum.saturating_add(row.times.exclusive_ns)));
    let cpu_ns = found().filter_map(|row| row.times.exclusive_cpu_ns).reduce(u64::saturating_add);
    (count > 0).then_some(Elsewhere { time_ns, cpu_ns, count: Some(count), ..Elsewhere::new(kind) })
}

/// Collections among the callbacks that `events` recorded.
fn collections<'a>(recording: &Recording, query: &Query) -> Option<Elsewhere<'a>> {
    let mut generations = [0_u64; 3];
    for selected in select::threads(recording, query).ok()? {
        for chunk in selected.process.arenas(instrument::EVENTS).flat_map(|arena| &arena.chunks) {
            let bytes = chunk.bytes.load();
            let records = Records::new(&bytes);
            for record in records.filter(|record| record.kind == Kind::GARBAGE_COLLECTION_STARTED) {
                let collected = record.number(Tag::GENERATIONS).unwrap_or(1);
                let highest = (63 - (collected | 1).leading_zeros()).min(2);
                generations[highest as usize] += 1;
            }
        }
    }
    let count: u64 = generations.iter().sum();
    let row = Elsewhere { count: Some(count), generations, ..Elsewhere::new(ElsewhereKind::Collections) };
    (count > 0).then_some(row)
}

/// The exceptions, if they were recorded.
fn thrown<'a>(recording: &'a Recording, query: &Query) -> Option<Elsewhere<'a>> {
    let query = Query { limit: None, sort: None, raw: false, ..query.clone() };
    let log = ExceptionLog::open(recording, &ExceptionQuery { query, types: Vec::new() }).ok()?;
    let (groups, _) = log.groups();
    let count = groups.iter().fold(0_u64, |sum, group| sum.saturating_add(group.count));
    let most = groups.first().map(|group| FrequentExceptions {
        type_name: group.type_name.into(),
        count: group.count,
        place: group.own_place.or(group.place).and_then(|place| of_recording(recording, &place)),
        at: group.own_code.map(|place| FindingPlace::new(place, ", first at ")),
    });
    let row = Elsewhere { count: Some(count), exceptions: most, ..Elsewhere::new(ElsewhereKind::Exceptions) };
    (count > 0).then_some(row)
}

/// The exceptions, counted by calls of their constructors.
fn made<'a>(below: &[(Option<FunctionRef<'a>>, u64)]) -> Option<Elsewhere<'a>> {
    let count = below.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    let named = below.iter().filter_map(|(function, count)| Some((function.as_ref()?, *count)));
    let most = named.min_by(|a, b| Reverse(a.1).cmp(&Reverse(b.1)).then_with(|| a.0.compare(b.0)));
    let seen = |(place, count): (&FunctionRef<'a>, u64)| FrequentExceptions {
        type_name: Box::default(),
        count,
        place: Some(*place),
        at: None,
    };
    let exceptions = most.map(seen);
    let row = Elsewhere { count: Some(count), exceptions, ..Elsewhere::new(ElsewhereKind::ExceptionsMade) };
    (count > 0).then_some(row)
}

/// Finds a function again in the recording. The recording outlives the log that the function came
/// from.
fn of_recording<'a>(recording: &'a Recording, place: &FunctionRef<'_>) -> Option<FunctionRef<'a>> {
    recording.processes.iter().filter(|process| process.pid == place.pid).find_map(|process| {
        let function = process.functions.iter().find(|function| std::ptr::eq(*function, place.function))?;
        Some(FunctionRef::new(process, Some(function)))
    })
}
