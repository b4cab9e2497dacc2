//! The head of a report: the program, its duration, the runtime, and missing data.

use anstyle::Style;
use clrscope_analysis::{Conditions, ProcessConditions, Program, own_programs};
use clrscope_recording::model::Recording;

use super::facts::{self, Fact, runtime};
use super::names::{columns, shortened};
use super::units::{count, share};
use super::{FAINT, TITLE, WARNING, one_line, sampling, styled};

/// Columns of the labels on the left.
const LABELS: usize = 11;
/// Minimum width of the command in columns, however narrow the screen is.
const LEAST_COMMAND: usize = 20;

/// Maximum number of warnings that a head lists; the view `conditions` has all.
const MOST_WARNINGS: usize = 3;

/// The head of a report about `recording`: a line about the run, a line about what was recorded,
/// and what is missing. `verbose` adds all facts about how the recording's numbers came about.
pub(super) fn head(recording: &Recording, conditions: &Conditions<'_>, width: usize, verbose: bool) -> String {
    let mut head = Head { text: String::new(), width };
    if verbose {
        let command = shortened(&command(recording), width);
        head.text.push_str(&(styled(TITLE, &command) + "\n"));
        head.text.push_str(&facts(&facts::facts(recording, conditions), width));
    } else {
        head.run(recording, conditions);
        head.recorded(recording, conditions);
        let reduced = facts::only_part(recording).into_iter().chain(facts::only_requests(recording));
        reduced.for_each(|fact| head.line(fact.key, &fact.text));
        head.warnings(recording, conditions);
    }
    head.text.push('\n');
    head.text
}

fn command(recording: &Recording) -> String {
    let command = one_line(recording.run.command.join(" "));
    if command.is_empty() { "(no command)".to_owned() } else { command }
}

/// Facts, a label before the first of each kind.
fn facts(facts: &[Fact], width: usize) -> String {
    let mut head = Head { text: String::new(), width };
    let mut before = "";
    for fact in facts {
        let style = if fact.is_warning { WARNING } else { FAINT };
        head.labelled(style, if fact.key == before { "" } else { fact.key }, &fact.text);
        before = fact.key;
    }
    head.text
}

/// A label and a text, as lines of at most `width` columns.
pub(super) fn fact(label: &str, text: &str, width: usize) -> String {
    let mut head = Head { text: String::new(), width };
    head.line(label, text);
    head.text
}

struct Head {
    text: String,
    width: usize,
}

impl Head {
    fn line(&mut self, label: &str, text: &str) {
        self.labelled(FAINT, label, text);
    }

    /// A label and a text, wrapped at spaces.
    fn labelled(&mut self, style: Style, label: &str, text: &str) {
        let room = self.width.saturating_sub(LABELS).max(20);
        let label = styled(style, &format!("{label:<LABELS$}"));
        let indent = format!("\n{}", " ".repeat(LABELS));
        self.text.push_str(&format!("{label}{}\n", wrapped(&one_line(text), room).join(&indent)));
    }

    /// Line about the run: the command, how long it ran, how it ended, and the runtime. The date is
    /// left out first, then a part of the command.
    fn run(&mut self, recording: &Recording, conditions: &Conditions<'_>) {
        let command = format!("'{}", command(recording));
        let of_run = format!("': {}, {}", facts::length_and_end(recording), runtimes(&conditions.processes));
        let date = facts::date(recording).map_or_else(String::new, |date| format!(", {date}"));
        let room = |rest: &str| self.width.saturating_sub(columns(rest));
        let rest = if columns(&command) + columns(&date) <= room(&of_run) { of_run.clone() + &date } else { of_run };
        let command = shortened(&command, room(&rest).max(LEAST_COMMAND));
        let lines = wrapped(&rest, self.width.saturating_sub(columns(&command)).max(LEAST_COMMAND));
        self.text.push_str(&format!("{}{}\n", styled(TITLE, &command), lines.join("\n")));
    }

