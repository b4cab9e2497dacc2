//! The view `exceptions`: rows by type and throwing method, or every exception in detail.

use std::cell::RefCell;
use std::io;

use clrscope_analysis::{
    Conditions, Exception, ExceptionGroup, ExceptionLog, ExceptionQuery, Filter, Frame, FunctionRef, Sort, conditions,
};
use clrscope_recording::model::Recording;
use clrscope_symbols::Lines;
use serde_json::{Value, json};

use super::{REQUESTS, SELECTION};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::json::{Object, object, values};
use crate::render::text::exceptions::details;
use crate::render::{Layout, LogEntry, LogGroup, Renderer, Section, Style, Tail, ThreadKey};
use crate::request::{Flag, Request};
use crate::spot::LocatedLine;
use crate::view::{Answer, View};

/// The view `exceptions`.
pub(super) static VIEW: View = View {
    name: "exceptions",
    about: "Exceptions by type, place in own code and catcher; with --each, each one in detail",
    takes: &[SELECTION, REQUESTS, &[Flag::Limit, Flag::Name, Flag::Each, Flag::Verbose, Flag::Paths]],
    sorts: &[Sort::Calls, Sort::Inclusive, Sort::Name, Sort::Module],
    text_rows: |request| (!request.each).then_some(50),
    has_head: true,
    layout: Layout::Rows,
    columns: |request| if request.each { each(true).infos() } else { groups(true).infos() },
    open: |recording, request, _| {
        let query = ExceptionQuery { query: request.query.clone(), types: request.names.clone() };
        let log = ExceptionLog::open(recording, &query)?;
        Ok(Box::new(OpenView { log, request: request.clone(), recording }))
    },
};

/// Exceptions by type and throwing method.
struct Groups;

impl RowKind for Groups {
    type Row<'a> = ExceptionGroup<'a>;
}

impl Row for ExceptionGroup<'_> {}

fn groups<'c>(processes: bool) -> Sheet<'c, Groups> {
    let number = |key, title, of: fn(&ExceptionGroup<'_>) -> u64| {
        Column::new(key, title, Kind::Count, move |row: &ExceptionGroup<'_>| Cell::Count(of(row)))
    };
    // Where nothing was caught there is no time to the catch.
    let caught = |key, title, of: fn(&ExceptionGroup<'_>) -> u64| {
        Column::new(key, title, Kind::Time, move |row: &ExceptionGroup<'_>| match of(row) {
            0 => Cell::Time(0).said(""),
            ns => Cell::Time(ns),
        })
    };
    let moment = |key, title, of: fn(&ExceptionGroup<'_>) -> u64| {
        Column::new(key, title, Kind::Time, move |row: &ExceptionGroup<'_>| Cell::Time(of(row)))
    };
    Sheet::new([
        Column::new("type", "type", Kind::Type, |row: &ExceptionGroup<'_>| Cell::text(row.type_name)),
        Column::new("message", "first message", Kind::Text, |row: &ExceptionGroup<'_>| {
            Cell::or_null(row.message.as_deref(), Cell::text)
        }),
        Column::new("name", "name", Kind::Text, |row: &ExceptionGroup<'_>| {
            Cell::or_null(row.place, |place| Cell::text(place.name()).said(place.label()))
        }),
        Column::new("signature", "thrown by", Kind::Text, |row: &ExceptionGroup<'_>| match row.place {
            Some(place) => Cell::text(place.signature()),
            None => Cell::Null.said("(no stack)"),
        }),
        Column::new("module", "module", Kind::Text, |row: &ExceptionGroup<'_>| {
            Cell::or_null(row.place, |place| Cell::text(place.module()))
        }),
        // Without own code on the stack, people see the throwing method.
        Column::new("own_place", "in own code", Kind::Function, |row: &ExceptionGroup<'_>| {
            match (row.own_place, row.place) {
                (Some(own), _) => Cell::function(&own),
                (None, Some(place)) => Cell::Null.said(format!("({})", place.label())),
                (None, None) => Cell::Null.said("(no stack)"),
            }
        }),
        Column::new("caught_by", "caught by", Kind::Function, |row: &ExceptionGroup<'_>| match row.catcher {
            Some(catcher) => Cell::function(&catcher),
            None if row.caught_by_runtime > 0 => Cell::Null.said("(the runtime)"),
            None if row.unhandled > 0 => Cell::Null.said("(nobody)"),
            None => Cell::Null,
        }),
        number("exceptions", "thrown", |row| row.exceptions()),
        number("count", "throws", |row| row.count),
        number("unhandled", "unhandled", |row| row.unhandled),
        number("caught_by_runtime", "caught by runtime", |row| row.caught_by_runtime),
        number("rethrown", "rethrown", |row| row.rethrown),
        caught("throw_to_catch_ns", "to catch", |row| row.throw_to_catch_ns),
        caught("longest_ns", "longest", |row| row.longest_ns),
        moment("first_ns", "first", |row| row.first_ns),
        moment("last_ns", "last", |row| row.last_ns),
        Column::new("pid", "process", Kind::Number, |row: &ExceptionGroup<'_>| Cell::Number(row.process.pid.into()))
            .only_if(processes),
    ])
}

