//! Rows of `exceptions`.

use clrscope_analysis::{Exception, ExceptionGroup, Exceptions, Frame, FunctionRef};
use clrscope_symbols::{Lines, SourceLine};
use serde_json::{Value, json};

use super::rows::thread_identity;
use super::values::add_captured;
use super::{Object, object};

/// A row per type and place. `with_pid` where a report shows more than one process.
pub fn exception_group(group: &ExceptionGroup<'_>, with_pid: bool) -> Object {
    let mut all = object([
        ("type", json!(group.type_name)),
        ("message", json!(group.message)),
        ("name", json!(group.place.map(|place| place.name()))),
        ("signature", json!(group.place.map(|place| place.signature()))),
        ("module", json!(group.place.map(|place| place.module()))),
        ("count", json!(group.count)),
        ("unhandled", json!(group.unhandled)),
        ("caught_by_runtime", json!(group.caught_by_runtime)),
        ("rethrown", json!(group.rethrown)),
        ("throw_to_catch_ns", json!(group.throw_to_catch_ns)),
        ("longest_ns", json!(group.longest_ns)),
        ("first_ns", json!(group.first_ns)),
        ("last_ns", json!(group.last_ns)),
    ]);
    if with_pid {
        all.insert("pid".to_owned(), json!(group.process.pid));
    }
    all
}

/// A row per throw, with its whole story.
pub fn exception(view: &Exceptions<'_>, exception: &Exception<'_>, lines: &mut Lines, with_pid: bool) -> Object {
    let names = |functions: &[FunctionRef<'_>]| functions.iter().map(named).collect::<Vec<_>>();
    let filter = |filter: &clrscope_analysis::Filter<'_>| {
        let mut row = function(&filter.function);
        row.insert("accepted".to_owned(), json!(filter.accepted));
        Value::Object(row)
    };
    let mut all = object([
        ("number", json!(exception.number)),
        ("type", json!(exception.type_name)),
        ("message", json!(exception.message)),
        ("name", json!(exception.place().map(|place| place.name()))),
        ("thread", exception.thread.map_or(Value::Null, |thread| json!(thread_identity(thread)))),
        ("time_ns", json!(exception.time_ns)),
        ("stack", exception.stack.iter().map(|f| Value::Object(frame(view, exception, &f, lines))).collect()),
        ("stack_cut", json!(exception.stack_cut)),
        ("search", json!(names(&exception.search))),
        ("filters", exception.filters.iter().map(filter).collect()),
        ("unwound", json!(names(&exception.unwound))),
        ("finally", json!(names(&exception.finally))),
        ("catcher", json!(exception.catcher.as_ref().map(named))),
        ("caught_by_runtime", json!(exception.caught_by_runtime)),
        ("unhandled", json!(exception.unhandled)),
        ("rethrow_of", json!(exception.rethrow_of)),
        ("replaced_by", json!(exception.replaced_by)),
        ("inner", json!(exception.inner.map(|inner| json!({"type": inner.type_name, "number": inner.number})))),
        ("throw_to_catch_ns", json!(exception.throw_to_catch_ns)),
    ]);
    if with_pid {
        all.insert("pid".to_owned(), json!(exception.process.pid));
    }
    all
}

fn named(of: &FunctionRef<'_>) -> Value {
    Value::Object(function(of))
}

fn function(of: &FunctionRef<'_>) -> Object {
    object([("name", json!(of.name())), ("signature", json!(of.signature())), ("module", json!(of.module()))])
}

fn frame(view: &Exceptions<'_>, exception: &Exception<'_>, frame: &Frame<'_>, lines: &mut Lines) -> Object {
    let mut row = function(&frame.function);
    row.insert("il_offset".to_owned(), json!(frame.il_offset));
    let of = &frame.function;
    let line = frame.il_offset.and_then(|at| lines.find(&of.module.path, of.token(), at));
    if let Some(SourceLine { file, line }) = line {
        row.insert("file".to_owned(), json!(file));
        row.insert("line".to_owned(), json!(line));
    }
    if let Some(captured) = view.captured(exception, frame) {
        add_captured(&mut row, &captured, true);
    }
    row
}
