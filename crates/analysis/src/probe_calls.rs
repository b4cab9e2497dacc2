//! The individual calls of probed methods, ordered by start time.

use std::borrow::Cow;
use std::collections::HashMap;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{EventChunk, ProbeCallRecord, ProbedMethod, Process, Recording, Thread};

use crate::flow::CapturedValues;
use crate::flow::dictionary::Types;
use crate::limit::{LeftOut, Limit};
use crate::query::{Query, QueryProblem};
use crate::select;

/// A call of a probed method.
#[derive(Debug, Clone)]
pub struct ProbeCall<'a> {
    /// The process.
    pub process: &'a Process,
    /// The method: its name, signature and module.
    pub method: &'a ProbedMethod,
    /// The assembly that declares the method.
    pub module: &'a str,
    /// The thread; `None` if the recording does not contain it.
    pub thread: Option<&'a Thread>,
    /// Start of the call, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Duration of the call, callees included, in nanoseconds; `None` if it had not ended.
    pub duration_ns: Option<u64>,
    /// Whether an exception ended the call; `None` if the call had not ended, or its end was not
    /// recorded.
    pub failed: Option<bool>,
    /// The `this` object and the arguments, with their values at the begin of the call; `None` if
    /// they were not recorded.
    pub arguments: Option<CapturedValues<'a>>,
    /// The return value and the arguments passed by reference, with their values at the return;
    /// `None` if they were not recorded.
    pub results: Option<CapturedValues<'a>>,
}

/// Place of a record: index of the chunk, and offset in its bytes.
type RecordPlace = (u32, u32);

/// A call. Its records are read only when the call is shown, because a recording may hold very many
/// calls.
struct CallRecord {
    began: u64,
    ended: Option<u64>,
    begin: Option<RecordPlace>,
    end: Option<RecordPlace>,
    method: u32,
    has_failed: bool,
}

/// A process with calls.
struct Calls<'a> {
    process: &'a Process,
    types: Types,
    methods: HashMap<u32, ProbedMethod>,
    chunks: Vec<&'a EventChunk>,
}

/// The calls of the processes that a query selects.
pub struct ProbeLog<'a> {
    processes: Vec<Calls<'a>>,
    query: Query,
}

impl<'a> ProbeLog<'a> {
    /// Selects the processes and calls of a query.
    ///
    /// # Errors
    /// When the query matches no process or thread, or individual calls were not recorded.
    pub fn open(recording: &'a Recording, query: &Query) -> Result<Self, QueryProblem> {
        query.without_metric("probes")?;
        if query.sort.is_some() {
            let why = "with --each its rows are ordered by time";
            return Err(QueryProblem::NotAvailable { option: "--sort", view: "probes", why });
        }
        let selected = select::threads(recording, query)?.into_iter();
        let processes: Vec<_> = selected.filter_map(|selected| Calls::read(selected.process)).collect();
        if processes.is_empty() {
            return Err(QueryProblem::NotRecorded { view: "probes", instrument: EACH });
        }
        Ok(Self { processes, query: query.clone() })
    }

    /// Visits the calls, process by process, ordered by start time. Returns the number of calls
    /// that the limit left out. Stops at the first error of `visit`.
    ///
    /// # Errors
    /// Errors of `visit`.
    pub fn walk<E>(&self, mut visit: impl FnMut(&ProbeCall<'_>) -> Result<(), E>) -> Result<LeftOut, E> {
        let mut limit = Limit::new(self.query.limit);
        for calls in &self.processes {
            let mut kept = ChunkCache::default();
            for (thread, found) in calls.in_order() {
                let Some((method, module)) = calls.wanted(thread, &found, &self.query) else { continue };
                if limit.admit_row() {
                    kept.load(&calls.chunks, &found);
                    visit(&calls.call(thread, &found, (method, module), &kept))?;
                }
            }
        }
        Ok(limit.left_out())
    }
}

/// Instrument and option that record individual calls.
const EACH: &str = "probes:each";

impl<'a> Calls<'a> {
    /// Reads the calls of a process; `None` if they were not recorded.
    fn read(process: &'a Process) -> Option<Self> {
        let chunks: Vec<_> = process.arenas(instrument::PROBE_CALLS).flat_map(|arena| &arena.chunks).collect();
        process.arenas(instrument::PROBE_CALLS).next()?;
        let counted = process.arenas(instrument::PROBES).flat_map(|arena| &arena.chunks);
        let methods = counted.flat_map(|chunk| ProbedMethod::all(&chunk.bytes.load()).collect::<Vec<_>>());
        let methods = methods.filter(|method| method.number != 0).map(|method| (method.number, method)).collect();
        Some(Self { process, types: Types::read(process), methods, chunks })
    }

