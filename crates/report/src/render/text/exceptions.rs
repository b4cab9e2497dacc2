//! One exception in detail, as text: throw, stack, search, unwind and catch.

use clrscope_analysis::{Exception, ExceptionLog, FunctionRef};
use clrscope_symbols::Lines;

use super::events::thread_title;
use super::units::{count, time};
use super::values::arguments;
use super::{TITLE, WARNING, one_line, styled};
use crate::spot::LocatedLine;

/// One exception in detail, as several lines of text.
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
    match exception.rethrow_of {
        Some(number) => line(&format!("rethrown: the object of #{number}")),
        None if exception.rethrown => line("rethrown: an object that had been thrown before"),
        None => {}
    }
    if let Some(inner) = exception.inner {
        let number = inner.number.map_or_else(String::new, |number| format!(" (#{number})"));
        line(&format!("inner exception {}{number}", one_line(inner.type_name)));
    }
    let mut frames: Vec<String> = Vec::new();
    for frame in exception.stack.iter() {
        let of = &frame.function;
        let place = LocatedLine::find(lines, of, frame.place).map_or_else(String::new, |found| {
            format!(" in {}:{}{}", one_line(&found.line.file), found.line.line, found.remark())
        });
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

/// Maximum number of methods in one round of a recursion.
const LONGEST_ROUND: usize = 8;
/// Minimum number of repetitions for which a round of several frames is folded.
const LEAST_ROUNDS: usize = 3;

/// Folds consecutive equal texts, such as the frames of a recursion, into one: `at Deep (x 31)`. A
/// recursion through several methods is folded into one round: `at Ping`, `at Pong (these 2 x 31)`.
fn folded(texts: Vec<String>) -> Vec<String> {
    let mut folded = Vec::new();
    let mut rest = texts.as_slice();
    while !rest.is_empty() {
        let (round, rounds) = repeated(rest);
        folded.extend_from_slice(&rest[..round]);
        if let Some(last) = folded.last_mut().filter(|_| rounds > 1) {
            let times = count(rounds as u64);
            *last += &if round == 1 { format!(" (x {times})") } else { format!(" (these {round} x {times})") };
        }
        rest = &rest[round * rounds..];
    }
    folded
}

/// Finds the round of texts that repeats at the beginning. Returns the length of the round, and how
/// often it occurs without a gap. Of several possible rounds, chooses the one that covers the most
/// texts.
fn repeated(texts: &[String]) -> (usize, usize) {
    let rounds = |round: usize| texts.chunks_exact(round).take_while(|chunk| *chunk == &texts[..round]).count();
    let one = (1, rounds(1));
    let several = (2..=LONGEST_ROUND.min(texts.len())).map(|round| (round, rounds(round)));
    let worth = several.filter(|(_, rounds)| *rounds >= LEAST_ROUNDS);
    // Of those that cover as much the shortest.
    worth.fold(one, |best, next| if next.0 * next.1 > best.0 * best.1 { next } else { best })
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

    #[test]
    fn a_recursion_through_several_methods_is_one_round() {
        let mut texts = vec!["at Throw".to_owned()];
        texts.extend(["at Pong", "at Ping"].into_iter().cycle().take(100_001).map(str::to_owned));
        texts.extend(["at Start", "at Start", "at Main"].map(str::to_owned));
        let expected = ["at Throw", "at Pong", "at Ping (these 2 x 50,000)", "at Pong", "at Start (x 2)", "at Main"];
        assert_eq!(folded(texts), expected);
        let twice = ["at A", "at B", "at A", "at B"].map(str::to_owned).to_vec();
        assert_eq!(folded(twice.clone()), twice, "what comes twice may well be chance");
    }
}
