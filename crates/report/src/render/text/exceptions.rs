//! One exception in detail, as text: throw, stack, search, unwind and catch.

use clrscope_analysis::{Exception, ExceptionLog, FunctionRef};
use clrscope_symbols::Lines;

use super::events::thread_title;
use super::units::time;
use super::values::arguments;
use super::{TITLE, WARNING, one_line, styled};

/// One exception in detail, in lines.
pub(crate) fn details(view: &ExceptionLog<'_>, exception: &Exception<'_>, lines: &mut Lines, several: bool) -> String {
    let mut text = String::new();
    write_details(&mut text, view, exception, lines, several);
    text
}

fn write_details(
    text: &mut String,
    view: &ExceptionLog<'_>,
    exception: &Exception<'_>,
    lines: &mut Lines,
    several: bool,
) {
    let title = format!("#{} {}", exception.number, one_line(exception.type_name));
    let message = exception.message.as_deref().map_or_else(String::new, |message| format!(": {}", one_line(message)));
    text.push_str(&format!("{}{message}\n", styled(TITLE, &title)));
    let mut line = |words: &str| text.push_str(&format!("  {words}\n"));
    let thread = thread_title(several.then_some(exception.process.pid), exception.thread);
    line(&format!("thrown at {} on {thread}", time(exception.time_ns)));
    if let Some(number) = exception.rethrow_of {
        line(&format!("rethrown: the object of #{number}"));
    }
    if let Some(inner) = exception.inner {
        let number = inner.number.map_or_else(String::new, |number| format!(" (#{number})"));
        line(&format!("inner exception {}{number}", one_line(inner.type_name)));
    }
    let mut frames: Vec<String> = Vec::new();
    for frame in exception.stack.iter() {
        let of = &frame.function;
        let found = frame.il_offset.and_then(|at| lines.find(&of.module.path, of.token(), at));
        let place = found.map_or_else(String::new, |found| format!(" in {}:{}", one_line(found.file), found.line));
        frames.push(format!("  at {}{}{place}", name(of), module(of)));
        if let Some(captured) = view.captured(exception, &frame) {
            frames.push(format!("       called with {}", one_line(arguments(&captured))));
        }
    }
    folded(frames).iter().for_each(|frame| line(frame));
    if exception.stack_cut {
        line("  ... and further frames");
    }
    steps(exception, &mut line);
    line(&end(exception));
    text.push('\n');
}

/// Search, filters, unwind and finally blocks.
fn steps(exception: &Exception<'_>, line: &mut impl FnMut(&str)) {
    let list = |functions: &[FunctionRef<'_>]| folded(functions.iter().map(name).collect()).join(", ");
    if !exception.search.is_empty() {
        line(&format!("searched for a handler: {}", list(&exception.search)));
    }
    for filter in &exception.filters {
        let answer = match filter.accepted {
            Some(true) => "accepted",
            Some(false) => "rejected",
            None => "did not end",
        };
        line(&format!("filter of {} {answer}", name(&filter.function)));
    }
    if !exception.unwound.is_empty() {
        line(&format!("unwound: {}", list(&exception.unwound)));
    }
    if !exception.finally.is_empty() {
        line(&format!("finally blocks: {}", list(&exception.finally)));
    }
}

/// Texts of which those that follow each other and are equal, as the frames of a recursion, are one: `at Deep (x 31)`.
fn folded(texts: Vec<String>) -> Vec<String> {
    let mut folded: Vec<(String, usize)> = Vec::new();
    for text in texts {
        match folded.last_mut() {
            Some((last, times)) if *last == text => *times += 1,
            _ => folded.push((text, 1)),
        }
    }
    let shown = |(text, times)| if times == 1 { text } else { format!("{text} (x {times})") };
    folded.into_iter().map(shown).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_recursion_are_one() {
        let texts = ["at A", "at B", "at B", "at B", "at A"].map(str::to_owned).to_vec();
        assert_eq!(folded(texts), ["at A", "at B (x 3)", "at A"]);
        assert!(folded(Vec::new()).is_empty());
    }
}
