//! Reads the requests of a recording.

use std::rc::Rc;

use clrscope_recording::events::{Kind, Record, Records, Tag};
use clrscope_recording::model::{EventArena, Process};
use rustc_hash::FxHashMap;

use super::{Direction, Request, RequestEnd, TraceIds};
use crate::query::Query;

/// Name of requests whose name the recording has lost.
const NAMELESS: &str = "(not known)";
/// Outcomes, by their numbers in recordings.
const FAILED: u64 = 1;
const ABORTED: u64 = 2;

/// The requests of a process.
pub(super) struct Reading<'a> {
    process: &'a Process,
    arena: &'a EventArena,
    names: FxHashMap<u64, (Direction, Rc<str>)>,
    /// Requests that were under way when the recording was copied, by their recorded ids. The value
    /// is the time of the record that knows most about the request.
    copied: FxHashMap<u64, u64>,
}

impl<'a> Reading<'a> {
    /// Reads the names before the requests, because the record with a request's name may come from
    /// another thread and after the request.
    pub(super) fn new(process: &'a Process, arena: &'a EventArena) -> Self {
        let (names, copied) = Default::default();
        let mut reading = Self { process, arena, names, copied };
        for chunk in &arena.chunks {
            Records::new(&chunk.bytes.load()).for_each(|record| reading.look_at(&record));
        }
        reading
    }

    fn look_at(&mut self, record: &Record<'_>) {
        match record.kind {
            Kind::REQUEST_NAME => {
                let is_made = record.number(Tag::DIRECTION) == Some(1);
                let direction = if is_made { Direction::Made } else { Direction::Served };
                let name = record.text(Tag::NAME).unwrap_or(NAMELESS);
                self.names.insert(record.number(Tag::ROUTE).unwrap_or(0), (direction, Rc::from(name)));
            }
            Kind::REQUEST_ENDED | Kind::REQUEST_PENDING => {
                let Some(number) = record.number(Tag::COPIED) else { return };
                let last = self.copied.entry(number).or_default();
                *last = record.time_ns.max(*last);
            }
            _ => {}
        }
    }

    /// Whether a later record knows more about a request that was under way.
    fn is_outdated(&self, record: &Record<'_>) -> bool {
        let last = record.number(Tag::COPIED).and_then(|number| self.copied.get(&number));
        last.is_some_and(|last| *last > record.time_ns)
    }

    /// Calls `take` with each request that touches the query's time range.
    pub(super) fn each(&self, query: &Query, mut take: impl FnMut(Request<'a>)) {
        for chunk in &self.arena.chunks {
            for record in Records::new(&chunk.bytes.load()) {
                if let Some(request) = self.request(&record, query) {
                    take(request);
                }
            }
        }
    }

    fn request(&self, record: &Record<'_>, query: &Query) -> Option<Request<'a>> {
        let end = match record.kind {
            Kind::REQUEST_ENDED => match record.number(Tag::OUTCOME).unwrap_or(0) {
                FAILED => RequestEnd::Failure,
                ABORTED => RequestEnd::Abortion,
                _ => RequestEnd::Answer,
            },
            Kind::REQUEST_PENDING if !self.is_outdated(record) => RequestEnd::UnderWay,
            _ => return None,
        };
        let known = record.number(Tag::ROUTE).and_then(|number| self.names.get(&number)).cloned();
        let (direction, route) = known.unwrap_or_else(|| (Direction::Served, Rc::from(NAMELESS)));
        let last_ns = self.process.started_ns.saturating_add(record.time_ns);
        let took = record.number(Tag::DURATION);
        let time_ns = last_ns.saturating_sub(took.unwrap_or(0));
        let wanted = query.wanted_ns(self.process, time_ns, last_ns)?;
        let duration_ns = took.map(|_| wanted);
        Some(Request {
            process: self.process,
            direction,
            route,
            time_ns,
            last_ns,
            duration_ns,
            status: record.number(Tag::STATUS),
            id: record.number(Tag::REQUEST),
            trace: record.opaque(Tag::TRACE).and_then(TraceIds::read),
            end,
            work: None,
        })
    }
}