/// Columns of exceptions by type and place in text.
fn text(groups: &[ExceptionGroup<'_>]) -> Vec<(&'static str, u8)> {
    shown(&[
        ("exceptions", 0, true),
        ("rethrown", 0, groups.iter().any(|group| group.rethrown > 0)),
        ("throw_to_catch_ns", 1, true),
        ("longest_ns", 5, true),
        ("unhandled", 0, groups.iter().any(|group| group.unhandled > 0)),
        ("type", 0, true),
        ("own_place", 0, true),
        ("caught_by", 0, true),
        ("signature", 4, true),
        ("message", 2, true),
    ])
}

/// Each exception.
struct Stories;

impl RowKind for Stories {
    type Row<'a> = StoryEntry<'a>;
}

/// An exception, and the log in which its parts are looked up.
struct StoryEntry<'a> {
    exception: &'a Exception<'a>,
    view: &'a ExceptionLog<'a>,
    lines: &'a RefCell<Lines>,
    processes: bool,
}

impl Row for StoryEntry<'_> {
    fn log(&self) -> Option<&dyn LogEntry> {
        Some(self)
    }
}

impl LogEntry for StoryEntry<'_> {
    fn order_key(&self) -> (ThreadKey, u64) {
        let exception = self.exception;
        ((exception.process.pid, exception.thread.map_or(0, |thread| thread.id)), exception.time_ns)
    }

    fn group(&self) -> LogGroup {
        LogGroup::Mixed(false)
    }

    fn heading(&self) -> String {
        String::new()
    }

    fn line(&self) -> String {
        details(self.view, self.exception, &mut self.lines.borrow_mut(), self.processes)
    }
}

impl StoryEntry<'_> {
    fn stack(&self) -> Cell<'_> {
        Cell::Nested(self.exception.stack.iter().map(|frame| Value::Object(self.frame(&frame))).collect())
    }

    fn frame(&self, frame: &Frame<'_>) -> Object {
        let of = &frame.function;
        let mut row = function(of);
        row.insert("il_offset".to_owned(), json!(frame.il_offset));
        if let Some(found) = LocatedLine::find(&mut self.lines.borrow_mut(), of, frame.place) {
            row.insert("file".to_owned(), json!(found.line.file));
            row.insert("line".to_owned(), json!(found.line.line));
            row.insert("line_by_call".to_owned(), json!(found.by_call));
        }
        if let Some(captured) = self.view.captured(self.exception, frame) {
            let taken = [
                ("this", values::this(&captured)),
                ("args", values::arguments(&captured, true)),
                ("returns", values::returns(&captured)),
            ];
            row.extend(taken.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        }
        row
    }
}

fn function(of: &FunctionRef<'_>) -> Object {
    object([("name", json!(of.name())), ("signature", json!(of.signature())), ("module", json!(of.module()))])
}

