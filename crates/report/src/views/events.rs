//! The view `events`.

use std::io;

use clrscope_analysis::{EventLog, EventQuery, EventRow};
use clrscope_recording::model::Recording;
use serde_json::{Map, Value, json};

use super::SELECTION;
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::text::events::{Threads, event_line, thread_title};
use crate::render::{Layout, LogEntry, LogGroup, Renderer, Section, Style, Tail, ThreadKey};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `events`.
pub(super) static VIEW: View = View {
    name: "events",
    about: "Callbacks of the runtime, as a log",
    takes: &[
        SELECTION,
        &[Flag::Limit, Flag::PerThread, Flag::Follow, Flag::Group, Flag::Name, Flag::Interleave, Flag::Output],
    ],
    sorts: &[],
    text_rows: |_| None,
    has_head: false,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request, _| {
        let query = EventQuery {
            query: request.query.clone(),
            groups: request.groups.clone(),
            names: request.names.clone(),
            // News come from all threads.
            interleave: request.interleave || request.follow,
        };
        let log = EventLog::open(recording, &query)?;
        Ok(Box::new(OpenView { log, request: request.clone(), recording, interleave: query.interleave }))
    },
};

struct EventRows;

impl RowKind for EventRows {
    type Row<'a> = EventEntry<'a>;
}

/// A row, and how threads are shown.
struct EventEntry<'a> {
    row: &'a EventRow<'a>,
    threads: Threads,
    processes: bool,
}

impl EventEntry<'_> {
    fn names(&self) -> Map<String, Value> {
        let mut names = Map::new();
        for subject in self.row.subjects() {
            let id = format!("{:#x}", subject.id);
            names.insert(subject.role.to_owned(), json!(subject.name.unwrap_or(&id)));
        }
        if let Some(name) = self.row.given_name() {
            names.insert("given".to_owned(), json!(name));
        }
        names
    }

    fn ids(&self) -> Map<String, Value> {
        let subjects = self.row.subjects().map(|subject| (subject.role, subject.id));
        let others = self.row.details().filter(|(key, _)| ADDRESSES.contains(key));
        subjects.chain(others).map(|(key, id)| (key.to_owned(), json!(format!("{id:#x}")))).collect()
    }

    fn detail(&self, key: &str) -> Cell<'_> {
        let found = self.row.details().find(|(known, _)| *known == key);
        match found {
            Some((key, value)) if FLAGS.contains(&key) => Cell::Flag(value != 0),
            Some((_, value)) => Cell::Count(value),
            None => Cell::Absent,
        }
    }
}

/// Details that are addresses, which are shown among the ids.
const ADDRESSES: [&str; 2] = ["object", "handle"];
/// Details that are flags.
const FLAGS: [&str; 2] = ["found", "critical"];
/// Roles of an event's entities, as keys of `names`.
const NAMES: &[&str] =
    &["function", "callee", "class", "module", "assembly", "app_domain", "thread", "provider", "given"];
/// Roles of an event's entities, as keys of `ids`.
const IDS: &[&str] =
    &["function", "callee", "class", "module", "assembly", "app_domain", "thread", "provider", "object", "handle"];

impl Row for EventEntry<'_> {
    fn log(&self) -> Option<&dyn LogEntry> {
        Some(self)
    }
}

impl LogEntry for EventEntry<'_> {
    fn order_key(&self) -> (ThreadKey, u64) {
        ((self.row.process.pid, self.row.thread.map_or(0, |thread| thread.id)), self.row.time_ns)
    }

    fn group(&self) -> LogGroup {
        match self.threads {
            Threads::Apart => LogGroup::Thread(self.order_key().0),
            Threads::Mixed => LogGroup::Mixed(false),
            Threads::OfProcesses => LogGroup::Mixed(true),
        }
    }

    fn heading(&self) -> String {
        match self.threads {
            Threads::Apart => thread_title(self.processes.then_some(self.row.process.pid), self.row.thread) + "\n",
            threads => threads.heading(),
        }
    }

    fn line(&self) -> String {
        event_line(self.row, self.threads)
    }
}

fn sheet<'c>(processes: bool) -> Sheet<'c, EventRows> {
    let word = |key, of: fn(&EventRow<'_>) -> &'static str| {
        Column::new(key, key, Kind::Text, move |row: &EventEntry<'_>| Cell::text(of(row.row)))
    };
    let mut columns = vec![
        Column::new("time_ns", "time", Kind::Time, |row: &EventEntry<'_>| Cell::Time(row.row.time_ns)),
        Column::new("thread", "thread", Kind::Thread, |row: &EventEntry<'_>| {
            Cell::or_null(row.row.thread, Cell::Thread)
        }),
        Column::new("depth", "depth", Kind::Count, |row: &EventEntry<'_>| Cell::Count(row.row.depth.into())),
        word("group", |row| row.group()),
        word("event", |row| row.event()),
        word("phase", |row| row.phase()),
        Column::new("pid", "process", Kind::Number, |row: &EventEntry<'_>| Cell::Number(row.row.process.pid.into()))
            .only_if(processes),
        Column::new("names", "names", Kind::Nested, |row: &EventEntry<'_>| Cell::Nested(Value::Object(row.names())))
            .parts(NAMES),
        Column::new("ids", "ids", Kind::Nested, |row: &EventEntry<'_>| Cell::Nested(Value::Object(row.ids())))
            .parts(IDS),
        Column::new("result", "result", Kind::Text, |row: &EventEntry<'_>| {
            Cell::or_null(row.row.result(), |result| Cell::Text(result.into()))
        }),
        Column::new("reason", "reason", Kind::Text, |row: &EventEntry<'_>| Cell::or_null(row.row.reason(), Cell::text)),
        Column::new("duration_ns", "duration", Kind::Time, |row: &EventEntry<'_>| {
            Cell::or_null(row.row.duration_ns, Cell::Time)
        }),
    ];
    for (key, kind) in DETAILS {
        columns.push(Column::new(key, key, kind, move |row: &EventEntry<'_>| row.detail(key)));
    }
    Sheet::new(columns)
}

/// Further columns of events.
const DETAILS: [(&str, Kind); 8] = [
    ("os_thread", Kind::Number),
    ("count", Kind::Count),
    ("bytes", Kind::Count),
    ("rejit", Kind::Number),
    ("generations", Kind::Number),
    ("token", Kind::Number),
    ("found", Kind::Flag),
    ("critical", Kind::Flag),
];

struct OpenView<'a> {
    log: EventLog<'a>,
    request: Request,
    recording: &'a Recording,
    interleave: bool,
}

impl Answer for OpenView<'_> {
    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let processes = self.recording.processes.len() > 1;
        let threads = if self.interleave { Threads::mixed(processes) } else { Threads::Apart };
        let sheet = sheet(processes);
        let section = Section {
            nothing: "No events to show: none was recorded, or the filters leave nothing.".to_owned(),
            what: "events",
            ..sheet.main(&self.request, "rows", Style::Log, &[])
        };
        renderer.section(&section, &mut |visit| {
            let left_out = self.log.walk(|row| visit(&sheet.entry(&EventEntry { row, threads, processes })))?;
            Ok(Tail::from(left_out))
        })
    }
}
