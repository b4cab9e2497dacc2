//! Marks of the fixture `Whose`: exceptions that name the request for which their code runs.
//! Compares them with the threads of a recording.

use std::collections::{BTreeMap, BTreeSet};

use clrscope_recording::events::{Kind, OwnedRecord, Record, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::Process;

/// Name of the route for code that runs for no request.
pub const NO_REQUEST: &str = "(none)";

/// An exception whose message names the request that its code works for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Method and path of the request.
    pub route: String,
    /// Number of the request in the program; 0 for none.
    pub number: u64,
    /// Thread that threw the exception.
    pub thread: u32,
    /// Time since the start of the process's recording.
    pub time_ns: u64,
}

/// Which request each thread works for at each time.
#[derive(Debug)]
pub struct WorkOfThreads {
    /// By thread: times, each with the request that the thread works for from then on; 0 for none.
    switches: BTreeMap<u32, Vec<(u64, u64)>>,
    /// Method and route of requests that have ended.
    routes: BTreeMap<u64, String>,
}

impl WorkOfThreads {
    /// Reads the records of the instrument `requests`.
    ///
    /// # Panics
    /// When the records of a thread are not in the order of time.
    pub fn new(process: &Process) -> Self {
        let mut switches: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        let (mut ended, mut names) = (Vec::new(), BTreeMap::new());
        each_record(process, instrument::REQUESTS, |thread, record| {
            let number = |tag| record.number(tag).unwrap_or(0);
            match record.kind {
                Kind::REQUEST_ON_THREAD => {
                    switches.entry(thread).or_default().push((record.time_ns, number(Tag::REQUEST)));
                }
                Kind::REQUEST_ENDED => ended.extend(record.number(Tag::REQUEST).map(|id| (id, number(Tag::ROUTE)))),
                Kind::REQUEST_NAME => {
                    names.insert(number(Tag::ROUTE), record.text(Tag::NAME).unwrap_or("").to_owned());
                }
                _ => {}
            }
        });
        let is_in_order = |switches: &Vec<(u64, u64)>| switches.is_sorted_by_key(|(since, _)| since);
        assert!(switches.values().all(is_in_order), "{switches:?}");
        let routes = ended.into_iter().filter_map(|(id, name)| Some((id, names.get(&name)?.clone()))).collect();
        Self { switches, routes }
    }

    /// Requests that were served from their beginning to their end.
    pub fn requests(&self) -> usize {
        self.routes.len()
    }

    /// Number of times that a thread switched to another request, or to no request.
    pub fn switches(&self) -> usize {
        self.switches.values().map(Vec::len).sum()
    }

    /// The id of the request that a thread works for at a time; 0 for none.
    pub fn request(&self, thread: u32, time_ns: u64) -> u64 {
        let switches = self.switches.get(&thread).map_or(&[][..], Vec::as_slice);
        let before = switches.partition_point(|(since, _)| *since <= time_ns);
        before.checked_sub(1).map_or(0, |last| switches[last].1)
    }

    /// Method and route of the request that a thread works for at a time.
    pub fn route(&self, thread: u32, time_ns: u64) -> &str {
        match self.request(thread, time_ns) {
            0 => NO_REQUEST,
            id => self.routes.get(&id).map_or("(not known)", String::as_str),
        }
    }

    /// Describes the marks whose thread works for another route than `known` accepts.
    pub fn misplaced<'m>(&self, marks: &'m [Mark], known: impl Fn(&'m Mark, &str) -> bool) -> Vec<String> {
        let wrong = marks.iter().filter_map(|mark| {
            let found = self.route(mark.thread, mark.time_ns);
            let Mark { route, number, thread, time_ns } = mark;
            (!known(mark, found)).then(|| format!("{route} {number} as {found}, thread {thread} at {time_ns}"))
        });
        wrong.collect()
    }

    /// Pairs of request numbers from marks and request ids from the recording. If each request has
    /// one id, there are as many pairs as numbers and as ids.
    pub fn ids(&self, marks: &[Mark]) -> BTreeSet<(u64, u64)> {
        marks.iter().map(|mark| (mark.number, self.request(mark.thread, mark.time_ns))).collect()
    }
}

/// The marks that `exceptions` has recorded.
pub fn marks(process: &Process) -> Vec<Mark> {
    let mut marks = Vec::new();
    each_record(process, instrument::EXCEPTIONS, |thread, record| {
        let message = record.text(Tag::MESSAGE).filter(|_| record.kind == Kind::EXCEPTION_THROWN);
        let said = message.and_then(|text| text.strip_prefix("mark ")?.split_once('|'));
        if let Some((route, number)) = said.and_then(|(route, number)| Some((route, number.parse().ok()?))) {
            marks.push(Mark { route: route.to_owned(), number, thread, time_ns: record.time_ns });
        }
    });
    marks
}

/// Calls `act` with each record of an instrument and the id of its thread.
fn each_record(process: &Process, instrument: &str, mut act: impl FnMut(u32, Record<'_>)) {
    for chunk in process.arenas(instrument).flat_map(|arena| &arena.chunks) {
        let thread = process.threads.get(chunk.thread as usize).map_or(0, |thread| thread.id);
        OwnedRecord::all(&chunk.bytes.load()).iter().for_each(|record| act(thread, record.record()));
    }
}
