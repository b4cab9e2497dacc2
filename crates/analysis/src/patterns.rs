//! Patterns of the request that matched nothing, which is probably due to a spelling mistake.

use std::fmt;

use clrscope_contract::request::{Glob, LineHint, MissedLine, Pattern};
use clrscope_recording::model::{Process, Recording};

/// The option for probes, as on the command line.
const PROBE: &str = "--probe";

/// The option for lines, as on the command line.
const PROBE_AT: &str = "--probe-at";

/// A pattern that matched nothing in any process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedPattern {
    /// The command line option with which the pattern was given.
    pub option: &'static str,
    /// The pattern.
    pub pattern: String,
    /// The most similar names of functions, the most similar first.
    pub nearest: Vec<String>,
    /// The line, if the pattern names a line and the line has no code.
    pub line: Option<MissedLine>,
}

impl UnmatchedPattern {
    /// Whether the pattern selects methods to probe. Methods to probe are known when an assembly is
    /// loaded; functions for other purposes are known only when they run.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.option == PROBE || self.option == PROBE_AT
    }
}

impl fmt::Display for UnmatchedPattern {
    /// `--include '[App]*' matched nothing`, with the names that it could have matched.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(missed) = &self.line {
            return write!(f, "{} '{}': {missed}", self.option, self.pattern);
        }
        let what = match self.option {
            "--redact" => "no recorded argument or field",
            PROBE => "no method of any loaded assembly",
            _ => "no function that ran",
        };
        write!(f, "{} '{}' matched {what}", self.option, self.pattern)?;
        let near: Vec<String> = self.nearest.iter().map(|name| format!("'{name}'")).collect();
        if near.is_empty() { Ok(()) } else { write!(f, "; did you mean {}?", near.join(" or ")) }
    }
}

/// The includes, excludes, probes and redactions that matched nothing in any process of the
/// recording. Empty if no process was recorded.
#[must_use]
pub fn unmatched_patterns(recording: &Recording) -> Vec<UnmatchedPattern> {
    let recorded: Vec<_> = recording.processes.iter().filter(|process| process.refusal().is_none()).collect();
    let request = recording.run.filled.request();
    if recorded.is_empty() {
        return Vec::new();
    }
    let (include, exclude) = (&request.filter.include, &request.filter.exclude);
    let names = request.redact.iter().map(|text| Glob::new(text).as_str().to_owned());
    let all = include.iter().map(|pattern| ("--include", pattern.as_str().to_owned()));
    let all = all.chain(exclude.iter().map(|pattern| ("--exclude", pattern.as_str().to_owned())));
    let all = all.chain(request.probes.iter().map(|pattern| (PROBE, pattern.as_str().to_owned())));
    let all = all.chain(request.probe_lines.iter().map(|line| (PROBE_AT, line.to_string())));
    let all = all.chain(names.map(|name| ("--redact", name)));
    let has_matched = |(option, pattern): &(&'static str, String)| {
        let word = word(option, pattern);
        recorded.iter().any(|process| process.matched_patterns.contains(&word))
    };
    let unmatched = |(option, pattern): (&'static str, String)| {
        let line = (option == PROBE_AT).then(|| missed(&recorded, &pattern));
        let nearest = if line.is_none() { nearest(&recorded, option, &pattern) } else { Vec::new() };
        UnmatchedPattern { option, pattern, nearest, line }
    };
    all.filter(|one| !has_matched(one)).map(unmatched).collect()
}

/// The method names that are most similar to a probe pattern that was given during the recording
/// and matched nothing.
#[must_use]
pub fn methods_like(recording: &Recording, pattern: &str) -> Vec<String> {
    nearest(&recording.processes.iter().collect::<Vec<_>>(), PROBE, pattern)
}

/// A line that was given during the recording and has no code, with the lines that were probably
/// meant.
#[must_use]
pub fn missed_line(recording: &Recording, line: &str) -> MissedLine {
    missed(&recording.processes.iter().collect::<Vec<_>>(), line)
}

/// The line with the hints that the processes have recorded.
fn missed(processes: &[&Process], line: &str) -> MissedLine {
    let word = word(PROBE_AT, line);
    let noted = processes.iter().flat_map(|process| &process.near_names).filter(|noted| noted.pattern == word);
    MissedLine::new(line, noted.filter_map(|noted| LineHint::parse(&noted.name)))
}

/// The pattern in the form in which processes record it.
fn word(option: &str, pattern: &str) -> String {
    format!("{}={pattern}", option.trim_start_matches('-'))
}

/// The most similar of the names that the processes have recorded for a pattern.
fn nearest(processes: &[&Process], option: &str, pattern: &str) -> Vec<String> {
    let word = word(option, pattern);
    let Ok(parsed) = Pattern::parse(pattern) else { return Vec::new() };
    let mut near = parsed.near_names();
    let noted = processes.iter().flat_map(|process| &process.near_names);
    noted.filter(|noted| noted.pattern == word).for_each(|noted| _ = near.look_at(&noted.name));
    near.names().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::{NearName, Run};

    use super::*;

    #[test]
    fn lines_without_code_are_named_with_those_near_them() {
        let run = Run { filled: "probes;probe-at=Cart.cs:43;probe-at=Cart.cs:42".into(), ..Run::default() };
        let near = |name: &str| NearName { pattern: "probe-at=Cart.cs:43".into(), name: name.into() };
        let process = Process {
            matched_patterns: ["probe-at=Cart.cs:42".to_owned()].into(),
            near_names: vec![near("file /src/Card.cs"), near("line 42"), near("line 45"), near("of a later version")],
            ..Process::default()
        };
        let recording = Recording { run, processes: vec![process], ..Recording::default() };
        let found = unmatched_patterns(&recording);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert!(one.is_probe());
        assert_eq!(one.to_string(), "--probe-at 'Cart.cs:43': Cart.cs has no code at line 43; nearest: 42, 45");
        assert_eq!(missed_line(&recording, "Cart.cs:43").hint().as_deref(), Some("nearest: 42, 45"));
    }

    #[test]
    fn what_matched_in_no_process_is_named() {
        let filled = "calls;include=[A]*;include=[B]*;exclude=*::Skip;redact=pass*;rate=500".into();
        let matched = |words: &[&str]| Process {
            matched_patterns: words.iter().map(|word| (*word).to_owned()).collect(),
            ..Process::default()
        };
        let run = Run { filled, ..Run::default() };
        let mut processes = vec![matched(&["include=[A]*"]), matched(&["redact=pass*", "exclude=[B]*"])];
        let near = |name: &str| NearName { pattern: "exclude=*::Skip".into(), name: name.into() };
        processes[1].near_names = vec![near("A.B::Other"), near("A.B::Skipp"), near("A.B::SkipAll")];
        let found = unmatched_patterns(&Recording { run: run.clone(), processes, ..Recording::default() });
        let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "--include '[B]*' matched no function that ran",
                "--exclude '*::Skip' matched no function that ran; did you mean 'A.B::SkipAll' or 'A.B::Skipp'?"
            ]
        );
        assert_eq!(unmatched_patterns(&Recording { run, ..Recording::default() }), [], "nothing was recorded");
    }
}
