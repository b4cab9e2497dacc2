//! The head of a report: the program, its duration, the runtime, and missing data.

use anstyle::Style;
use clrscope_analysis::{Conditions, ProcessConditions, Program, own_programs};
use clrscope_contract::instruments::DEFAULT;
use clrscope_recording::model::Recording;

use super::facts::{self, Fact, OF_SAMPLES, runtime};
use super::names::{columns, shortened};
use super::one_line;
use super::units::{count, share};
use super::{FAINT, TITLE, WARNING, styled};

/// Columns of the labels on the left.
const LABELS: usize = 11;

/// The head of a report about `recording`; with `verbose`, all facts about how its numbers came
/// about.
pub(super) fn head(recording: &Recording, conditions: &Conditions<'_>, width: usize, verbose: bool) -> String {
    let mut head = Head { text: String::new(), width };
    let command = one_line(recording.run.command.join(" "));
    head.text.push_str(&styled(TITLE, &shortened(if command.is_empty() { "(no command)" } else { &command }, width)));
    head.text.push('\n');
    if verbose {
        head.text.push_str(&facts(&facts::facts(recording, conditions), width));
    } else {
        let run = facts::run(recording);
        head.line(run.key, &run.text);
        let reduced = facts::parts(recording).into_iter().chain(facts::only_requests(recording));
        reduced.for_each(|fact| head.line(fact.key, &fact.text));
        head.processes(recording, &conditions.processes);
        facts::labels(conditions).iter().for_each(|fact| head.line(fact.key, &fact.text));
        let given = recording.run.given.text();
        if !given.is_empty() && given != DEFAULT.name {
            // With spaces the line can be wrapped.
            head.line("recorded", &given.replace(',', ", ").replace(';', "; "));
        }
        let missing: Vec<Fact> = facts::facts(recording, conditions)
            .into_iter()
            .filter(|fact| fact.is_warning || OF_SAMPLES.contains(&fact.key))
            .collect();
        head.text.push_str(&facts(&missing, width));
    }
    head.text.push('\n');
    head.text
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

    /// Line about the process; where there were several, their number and which one is the user's
    /// own.
    fn processes(&mut self, recording: &Recording, processes: &[ProcessConditions<'_>]) {
        if let [only] = processes {
            let end = facts::open_end(recording, only);
            return self.line("runtime", &format!("{}, process {}{end}", runtime(only), only.process.pid));
        }
        let mut runtimes: Vec<&str> = processes.iter().map(runtime).collect();
        runtimes.sort_unstable();
        runtimes.dedup();
        let all = format!("{} on {}", count(processes.len() as u64), runtimes.join(", "));
        let is_own =
            |one: &&ProcessConditions<'_>| own_programs(recording).iter().any(|own| std::ptr::eq(*own, one.process));
        let named = |one: &ProcessConditions<'_>| {
            let name = one_line(Program::from_process(one.process).name());
            format!("{name} (process {}, {} of the time)", one.process.pid, share(one.share))
        };
        let own: Vec<&ProcessConditions<'_>> = processes.iter().filter(is_own).collect();
        let most = processes.iter().reduce(|a, b| if b.share > a.share { b } else { a });
        let which = match (own.as_slice(), most) {
            ([own], _) if processes.len() > 1 => {
                let name = one_line(Program::from_process(own.process).name());
                format!("; yours is {}: --process {name} shows it alone", named(own))
            }
            (_, Some(most)) => format!("; most in {}; --view conditions has all", named(most)),
            (_, None) => String::new(),
        };
        self.line("processes", &format!("{all}{which}"));
    }
}

/// Lines of at most `room` columns, broken at spaces; a longer word gets a line of its own, and is
/// shortened unless it is quoted for the user to type: `--exclude '[System.Reflection.Metadata]*'`.
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
        let lines = wrapped(&format!("what spares it: --exclude {pattern}"), 40);
        assert_eq!(lines, ["what spares it: --exclude", pattern]);
        let unquoted = pattern.trim_matches('\'');
        assert!(columns(&wrapped(unquoted, 40)[0]) <= 40);
    }
}
