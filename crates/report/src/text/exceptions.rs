//! The views `exceptions`: a table by type and place, or the whole story of each.

use clrscope_analysis::{Exception, Exceptions, FunctionRef};
use clrscope_symbols::Lines;

use super::events::thread_title;
use super::table::{Column, Table};
use super::units::{count, time, time_cell};
use super::values::arguments;
use super::{TITLE, WARNING, more, styled};
use crate::one_line;

/// The table.
pub fn exception_groups(view: &Exceptions<'_>, width: usize) -> String {
    if view.groups.is_empty() {
        return NOTHING.to_owned();
    }
    let mut table = Table::new(vec![
        Column::number("count", 0),
        Column::number("to catch", 1),
        Column::number("longest", 3),
        Column::number("rethrown", 5),
        Column::number("unhandled", 0),
        Column::words("type", 0),
        Column::words("thrown by", 0),
        Column::words("first message", 2),
    ]);
    for group in &view.groups {
        let place = group.place.map_or_else(|| "(no stack)".to_owned(), |place| one_line(place.signature()));
        table.row(vec![
            count(group.count),
            caught(group.throw_to_catch_ns),
            caught(group.longest_ns),
            count(group.rethrown),
            count(group.unhandled),
            one_line(group.type_name),
            place,
            one_line(group.message.unwrap_or("")),
        ]);
    }
    table.render(width) + &more(view.groups_left_out, "rows", width)
}

/// A time from throw to catch; none where nothing was caught.
fn caught(ns: u64) -> String {
    if ns == 0 { String::new() } else { time_cell(ns) }
}

const NOTHING: &str = "No exceptions to show: nothing was thrown, or the filters leave nothing.\n";

/// The stories.
pub fn exception_stories(view: &Exceptions<'_>, lines: &mut Lines, several: bool, width: usize) -> String {
    if view.each.is_empty() {
        return NOTHING.to_owned();
    }
    let mut text = String::new();
    for exception in &view.each {
        story(&mut text, view, exception, lines, several);
    }
    text + &more(view.each_left_out, "exceptions", width)
}

fn story(text: &mut String, view: &Exceptions<'_>, exception: &Exception<'_>, lines: &mut Lines, several: bool) {
    let title = format!("#{} {}", exception.number, one_line(exception.type_name));
    let message = exception.message.map_or_else(String::new, |message| format!(": {}", one_line(message)));
    text.push_str(&format!("{}{message}\n", styled(TITLE, &title)));
    let mut line = |words: &str| text.push_str(&format!("  {words}\n"));
    let thread = thread_title(several.then_some(exception.process.pid), exception.thread);
    line(&format!("thrown at {} on {thread}", time(exception.time_ns)));
    if let Some(number) = exception.rethrow_of {
        line(&format!("thrown again: it is #{number}"));
    }
    if let Some(inner) = exception.inner {
        let number = inner.number.map_or_else(String::new, |number| format!(" (#{number})"));
        line(&format!("within it {}{number}", one_line(inner.type_name)));
    }
    for frame in exception.stack.iter() {
        let of = &frame.function;
        let found = frame.il_offset.and_then(|at| lines.find(&of.module.path, of.token(), at));
        let place = found.map_or_else(String::new, |found| format!(" in {}:{}", found.file, found.line));
        line(&format!("  at {}{}{place}", name(of), module(of)));
        if let Some(captured) = view.captured(exception, &frame) {
            line(&format!("       given {}", arguments(&captured)));
        }
    }
    if exception.stack_cut {
        line("  ... and further frames");
    }
    steps(exception, &mut line);
    line(&end(exception));
    text.push('\n');
}

/// Search, filters, unwind and finally blocks.
fn steps(exception: &Exception<'_>, line: &mut impl FnMut(&str)) {
    let list = |functions: &[FunctionRef<'_>]| functions.iter().map(name).collect::<Vec<_>>().join(", ");
    if !exception.search.is_empty() {
        line(&format!("asked: {}", list(&exception.search)));
    }
    for filter in &exception.filters {
        let answer = match filter.accepted {
            Some(true) => "yes",
            Some(false) => "no",
            None => "nothing",
        };
        line(&format!("filter of {} said {answer}", name(&filter.function)));
    }
    if !exception.unwound.is_empty() {
        line(&format!("unwound: {}", list(&exception.unwound)));
    }
    if !exception.finally.is_empty() {
        line(&format!("finally blocks: {}", list(&exception.finally)));
    }
}

fn end(exception: &Exception<'_>) -> String {
    let took = exception.throw_to_catch_ns.map_or_else(String::new, |ns| format!(" after {}", time(ns)));
    match (&exception.catcher, exception.replaced_by) {
        (_, Some(number)) => format!("replaced by #{number}"),
        (Some(catcher), _) => format!("caught by {}{took}", name(catcher)),
        (None, None) if exception.caught_by_runtime => "caught by the runtime".to_owned(),
        (None, None) if exception.unhandled => styled(WARNING, "unhandled"),
        (None, None) => "not caught by the end of the recording".to_owned(),
    }
}

fn name(function: &FunctionRef<'_>) -> String {
    one_line(function.signature())
}

fn module(function: &FunctionRef<'_>) -> String {
    if function.module().is_empty() { String::new() } else { format!(" [{}]", one_line(function.module())) }
}