    /// The calls of all threads, each with the index of its thread.
    fn in_order(&self) -> Vec<(u32, CallRecord)> {
        let mut threads: HashMap<u32, OpenCalls> = HashMap::new();
        for (chunk, of) in (0..).zip(&self.chunks) {
            threads.entry(of.thread).or_default().read_chunk(chunk, &of.bytes.load());
        }
        let mut all: Vec<_> = threads
            .into_iter()
            .flat_map(|(thread, calls)| calls.found.into_iter().map(move |one| (thread, one)))
            .collect();
        all.sort_by_key(|(thread, call)| (call.began, *thread));
        all
    }

    /// The method of a call and its module; `None` if the query excludes the call by its method,
    /// its thread or its start time.
    fn wanted(&self, thread: u32, found: &CallRecord, query: &Query) -> Option<(&ProbedMethod, &str)> {
        let method = self.methods.get(&found.method)?;
        let module = self.process.modules.get(method.module as usize).map_or("", |module| &*module.name);
        let (thread, began_ns) = (self.process.threads.get(thread as usize), self.began_ns(found));
        let is_wanted = query.wants_method(module, &method.name, &method.signature)
            && query.wants_thread_if_known(thread)
            && query.wants_time(self.process, began_ns)
            && self.process.shows_work(thread, began_ns);
        is_wanted.then_some((method, module))
    }

    /// Nanoseconds since the start of the run when a call began.
    fn began_ns(&self, found: &CallRecord) -> u64 {
        self.process.started_ns.saturating_add(self.process.ticks.ns_since_start(found.began))
    }

    fn call<'c>(
        &'c self,
        thread: u32,
        found: &CallRecord,
        (method, module): (&'c ProbedMethod, &'c str),
        kept: &ChunkCache<'_>,
    ) -> ProbeCall<'c> {
        let clock = &self.process.ticks;
        let [began, ended] = [found.began, found.ended.unwrap_or_default()].map(|ticks| clock.ns_since_start(ticks));
        let values =
            |place: Option<RecordPlace>| place.and_then(|place| kept.record(place)).map(|record| record.values);
        let arguments = values(found.begin).and_then(|values| self.types.at_begin(found.method, values));
        let returned = found.end.filter(|_| !found.has_failed);
        ProbeCall {
            process: self.process,
            method,
            module,
            thread: self.process.threads.get(thread as usize),
            time_ns: self.began_ns(found),
            duration_ns: found.ended.map(|_| ended.saturating_sub(began)),
            failed: found.ended.map(|_| found.has_failed),
            arguments,
            results: values(returned).and_then(|values| self.types.at_return(found.method, values)),
        }
    }
}

/// Calls of a thread while its records are read.
#[derive(Default)]
struct OpenCalls {
    found: Vec<CallRecord>,
    /// Indices in `found` of the calls that have not ended, the innermost last.
    open: Vec<usize>,
}

impl OpenCalls {
    fn read_chunk(&mut self, chunk: u32, bytes: &[u8]) {
        for (at, record) in ProbeCallRecord::all_with_places(bytes) {
            let place = Some((chunk, at as u32));
            let (method, ended, has_failed) =
                (record.method, Some(record.ticks), record.end.is_some_and(|end| end.has_failed));
            let Some(end) = record.end else {
                self.open.push(self.found.len());
                let (began, ended, end) = (record.ticks, None, None);
                self.found.push(CallRecord { began, ended, begin: place, end, method, has_failed });
                continue;
            };
            let is_it = |at: &usize| self.found[*at].method == method && self.found[*at].began == end.began;
            match self.open.iter().rposition(is_it) {
                Some(position) => {
                    let call = &mut self.found[self.open[position]];
                    (call.ended, call.end, call.has_failed) = (ended, place, has_failed);
                    // The ends of the inner calls were not recorded for want of room.
                    self.open.truncate(position);
                }
                None => {
                    self.found.push(CallRecord { began: end.began, ended, begin: None, end: place, method, has_failed })
                }
            }
        }
    }
}

/// Bytes of the chunks that were read last: successive calls lie close together, on a few threads
/// at a time.
#[derive(Default)]
struct ChunkCache<'a>(Vec<(u32, Cow<'a, [u8]>)>);

/// Number of chunks that are kept.
const MOST_KEPT: usize = 64;

impl<'a> ChunkCache<'a> {
    /// Reads the chunks that hold the records of a call.
    fn load(&mut self, chunks: &[&'a EventChunk], call: &CallRecord) {
        for (chunk, _) in call.begin.into_iter().chain(call.end) {
            match self.0.iter().position(|(kept, _)| *kept == chunk) {
                Some(at) => self.0[at..].rotate_left(1),
                None => {
                    let Some(of) = chunks.get(chunk as usize) else { continue };
                    if self.0.len() == MOST_KEPT {
                        self.0.remove(0);
                    }
                    self.0.push((chunk, of.bytes.load()));
                }
            }
        }
    }

    fn record(&self, (chunk, at): RecordPlace) -> Option<ProbeCallRecord<'_>> {
        let (_, bytes) = self.0.iter().find(|(kept, _)| *kept == chunk)?;
        ProbeCallRecord::all(bytes.get(at as usize..)?).next()
    }
}
