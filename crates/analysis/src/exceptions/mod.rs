//! The view `exceptions`: each exception in detail, and sums by type and throwing method.
//!
//! Limits: the stack is the one that the runtime's own walk reports. On it, a function whose catch
//! or finally block runs appears once, at the place where its `try` block was left. The agent
//! reports whether an object was thrown before. The earlier throw is known only if the object still
//! was at the same address.

mod metric;
mod reconstruct;
mod stack;
mod timeline;

use std::collections::BTreeMap;

use clrscope_contract::request::Glob;
use clrscope_recording::events::{Record, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{EventArena, Process, Recording, Thread};

use crate::code_place::CodePlace;
use crate::events::{EventNames, in_turns};
use crate::flow::CapturedValues;
use crate::flow::dictionary::Types;
use crate::function::{FunctionRef, is_own};
use crate::limit::{LeftOut, Limit};
use crate::query::{Query, QueryProblem, Sort};
use crate::select::{self, SelectedProcess};
use timeline::Timeline;

pub use metric::EXCEPTIONS;
pub use stack::CallStack;

/// Selection of exceptions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExceptionQuery {
    /// The filters that all views share. `functions` and `modules` select exceptions with a
    /// matching function on the stack at the throw, or as the catcher.
    pub query: Query,
    /// Only types that match one of these patterns; empty means all.
    pub types: Vec<Glob>,
}

/// A frame of the stack at a throw.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The function.
    pub function: FunctionRef<'a>,
    /// Offset in the function's IL, if the runtime reported it.
    pub il_offset: Option<u32>,
    /// Location in the function's code, from which the source line is found.
    pub place: CodePlace<'a>,
    /// Recorded arguments of the call; [`ExceptionLog::captured`] decodes them.
    arguments: Option<&'a Arguments>,
}

/// Encoded arguments of a call.
#[derive(Debug, Clone)]
struct Arguments {
    function: u32,
    bytes: Box<[u8]>,
}

/// An exception filter that ran in the first pass.
#[derive(Debug, Clone, Copy)]
pub struct Filter<'a> {
    /// The function that contains the filter.
    pub function: FunctionRef<'a>,
    /// Whether the filter accepted the exception; `None` if the program ended before the filter
    /// returned.
    pub accepted: Option<bool>,
}

/// The inner exception of an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inner<'a> {
    /// Type of the exception.
    pub type_name: &'a str,
    /// Number of the inner exception's throw; `None` if that throw was not recorded or the object
    /// had moved since.
    pub number: Option<u32>,
}

/// One throw and its outcome.
#[derive(Debug, Clone)]
pub struct Exception<'a> {
    /// The process.
    pub process: &'a Process,
    /// The thread that threw.
    pub thread: Option<&'a Thread>,
    /// Number of the throw in the recording, from 1, in the order of time.
    pub number: u32,
    /// Time of the throw, nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Type of the exception in C# syntax.
    pub type_name: &'a str,
    /// The message of the exception, shortened; `None` for the type's default message.
    pub message: Option<Box<str>>,
    /// The stack at the throw, innermost first.
    pub stack: CallStack<'a>,
    /// Whether the stack had more frames than were kept.
    pub stack_cut: bool,
    /// First pass: the functions searched for a handler, innermost first.
    pub search: Vec<FunctionRef<'a>>,
    /// First pass: the exception filters that ran, with their results.
    pub filters: Vec<Filter<'a>>,
    /// Second pass: the functions whose frames were unwound.
    pub unwound: Vec<FunctionRef<'a>>,
    /// Second pass: the functions whose finally or fault blocks ran, once for each block.
    pub finally: Vec<FunctionRef<'a>>,
    /// The function that caught the exception.
    pub catcher: Option<FunctionRef<'a>>,
    /// Whether the runtime itself caught the exception, or discarded it because it came out of a
    /// filter.
    pub caught_by_runtime: bool,
    /// Whether the exception was not caught, so that the program ended.
    pub unhandled: bool,
    /// Whether the object had been thrown before.
    pub rethrown: bool,
    /// Number of the previous throw of the same object; `None` if that throw was not recorded or
    /// the object had moved since.
    pub rethrow_of: Option<u32>,
    /// Number of the exception that replaced this one. The other exception left a block that ran in
    /// this exception's second pass.
    pub replaced_by: Option<u32>,
    /// The inner exception.
    pub inner: Option<Inner<'a>>,
    /// Nanoseconds from the throw to the catch block.
    pub throw_to_catch_ns: Option<u64>,
}