fn functions(of: &[FunctionRef<'_>]) -> Cell<'static> {
    Cell::Nested(of.iter().map(|of| Value::Object(function(of))).collect())
}

fn filters(of: &[Filter<'_>]) -> Cell<'static> {
    let filter = |filter: &Filter<'_>| {
        let mut row = function(&filter.function);
        row.insert("accepted".to_owned(), json!(filter.accepted));
        Value::Object(row)
    };
    Cell::Nested(of.iter().map(filter).collect())
}

fn each<'c>(processes: bool) -> Sheet<'c, Stories> {
    let list = |key, of: for<'r> fn(&'r Exception<'_>) -> &'r [FunctionRef<'r>]| {
        Column::new(key, key, Kind::Nested, move |row: &StoryEntry<'_>| functions(of(row.exception)))
    };
    let flag = |key, title, of: fn(&Exception<'_>) -> bool| {
        Column::new(key, title, Kind::Flag, move |row: &StoryEntry<'_>| Cell::Flag(of(row.exception)))
    };
    let number = |key, title, of: fn(&Exception<'_>) -> Option<u32>| {
        Column::new(key, title, Kind::Number, move |row: &StoryEntry<'_>| {
            Cell::or_null(of(row.exception), |number| Cell::Number(number.into()))
        })
    };
    Sheet::new([
        number("number", "number", |exception| Some(exception.number)),
        Column::new("type", "type", Kind::Type, |row: &StoryEntry<'_>| Cell::text(row.exception.type_name)),
        Column::new("message", "message", Kind::Text, |row: &StoryEntry<'_>| {
            Cell::or_null(row.exception.message.as_deref(), Cell::text)
        }),
        Column::new("name", "thrown by", Kind::Text, |row: &StoryEntry<'_>| {
            Cell::or_null(row.exception.thrower(), |place| Cell::text(place.name()).said(place.label()))
        }),
        Column::new("thread", "thread", Kind::Thread, |row: &StoryEntry<'_>| {
            Cell::or_null(row.exception.thread, Cell::Thread)
        }),
        Column::new("time_ns", "time", Kind::Time, |row: &StoryEntry<'_>| Cell::Time(row.exception.time_ns)),
        Column::new("stack", "stack", Kind::Nested, |row: &StoryEntry<'_>| row.stack()),
        flag("stack_cut", "stack cut", |exception| exception.stack_cut),
        list("search", |exception| &exception.search),
        Column::new("filters", "filters", Kind::Nested, |row: &StoryEntry<'_>| filters(&row.exception.filters)),
        list("unwound", |exception| &exception.unwound),
        list("finally", |exception| &exception.finally),
        Column::new("catcher", "caught by", Kind::Nested, |row: &StoryEntry<'_>| {
            Cell::or_null(row.exception.catcher, |catcher| Cell::Nested(Value::Object(function(&catcher))))
        })
        .parts(&["name", "signature", "module"]),
        flag("caught_by_runtime", "caught by runtime", |exception| exception.caught_by_runtime),
        flag("unhandled", "unhandled", |exception| exception.unhandled),
        flag("rethrown", "rethrown", |exception| exception.rethrown),
        number("rethrow_of", "rethrow of", |exception| exception.rethrow_of),
        number("replaced_by", "replaced by", |exception| exception.replaced_by),
        Column::new("inner", "inner", Kind::Nested, |row: &StoryEntry<'_>| {
            Cell::or_null(row.exception.inner, |inner| {
                Cell::Nested(json!({ "type": inner.type_name, "number": inner.number }))
            })
        })
        .parts(&["type", "number"]),
        Column::new("throw_to_catch_ns", "to catch", Kind::Time, |row: &StoryEntry<'_>| {
            Cell::or_null(row.exception.throw_to_catch_ns, Cell::Time)
        }),
        Column::new("pid", "process", Kind::Number, |row: &StoryEntry<'_>| {
            Cell::Number(row.exception.process.pid.into())
        })
        .only_if(processes),
    ])
}

struct OpenView<'a> {
    log: ExceptionLog<'a>,
    request: Request,
    recording: &'a Recording,
}

impl OpenView<'_> {
    fn stories(&self, nothing: String, renderer: &mut dyn Renderer) -> io::Result<()> {
        let (view, lines, processes) = (&self.log, &RefCell::default(), self.recording.processes.len() > 1);
        let sheet = each(processes);
        let main = sheet.main(&self.request, "rows", Style::Stories, &[]);
        let section = Section { nothing, what: "exceptions", ..main };
        renderer.section(&section, &mut |visit| {
            let left_out =
                view.walk(|exception| visit(&sheet.entry(&StoryEntry { exception, view, lines, processes })))?;
            Ok(Tail::from(left_out))
        })
    }
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let nothing = "No exceptions to show: nothing was thrown, or the filters leave nothing.".to_owned();
        if self.request.each {
            return self.stories(nothing, renderer);
        }
        let sheet = groups(self.recording.processes.len() > 1);
        let (groups, left_out) = self.log.groups();
        let main = sheet.main(&self.request, "rows", Style::Table, &text(&groups));
        let section = Section { nothing, ..main };
        renderer.section(&section, &mut |visit| {
            groups.iter().try_for_each(|group| visit(&sheet.entry(group)))?;
            let note = groups.iter().any(|group| group.rethrown > 0).then(|| RETHROWN.to_owned());
            Ok(Tail { left_out: left_out as u64, note })
        })
    }
}

/// Note below rows where some exception objects were thrown again.
const RETHROWN: &str = "An object counts once, at its first throw; 'rethrown' counts its later throws.";
