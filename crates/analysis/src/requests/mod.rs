//! The view `requests`: how many requests were served and made, how they ended, and how long they
//! took.
//!
//! A request counts if it began and ended within the recording. Requests that were under way at the
//! start or the end of the recording are counted separately, because only a part of their duration
//! is known.

mod filter;
mod known;
mod load;
mod on_threads;
mod read;
mod slices;
mod steps;
mod switches;
mod work;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{EventArena, LossReason, Process, Recording};
use rustc_hash::FxHashMap;

use crate::durations::Durations;
use crate::query::{Query, QueryProblem, Sort};
use crate::select::{self, SelectedProcess};

pub use known::KnownRequest;
pub(crate) use known::KnownRequests;
pub use load::{LoadCurve, LoadLevel, NoKnee, loads};
pub use on_threads::keep_requests;
use read::Reading;
pub use slices::Load;
pub use steps::{RequestStep, RequestSteps, StepKind, request_steps};
use work::AskedRequest;
pub use work::{RequestWork, ThreadStates};

/// Lowest HTTP status that counts as a failure of the server. The server is the program itself, or
/// the server to which the program sent a request.
const SERVER_ERRORS: u64 = 500;
const ERRORS: u64 = 400;

/// Whether a request was served or made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Incoming request, which the program answered.
    Served,
    /// Outgoing request, which the program made.
    Made,
}

impl Direction {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Made => "made",
        }
    }
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEnd {
    /// An answer was sent, whatever its status.
    Answer,
    /// An unhandled exception left the request's handlers, or no answer arrived.
    Failure,
    /// The client closed the connection.
    Abortion,
    /// The request did not end within the recording.
    UnderWay,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The process.
    pub process: &'a Process,
    /// Whether the request was served or made.
    pub direction: Direction,
    /// HTTP method with the route template for served requests, or with the host for outgoing ones.
    pub route: std::rc::Rc<str>,
    /// Start of the request, in nanoseconds since the start of the run. For a request that began
    /// before the recording, the time when it was first seen.
    pub time_ns: u64,
    /// End of the request, or the time when it was last seen, in nanoseconds since the start of the
    /// run.
    pub last_ns: u64,
    /// Duration in nanoseconds; for a request that had not ended, the duration so far. `None` for a
    /// request that began before the recording.
    pub duration_ns: Option<u64>,
    /// HTTP status of the answer; `None` if there was no answer.
    pub status: Option<u64>,
    /// Id of the request in its process, which threads record when they work for the request;
    /// `None` if the request has no id.
    pub id: Option<u64>,
    /// Ids of the request's trace; `None` if the program has no activities.
    pub trace: Option<TraceIds>,
    /// How the request ended.
    pub end: RequestEnd,
    /// The work for the request, as in [`RequestRow::work`]. Only [`each_request`] sets it.
    pub work: Option<Box<RequestWork>>,
}

/// The ids that locate a request in traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceIds {
    trace: u128,
    span: u64,
}

impl TraceIds {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (trace, span) = bytes.split_first_chunk()?;
        Some(Self { trace: u128::from_be_bytes(*trace), span: u64::from_be_bytes(span.try_into().ok()?) })
    }

    /// Trace and span ids in the form of binary formats. The bytes are in the order of the digits
    /// in HTTP headers.
    #[must_use]
    pub fn to_bytes(self) -> ([u8; 16], [u8; 8]) {
        (self.trace.to_be_bytes(), self.span.to_be_bytes())
    }

    /// The trace id in the form of HTTP headers: 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(self) -> String {
        format!("{:032x}", self.trace)
    }

    /// The span id in the form of HTTP headers: 16 hexadecimal digits. For a served request it is
    /// the request's own span. For an outgoing request it is the span in which the program made the
    /// request.
    #[must_use]
    pub fn span_id(self) -> String {
        format!("{:016x}", self.span)
    }
}