/// Throws of one type at one location with one catcher.
#[derive(Debug, Clone)]
pub struct ExceptionGroup<'a> {
    /// The process.
    pub process: &'a Process,
    /// Type of the exceptions.
    pub type_name: &'a str,
    /// The message of the first throw.
    pub message: Option<Box<str>>,
    /// The function that threw; `None` if no stack is known.
    pub place: Option<FunctionRef<'a>>,
    /// The innermost own function on the stack; `None` if there is none.
    pub own_place: Option<FunctionRef<'a>>,
    /// Place of the first throw in the code of `own_place`.
    pub own_code: Option<CodePlace<'a>>,
    /// Function that caught the exception; `None` if no function did.
    pub catcher: Option<FunctionRef<'a>>,
    /// Number of throws.
    pub count: u64,
    /// Number of throws that were not caught.
    pub unhandled: u64,
    /// Number of throws that the runtime caught.
    pub caught_by_runtime: u64,
    /// Number of throws whose object had been thrown before.
    pub rethrown: u64,
    /// Total time from throw to catch, in nanoseconds.
    pub throw_to_catch_ns: u64,
    /// Longest time from throw to catch, in nanoseconds.
    pub longest_ns: u64,
    /// First throw, nanoseconds since the start of the run.
    pub first_ns: u64,
    /// Last throw, nanoseconds since the start of the run.
    pub last_ns: u64,
}

/// The exceptions of the processes and threads that a query selects. They are reconstructed while
/// their records are walked, because a recording may not fit into memory.
#[derive(Debug)]
pub struct ExceptionLog<'a> {
    arenas: Vec<Arena<'a>>,
    query: ExceptionQuery,
}

/// Records of one process.
#[derive(Debug)]
struct Arena<'a> {
    process: &'a Process,
    arena: &'a EventArena,
    names: EventNames<'a>,
    /// Entities that arguments refer to.
    types: Types,
}

/// Returns the number of the stack that a throw names, in the stack table of its process; 0 for
/// none.
fn stack_of(record: &Record<'_>) -> u32 {
    record.number(Tag::STACK_NODE).and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}

/// Whether the object of a throw had been thrown before.
fn is_thrown_again(record: &Record<'_>) -> bool {
    record.number(Tag::ANSWER) == Some(1)
}

/// Helper code of the runtime that throws exceptions for other code.
const THROWERS: [&str; 2] = ["System.Runtime.EH::", "Internal.Runtime.CompilerHelpers.ThrowHelpers::"];

/// Whether the function called `name` is helper code that only throws for other code.
fn is_machinery(name: &str) -> bool {
    THROWERS.iter().any(|own| name.starts_with(own))
}

impl<'a> Exception<'a> {
    /// Returns the function that threw: the innermost one that is not helper code of the runtime.
    #[must_use]
    pub fn thrower(&self) -> Option<FunctionRef<'a>> {
        let functions = || self.stack.functions().chain(self.search.first().copied());
        functions().find(|function| !is_machinery(function.name())).or_else(|| functions().next())
    }
}

impl Frame<'_> {
    /// Whether the function is the program's own.
    #[must_use]
    pub fn is_own(&self) -> bool {
        is_own(&self.function)
    }
}

impl<'a> Exception<'a> {
    /// Innermost function on the stack that is the program's own rather than the framework's.
    #[must_use]
    pub fn own_place(&self) -> Option<FunctionRef<'a>> {
        self.stack.innermost_own().map(|(function, _)| function)
    }
}

impl ExceptionGroup<'_> {
    /// Returns the number of exceptions: throws of objects that had not been thrown before.
    #[must_use]
    pub fn exceptions(&self) -> u64 {
        self.count.saturating_sub(self.rethrown)
    }
}

impl<'a> ExceptionLog<'a> {
    /// Selects exceptions.
    ///
    /// # Errors
    /// When the query selects no process or thread, or `exceptions` was not recorded.
    pub fn open(recording: &'a Recording, query: &ExceptionQuery) -> Result<Self, QueryProblem> {
        query.query.without_metric("exceptions")?;
        let mut arenas = Vec::new();
        for SelectedProcess { process, .. } in select::threads(recording, &query.query)? {
            arenas.extend(process.arenas(instrument::EXCEPTIONS).map(|arena| Arena {
                process,
                arena,
                names: EventNames::read(process, arena),
                types: Types::read(process),
            }));
        }
        if arenas.is_empty() {
            return Err(QueryProblem::NotRecorded { view: "exceptions", instrument: instrument::EXCEPTIONS });
        }
        Ok(Self { arenas, query: query.clone() })
    }

    /// Visits the throws in the order of time. Returns the number of throws that the limit left
    /// out. Stops at the first error of `visit`.
    ///
    /// # Errors
    /// The error of `visit`.
    pub fn walk<'l, E>(&'l self, mut visit: impl FnMut(&Exception<'l>) -> Result<(), E>) -> Result<LeftOut, E> {
        let (mut limit, mut outcome) = (Limit::new(self.query.query.limit), Ok(()));
        self.each(&mut |exception| {
            if wants(&self.query, &exception) && limit.admit_row() {
                outcome = visit(&exception);
            }
            outcome.is_ok() && limit.step()
        });
        outcome.map(|()| limit.left_out())
    }