    /// Line about what was recorded: samples, parts, and which process is the user's own.
    fn recorded(&mut self, recording: &Recording, conditions: &Conditions<'_>) {
        let mut all = vec![sampling::recorded(recording.run.given.instruments(), &conditions.sampling, self.width)];
        all.extend(facts::number_of_parts(recording));
        all.extend(which_process(recording, &conditions.processes));
        all.retain(|text| !text.is_empty());
        let lines = wrapped(&one_line(all.join("; ")), self.width);
        self.text.push_str(&lines.iter().map(|line| styled(FAINT, line) + "\n").collect::<String>());
    }

    /// The first warnings, and the number of the others.
    fn warnings(&mut self, recording: &Recording, conditions: &Conditions<'_>) {
        let mut all = facts::facts(recording, conditions);
        all.retain(|fact| fact.is_warning);
        let more = all.len().saturating_sub(MOST_WARNINGS);
        all.truncate(MOST_WARNINGS);
        self.text.push_str(&facts(&all, self.width));
        if more > 0 {
            self.line("", &format!("and {} more: --view conditions", count(more as u64)));
        }
    }
}

/// Number of processes if there are several, and their runtimes.
fn runtimes(processes: &[ProcessConditions<'_>]) -> String {
    let mut runtimes: Vec<&str> = processes.iter().map(runtime).collect();
    runtimes.sort_unstable();
    runtimes.dedup();
    let all = runtimes.join(", ");
    match processes.len() {
        1 => all,
        0 => "no process".to_owned(),
        number => format!("{} processes on {all}", count(number as u64)),
    }
}

/// Which one of several processes is the user's own, or has most of the time.
fn which_process(recording: &Recording, processes: &[ProcessConditions<'_>]) -> Option<String> {
    if processes.len() < 2 {
        return None;
    }
    let own = own_programs(recording);
    let is_own = |one: &&ProcessConditions<'_>| own.iter().any(|own| std::ptr::eq(*own, one.process));
    let own: Vec<&ProcessConditions<'_>> = processes.iter().filter(is_own).collect();
    let name = |one: &ProcessConditions<'_>| one_line(Program::from_process(one.process).name());
    let named = |one: &ProcessConditions<'_>| {
        format!("{} (process {}, {} of the time)", name(one), one.process.pid, share(one.share))
    };
    match own.as_slice() {
        [own] => Some(format!("yours is {}: --process {} shows it alone", named(own), name(own))),
        _ => {
            let most = processes.iter().reduce(|a, b| if b.share > a.share { b } else { a })?;
            Some(format!("most in {}; --view conditions has all", named(most)))
        }
    }
}

/// Lines of at most `room` columns, broken at spaces. A longer word gets a line of its own and is
/// shortened, unless it is quoted for the user to type: `--exclude
/// '[System.Reflection.Metadata]*'`.
pub(crate) fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if columns(line) + 1 + columns(word) <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    let is_typed = |line: &str| line.starts_with('\'') && !line.contains(' ');
    lines.iter().map(|line| if is_typed(line) { line.clone() } else { shortened(line, room) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_wrapped_at_spaces() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
        assert_eq!(wrapped("abcdefghijklmnopqrst", 10).len(), 1);
    }

    /// Advice of a long name was `--exclude '[System.Ref...::FromRowId'`, which matches nothing.
    #[test]
    fn advice_to_type_a_long_pattern_shows_it_whole() {
        let pattern = "'[System.Reflection.Metadata]System.Reflection.Metadata.MethodImplementationHandle::FromRowId'";
        let lines = wrapped(&format!("to reduce the overhead: --exclude {pattern}"), 40);
        assert_eq!(lines, ["to reduce the overhead: --exclude", pattern]);
        let unquoted = pattern.trim_matches('\'');
        assert!(columns(&wrapped(unquoted, 40)[0]) <= 40);
    }
}