impl Request<'_> {
    /// Whether only a part of the request is in the recording.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.duration_ns.is_none() || self.end == RequestEnd::UnderWay
    }

    /// Whether the request failed, by an exception, by a missing answer, or by its status.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let least = if self.direction == Direction::Served { SERVER_ERRORS } else { ERRORS };
        match self.end {
            RequestEnd::Failure => true,
            RequestEnd::Answer => self.status.is_some_and(|status| status >= least),
            RequestEnd::Abortion | RequestEnd::UnderWay => false,
        }
    }
}

/// Requests with the same name.
#[derive(Debug, Clone)]
pub struct RequestRow<'a> {
    /// The process.
    pub process: &'a Process,
    /// Whether the requests were served or made.
    pub direction: Direction,
    /// HTTP method with the route template for served requests, or with the host for outgoing ones.
    pub route: std::rc::Rc<str>,
    /// Number of requests that are entirely in the recording.
    pub count: u64,
    /// Whether every request was recorded. If not, the numbers may be too low.
    pub is_exact: bool,
    /// Number of these requests that failed.
    pub failed: u64,
    /// Number of these requests that the client aborted.
    pub aborted: u64,
    /// Number of requests only partly in the recording. No other number includes them.
    pub partial: u64,
    /// Total duration of these requests, in nanoseconds.
    pub total_ns: u64,
    /// Duration of the longest of these requests, in nanoseconds.
    pub max_ns: u64,
    /// The work for all requests of the row. `None` if the records of the threads are incomplete,
    /// and for outgoing requests.
    pub work: Option<RequestWork>,
    durations: Durations,
}

impl<'a> RequestRow<'a> {
    fn new(request: &Request<'a>, is_exact: bool) -> Self {
        let Request { process, direction, route, .. } = request.clone();
        let (count, failed, aborted, partial, total_ns, max_ns) = Default::default();
        let durations = Durations::default();
        Self {
            process,
            direction,
            route,
            count,
            is_exact,
            failed,
            aborted,
            partial,
            total_ns,
            max_ns,
            work: None,
            durations,
        }
    }

    fn add(&mut self, request: &Request<'a>) {
        let Some(ns) = request.duration_ns.filter(|_| !request.is_partial()) else {
            self.partial += 1;
            return;
        };
        self.count += 1;
        self.failed += u64::from(request.has_failed());
        self.aborted += u64::from(request.end == RequestEnd::Abortion);
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.durations.add(ns);
    }

    /// Mean duration of a request, in nanoseconds; `None` if no request is entirely in the
    /// recording.
    #[must_use]
    pub fn mean_ns(&self) -> Option<u64> {
        self.total_ns.checked_div(self.count)
    }

    /// Time within which `percent` percent of the requests completed, in nanoseconds, with an error
    /// of 3 %; `None` if no request is entirely in the recording.
    #[must_use]
    pub fn percentile_ns(&self, percent: u8) -> Option<u64> {
        self.durations.percentile_ns(percent, self.max_ns)
    }
}

/// The recorded requests of a process.
struct RecordedRequests<'a> {
    process: &'a Process,
    arenas: Vec<&'a EventArena>,
    /// Whether every request was recorded.
    is_exact: bool,
}

/// The processes that the query of a view selects, with their recorded requests.
fn recorded<'a>(
    recording: &'a Recording,
    query: &Query,
    view: &'static str,
) -> Result<Vec<RecordedRequests<'a>>, QueryProblem> {
    query.without_metric(view)?;
    let of_process = |SelectedProcess { process, .. }: SelectedProcess<'a>| {
        let is_exact = process.losses.iter().all(|loss| loss.reason != LossReason::EventDropped);
        RecordedRequests { process, arenas: process.arenas(instrument::REQUESTS).collect(), is_exact }
    };
    let all: Vec<RecordedRequests<'a>> = select::threads(recording, query)?.into_iter().map(of_process).collect();
    match all.iter().any(|one| !one.arenas.is_empty()) {
        true => Ok(all),
        false => Err(QueryProblem::NotRecorded { view, instrument: instrument::REQUESTS }),
    }
}

