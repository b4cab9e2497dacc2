//! The view `events`: callbacks of the runtime, thread by thread or by time.
//!
//! Depth and duration come from pairs: an event that ends something closes the innermost open one of
//! its kind on its thread, and whatever was left open above it. Collections may begin and end on
//! different threads; what finds no partner on its own thread is paired across the process.

mod names;
mod replay;

use clrscope_contract::request::Glob;
use clrscope_recording::events::{EntityRef, Group, Kind, Record, Tag, Value};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording, Thread};

use crate::query::{Query, QueryProblem};
use crate::select;

pub use names::EventNames;

/// Which events, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// The filters that all views share. `functions` and `modules` keep events about functions that match.
    pub query: Query,
    /// Only these groups; none means all.
    pub groups: Vec<Group>,
    /// Only events with a name that matches one of these, their own or that of what they are about; none
    /// means all.
    pub names: Vec<Glob>,
    /// All threads together by time, rather than one after another.
    pub interleave: bool,
}

/// One event.
#[derive(Debug, Clone, Copy)]
pub struct EventRow<'a> {
    /// The process.
    pub process: &'a Process,
    /// Thread of the callback; `None` where that is not known.
    pub thread: Option<&'a Thread>,
    /// When, nanoseconds since the start of the run.
    pub time_ns: u64,
    /// How many others are open around it on its thread.
    pub depth: u32,
    /// Between begin and end, on both events of a pair.
    pub duration_ns: Option<u64>,
    remark: Option<&'static str>,
    record: Record<'a>,
    names: usize,
}

/// Something that an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    /// Role of the entity in the event: `function`, `class`, `module`.
    pub role: &'static str,
    /// The runtime's identifier.
    pub id: u64,
    /// Name of the entity, if the runtime ever gave one.
    pub name: Option<&'a str>,
}

/// The view.
#[derive(Debug, Clone, Default)]
pub struct Events<'a> {
    /// The rows, thread by thread or by time, limited.
    pub rows: Vec<EventRow<'a>>,
    /// Rows that the limit left out.
    pub left_out: usize,
    names: Vec<EventNames<'a>>,
}

impl<'a> EventRow<'a> {
    /// Record of the callback.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.record.kind
    }

    /// The callback's name.
    #[must_use]
    pub fn event(&self) -> &'static str {
        self.record.kind.name().unwrap_or("?")
    }

    /// The group's name.
    #[must_use]
    pub fn group(&self) -> &'static str {
        self.record.kind.group().map_or("", Group::name)
    }

    /// `start`, `end` or `single`.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        self.record.phase().name()
    }

    /// Reason as a text: the runtime's, or what the events around it show.
    #[must_use]
    pub fn reason(&self) -> Option<&'a str> {
        self.record.text(Tag::REASON).or(self.remark)
    }

    /// The result's name, `S_OK` for success, or its number where it has no name.
    #[must_use]
    pub fn result(&self) -> Option<String> {
        let code = self.record.number(Tag::RESULT)?;
        Some(match self.record.text(Tag::RESULT_NAME) {
            Some(name) => name.to_owned(),
            None if code == 0 => "S_OK".to_owned(),
            None => format!("{code:#010x}"),
        })
    }

    /// Further numbers of the event: counts, sizes, addresses; `found` and `critical` are 1 for yes and 0 for no.
    pub fn details(&self) -> impl Iterator<Item = (&'static str, u64)> + use<'a> {
        let kind = self.record.kind;
        self.record.fields().filter_map(move |field| match field.value {
            Value::Number(number) => Some((detail(kind, field.tag)?, number)),
            _ => None,
        })
    }

    /// The name that the program gave, where the event is about a name.
    #[must_use]
    pub fn given_name(&self) -> Option<&'a str> {
        self.record.text(Tag::NAME)
    }
}

impl<'a> Events<'a> {
    /// Entities an event is about, in the order in which the runtime names it.
    pub fn subjects(&self, row: &EventRow<'a>) -> impl Iterator<Item = Subject<'a>> + use<'a, '_> {
        let names = self.names.get(row.names);
        row.record.fields().filter_map(move |field| match field.value {
            Value::Entity(entity) => Some(subject(names, field.tag, entity)),
            _ => None,
        })
    }
}

fn subject<'a>(names: Option<&EventNames<'a>>, tag: Tag, entity: EntityRef) -> Subject<'a> {
    Subject { role: role(tag), id: entity.id, name: names.and_then(|names| names.name(tag, entity)) }
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

/// The events of the selected processes and threads.
///
/// # Errors
/// When no process or thread is meant, or `events` was not recorded.
pub fn events<'a>(recording: &'a Recording, query: &EventQuery) -> Result<Events<'a>, QueryProblem> {
    query.query.without_metric("events")?;
    let mut found = Events::default();
    for selected in select::threads(recording, &query.query)? {
        for arena in selected.process.arenas(instrument::EVENTS) {
            let names = EventNames::read(selected.process, arena);
            let mut rows = replay::replay(selected.process, arena, found.names.len());
            rows.retain(|row| wants(query, row, &names));
            found.rows.append(&mut rows);
            found.names.push(names);
        }
    }
    if found.names.is_empty() {
        return Err(QueryProblem::NotRecorded { view: "events", instrument: instrument::EVENTS });
    }
    if query.interleave {
        // The sort is stable: what happened at the same time keeps its order.
        found.rows.sort_by_key(|row| row.time_ns);
    }
    found.left_out = query.query.cut(&mut found.rows);
    Ok(found)
}

fn wants(query: &EventQuery, row: &EventRow<'_>, names: &EventNames<'_>) -> bool {
    let filters = &query.query;
    let here_and_now = filters.wants_time(row.time_ns) && filters.wants_thread_if_known(row.thread);
    let in_group = query.groups.is_empty() || row.kind().group().is_some_and(|group| query.groups.contains(&group));
    here_and_now && in_group && wants_function(filters, row, names) && wants_name(query, row, names)
}

fn wants_function(query: &Query, row: &EventRow<'_>, names: &EventNames<'_>) -> bool {
    !query.filters_functions()
        || row.record.fields().any(|field| match field.value {
            Value::Entity(entity) => names
                .function(field.tag, entity)
                .is_some_and(|function| query.wants_function(names.module_of(function), &function.name)),
            _ => false,
        })
}

fn wants_name(query: &EventQuery, row: &EventRow<'_>, names: &EventNames<'_>) -> bool {
    let is_about = |glob: &Glob| {
        row.record.fields().any(|field| match field.value {
            Value::Entity(entity) => names.name(field.tag, entity).is_some_and(|name| glob.matches(name)),
            Value::Text(text) => field.tag == Tag::NAME && glob.matches(text),
            Value::Number(_) | Value::Bytes(_) => false,
        })
    };
    query.names.is_empty() || query.names.iter().any(|glob| glob.matches(row.event()) || is_about(glob))
}
