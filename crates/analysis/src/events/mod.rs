//! The view `events`: callbacks of the runtime, by thread or by time.
//!
//! Depth and duration come from pairs. An end event closes the innermost open start event of its
//! kind on its thread, and all starts that are still open within it. Collections may begin and end
//! on different threads. Events without a partner on their own thread are paired across the
//! process.

//!
//! A recording may hold more events than fit into memory. A first pass over all records collects
//! the names and the distant pairs. A second pass makes the rows that pass the filters, one by one.

mod cursor;
mod names;
mod pairing;
mod stream;
mod survey;

use clrscope_contract::request::Glob;
use clrscope_recording::events::{EntityRef, Group, Kind, OwnedRecord, Record, Tag, Value};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording, Thread};

use crate::limit::{LeftOut, Limit};
use crate::query::{Query, QueryProblem};
use crate::select;
use stream::EventStream;
use survey::Survey;

pub(crate) use cursor::{Cursor, Stream, in_turns};
pub use names::EventNames;

/// Selection and order of events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// The filters that all views share. `functions` and `modules` keep events about functions that
    /// match.
    pub query: Query,
    /// Only events of these groups; empty means all.
    pub groups: Vec<Group>,
    /// Only events whose name matches one of these patterns, or that are about an entity whose name
    /// matches; empty means all.
    pub names: Vec<Glob>,
    /// Whether all threads are merged by time. Otherwise threads are listed one after another.
    pub interleave: bool,
}

/// One event.
#[derive(Debug, Clone)]
pub struct EventRow<'a> {
    /// The process.
    pub process: &'a Process,
    /// Thread of the callback; `None` if the thread is not known.
    pub thread: Option<&'a Thread>,
    /// Time of the event, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Number of events that enclose this event on its thread.
    pub depth: u32,
    /// Duration between start and end, in nanoseconds; set in both events of a pair.
    pub duration_ns: Option<u64>,
    remark: Option<&'static str>,
    record: OwnedRecord,
    names: &'a EventNames<'a>,
}

/// An entity that an event refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    /// Role of the entity in the event: `function`, `class`, `module`.
    pub role: &'static str,
    /// The runtime's identifier of the entity.
    pub id: u64,
    /// Name of the entity, if the runtime gave one.
    pub name: Option<&'a str>,
}

/// The events of the processes and threads that a query selects.
#[derive(Debug)]
pub struct EventLog<'a> {
    arenas: Vec<Survey<'a>>,
    query: EventQuery,
}

impl EventRow<'_> {
    /// Kind of the event's record.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.record.record().kind
    }

    /// Name of the runtime's callback.
    #[must_use]
    pub fn event(&self) -> &'static str {
        self.kind().name().unwrap_or("?")
    }

    /// Name of the event's group.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.kind().group().map_or("", Group::name)
    }

    /// Phase of the event: `start`, `end` or `single`.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        self.record.record().phase().name()
    }

    /// Reason as text: from the runtime, or inferred from the neighbouring events.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.record.record().text(Tag::REASON).or(self.remark)
    }

    /// The result's name, `S_OK` for success, or its number if it has no name.
    #[must_use]
    pub fn result(&self) -> Option<String> {
        let record = self.record.record();
        let code = record.number(Tag::RESULT)?;
        Some(match record.text(Tag::RESULT_NAME) {
            Some(name) => name.to_owned(),
            None if code == 0 => "S_OK".to_owned(),
            None => format!("{code:#010x}"),
        })
    }

    /// Further numbers of the event: counts, sizes, addresses. `found` and `critical` are 1 for yes
    /// and 0 for no.
    pub fn details(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let kind = self.kind();
        self.record.record().fields().filter_map(move |field| match field.value {
            Value::Number(number) => Some((detail(kind, field.tag)?, number)),
            _ => None,
        })
    }

    /// The name that the program gave, if the event reports a name.
    #[must_use]
    pub fn given_name(&self) -> Option<&str> {
        self.record.record().text(Tag::NAME)
    }
}

impl<'a> EventRow<'a> {
    /// Entities that the event refers to, in the runtime's order.
    pub fn subjects(&self) -> impl Iterator<Item = Subject<'a>> {
        let names = self.names;
        self.record.record().fields().filter_map(move |field| match field.value {
            Value::Entity(entity) => Some(subject(names, field.tag, entity)),
            _ => None,
        })
    }
}

fn subject<'a>(names: &'a EventNames<'_>, tag: Tag, entity: EntityRef) -> Subject<'a> {
    Subject { role: role(tag), id: entity.id, name: names.name(tag, entity) }
}

fn role(tag: Tag) -> &'static str {
    match tag {
        Tag::FUNCTION => "function",
        Tag::CALLEE => "callee",
        Tag::CLASS => "class",
        Tag::MODULE => "module",
        Tag::ASSEMBLY => "assembly",
        Tag::APP_DOMAIN => "app_domain",
        Tag::THREAD => "thread",
        Tag::PROVIDER => "provider",
        _ => "other",
    }
}