    /// All throws at once, and the number of throws that the limit left out. Only for recordings
    /// that are known to be small.
    #[must_use]
    pub fn rows(&self) -> (Vec<Exception<'_>>, LeftOut) {
        let (mut rows, mut limit) = (Vec::new(), Limit::new(self.query.query.limit));
        self.each(&mut |exception| {
            if wants(&self.query, &exception) && limit.admit_row() {
                rows.push(exception);
            }
            limit.step()
        });
        (rows, limit.left_out())
    }

    /// Groups throws by type and throwing method. The most frequent groups come first, unless the
    /// query sorts by `inclusive` (the time to the catch), `name` (the type) or `module` (the
    /// thrower's). Also returns the number of groups that the limit left out.
    #[must_use]
    pub fn groups(&self) -> (Vec<ExceptionGroup<'_>>, usize) {
        let mut places = BTreeMap::new();
        self.each(&mut |exception| {
            if wants(&self.query, &exception) {
                add(&mut places, &exception);
            }
            true
        });
        let mut groups: Vec<_> = places.into_values().collect();
        order(&mut groups, self.query.query.sort.unwrap_or(Sort::Calls));
        let left_out = self.query.query.cut(&mut groups);
        (groups, left_out)
    }

    /// Arguments of a frame's call, with the values at the begin of the call; `None` if they were
    /// not recorded.
    #[must_use]
    pub fn captured<'c>(&'c self, exception: &Exception<'_>, frame: &Frame<'c>) -> Option<CapturedValues<'c>> {
        let Arguments { function, bytes } = frame.arguments?;
        let of_process = |arena: &&Arena<'_>| std::ptr::eq(arena.process, exception.process);
        self.arenas.iter().find(of_process)?.types.at_enter(*function, bytes, &[])
    }

    /// Calls `take` with every throw when it is over, in the order of time, until `take` has
    /// enough.
    fn each<'l>(&'l self, take: &mut dyn FnMut(Exception<'l>) -> bool) {
        let mut timeline = Timeline::default();
        let streams = self.arenas.iter().enumerate().flat_map(|(at, arena)| reconstruct::threads(at, arena));
        in_turns(&mut streams.collect::<Vec<_>>(), |thread| {
            thread.step(&mut timeline);
            timeline.hand_over(take)
        });
        timeline.finish(take);
    }
}

fn wants(query: &ExceptionQuery, exception: &Exception<'_>) -> bool {
    let filters = &query.query;
    let here_and_now = filters.wants_time(exception.process, exception.time_ns)
        && filters.wants_thread_if_known(exception.thread)
        && exception.process.shows_work(exception.thread, exception.time_ns);
    let of_type = Glob::any_matches(&query.types, exception.type_name);
    let mut functions = exception.stack.functions().chain(exception.catcher);
    let of_function = !filters.filters_functions() || functions.any(|f| filters.wants_function(f.module(), f.function));
    here_and_now && of_type && of_function
}

/// Process, type, and module and signature of the thrower, of the innermost own function and of the
/// catcher.
type Key<'a> = (u32, &'a str, [Option<(&'a str, &'a str)>; 3]);

/// Adds a throw to its group.
fn add<'a>(places: &mut BTreeMap<Key<'a>, ExceptionGroup<'a>>, exception: &Exception<'a>) {
    let (place, own_place, catcher) = (exception.thrower(), exception.own_place(), exception.catcher);
    let named = |function: Option<FunctionRef<'a>>| function.map(|named| (named.module(), named.signature()));
    let key = (exception.process.pid, exception.type_name, [place, own_place, catcher].map(named));
    let group = places.entry(key).or_insert_with(|| ExceptionGroup {
        process: exception.process,
        type_name: exception.type_name,
        message: exception.message.clone(),
        place,
        own_place,
        own_code: exception.stack.innermost_own().map(|(_, place)| place),
        catcher,
        count: 0,
        unhandled: 0,
        caught_by_runtime: 0,
        rethrown: 0,
        throw_to_catch_ns: 0,
        longest_ns: 0,
        first_ns: exception.time_ns,
        last_ns: exception.time_ns,
    });
    let took = exception.throw_to_catch_ns.unwrap_or(0);
    group.count += 1;
    group.unhandled += u64::from(exception.unhandled);
    group.caught_by_runtime += u64::from(exception.caught_by_runtime);
    group.rethrown += u64::from(exception.rethrown);
    group.throw_to_catch_ns = group.throw_to_catch_ns.saturating_add(took);
    group.longest_ns = group.longest_ns.max(took);
    group.last_ns = exception.time_ns;
}

/// Sorts groups as a query asks: the most frequent first, the longest time from throw to catch
/// first, by type, or by the thrower's module. The sort is stable: equal groups stay in the order
/// of process, type and thrower.
fn order(groups: &mut [ExceptionGroup<'_>], sort: Sort) {
    match sort {
        Sort::Inclusive => groups.sort_by_key(|group| std::cmp::Reverse(group.throw_to_catch_ns)),
        Sort::Name => groups.sort_by_key(|group| group.type_name),
        Sort::Module => groups.sort_by_key(|group| group.place.map(|place| place.module())),
        _ => groups.sort_by_key(|group| std::cmp::Reverse(group.count)),
    }
}