/// Calls `take` with each request that a query selects, process by process. The flag tells whether
/// all requests of the process were recorded.
fn walk<'a>(
    recording: &'a Recording,
    query: &Query,
    mut take: impl FnMut(Request<'a>, bool),
) -> Result<(), QueryProblem> {
    for RecordedRequests { process, arenas, is_exact } in recorded(recording, query, "requests")? {
        for arena in arenas {
            Reading::new(process, arena).each(query, |request| {
                if query.requests.matches(&request) {
                    take(request, is_exact);
                }
            });
        }
    }
    Ok(())
}

/// Requests by name, ordered by total duration. Also returns the number of rows that the limit left
/// out.
///
/// # Errors
/// When the query matches no process, or `requests` was not recorded.
pub fn requests<'a>(recording: &'a Recording, query: &Query) -> Result<(Vec<RequestRow<'a>>, usize), QueryProblem> {
    let mut places: FxHashMap<(u32, Direction, std::rc::Rc<str>), usize> = FxHashMap::default();
    let mut rows: Vec<RequestRow<'a>> = Vec::new();
    let mut asked: Vec<(&'a Process, AskedRequest)> = Vec::new();
    walk(recording, query, |request, is_exact| {
        let key = (request.process.pid, request.direction, std::rc::Rc::clone(&request.route));
        let place = *places.entry(key).or_insert_with(|| {
            rows.push(RequestRow::new(&request, is_exact));
            rows.len() - 1
        });
        rows[place].add(&request);
        asked.extend(AskedRequest::new(&request, place).map(|asked| (request.process, asked)));
    })?;
    for (place, work) in works(query, &asked) {
        rows[place].work = Some(work);
    }
    order(&mut rows, query.sort);
    let left_out = query.cut(&mut rows);
    Ok((rows, left_out))
}

/// The work for the requests of several processes, as numbered sums. The requests of one process
/// must be consecutive.
fn works(query: &Query, asked: &[(&Process, AskedRequest)]) -> Vec<(usize, RequestWork)> {
    let of_processes = asked.chunk_by(|(one, _), (other, _)| std::ptr::eq(*one, *other));
    let of_process = |all: &[(&Process, AskedRequest)]| {
        let process = all.first()?.0;
        work::sums(process, query, all.iter().map(|(_, asked)| *asked).collect())
    };
    of_processes.filter_map(of_process).flatten().collect()
}

fn order(rows: &mut [RequestRow<'_>], sort: Option<Sort>) {
    use std::cmp::Reverse;

    // The sorts that follow keep this order for equal rows.
    rows.sort_by(|a, b| (a.process.pid, a.direction, &a.route).cmp(&(b.process.pid, b.direction, &b.route)));
    match sort {
        Some(Sort::Name) => rows.sort_by(|a, b| a.route.cmp(&b.route)),
        Some(Sort::Calls) => rows.sort_by_key(|row| Reverse((row.count, row.partial))),
        _ => rows.sort_by_key(|row| Reverse((row.total_ns, row.partial))),
    }
}

/// Each request with its work as in [`RequestRow::work`], the slowest request first. Also returns
/// the number of requests that the limit left out.
///
/// # Errors
/// As [`requests`].
pub fn each_request<'a>(recording: &'a Recording, query: &Query) -> Result<(Vec<Request<'a>>, usize), QueryProblem> {
    use std::cmp::Reverse;

    let mut all = Vec::new();
    walk(recording, query, |request, _| all.push(request))?;
    match query.sort {
        Some(Sort::Name) => all.sort_by(|a, b| (&a.route, a.time_ns).cmp(&(&b.route, b.time_ns))),
        _ => all.sort_by_key(|request| (Reverse(request.duration_ns), request.time_ns)),
    }
    let left_out = query.cut(&mut all);
    let mut asked: Vec<(&'a Process, AskedRequest)> =
        (0..).zip(&all).filter_map(|(at, request)| Some((request.process, AskedRequest::new(request, at)?))).collect();
    asked.sort_by_key(|(process, _)| (process.pid, process.started_ns));
    for (at, work) in works(query, &asked) {
        all[at].work = Some(Box::new(work));
    }
    Ok((all, left_out))
}