fn detail(kind: Kind, tag: Tag) -> Option<&'static str> {
    Some(match tag {
        Tag::OBJECT => "object",
        Tag::OS_THREAD => "os_thread",
        Tag::COUNT => "count",
        Tag::BYTES => "bytes",
        Tag::HANDLE => "handle",
        Tag::REJIT => "rejit",
        Tag::GENERATIONS => "generations",
        Tag::TOKEN => "token",
        Tag::ANSWER if kind == Kind::JIT_CACHED_FUNCTION_SEARCH_FINISHED => "found",
        Tag::ANSWER if kind == Kind::FINALIZEABLE_OBJECT_QUEUED => "critical",
        _ => return None,
    })
}

impl<'a> EventLog<'a> {
    /// Selects the events, and makes the first pass over their records.
    ///
    /// # Errors
    /// When the query selects no process or thread, or `events` was not recorded.
    pub fn open(recording: &'a Recording, query: &EventQuery) -> Result<Self, QueryProblem> {
        query.query.without_metric("events")?;
        let mut arenas = Vec::new();
        for selected in select::threads(recording, &query.query)? {
            let of_events = selected.process.arenas(instrument::EVENTS);
            arenas.extend(of_events.map(|arena| Survey::read(selected.process, arena)));
        }
        if arenas.is_empty() {
            return Err(QueryProblem::NotRecorded { view: "events", instrument: instrument::EVENTS });
        }
        query.query.all_requests("events", "its events are not linked to requests")?;
        Ok(Self { arenas, query: query.clone() })
    }

    /// Visits the rows, by thread or by time. Returns the number of rows that the limit left out.
    /// Stops at the first error of `visit`.
    ///
    /// # Errors
    /// The error of `visit`.
    pub fn walk<'l, E>(&'l self, mut visit: impl FnMut(&EventRow<'l>) -> Result<(), E>) -> Result<LeftOut, E> {
        let (mut limit, mut outcome) = (Limit::new(self.query.query.limit), Ok(()));
        self.walk_while(&mut limit, &mut |row| {
            outcome = visit(&row);
            outcome.is_ok()
        });
        outcome.map(|()| limit.left_out())
    }

    /// All rows at once, and the number of rows that the limit left out. Only for recordings that
    /// are known to be small.
    #[must_use]
    pub fn rows(&self) -> (Vec<EventRow<'_>>, LeftOut) {
        let (mut rows, mut limit) = (Vec::new(), Limit::new(self.query.query.limit));
        self.walk_while(&mut limit, &mut |row| {
            rows.push(row);
            true
        });
        (rows, limit.left_out())
    }

    fn walk_while<'l>(&'l self, limit: &mut Limit, visit: &mut dyn FnMut(EventRow<'l>) -> bool) {
        let is_meant = |stream: &EventStream<'_, '_>| self.query.query.wants_thread_if_known(stream.thread());
        let streams =
            self.arenas.iter().flat_map(|survey| survey.streams.iter().map(|of| EventStream::new(survey, of)));
        let mut streams: Vec<_> = streams.filter(is_meant).collect();
        let mut step = |stream: &mut EventStream<'l, 'a>| match stream.step(&self.query) {
            Some(row) if limit.admit_row() => visit(row),
            _ => limit.step(),
        };
        if self.query.interleave {
            return in_turns(&mut streams, step);
        }
        for mut stream in streams {
            while stream.time_ns().is_some() {
                if !step(&mut stream) {
                    return;
                }
            }
        }
    }
}

/// Whether the query selects an event at this time on this thread.
fn wants(
    query: &EventQuery,
    record: &Record<'_>,
    time_ns: u64,
    thread: Option<&Thread>,
    names: &EventNames<'_>,
) -> bool {
    let filters = &query.query;
    let here_and_now = filters.wants_time(names.process(), time_ns) && filters.wants_thread_if_known(thread);
    let in_group = query.groups.is_empty() || record.kind.group().is_some_and(|group| query.groups.contains(&group));
    here_and_now && in_group && wants_function(filters, record, names) && wants_name(query, record, names)
}

fn wants_function(query: &Query, record: &Record<'_>, names: &EventNames<'_>) -> bool {
    !query.filters_functions()
        || record.fields().any(|field| match field.value {
            Value::Entity(entity) => names
                .function(field.tag, entity)
                .is_some_and(|function| query.wants_function(names.module_of(function), function)),
            _ => false,
        })
}

fn wants_name(query: &EventQuery, record: &Record<'_>, names: &EventNames<'_>) -> bool {
    let is_about = |glob: &Glob| {
        record.fields().any(|field| match field.value {
            Value::Entity(entity) => names.name(field.tag, entity).is_some_and(|name| glob.matches(name)),
            Value::Text(text) => field.tag == Tag::NAME && glob.matches(text),
            Value::Number(_) | Value::Bytes(_) => false,
        })
    };
    let event = record.kind.name().unwrap_or("?");
    query.names.is_empty() || query.names.iter().any(|glob| glob.matches(event) || is_about(glob))
}
