//! Patterns of the request that matched nothing: probably misspelt.

use std::fmt;

use clrscope_contract::request::Glob;
use clrscope_recording::model::Recording;

/// A pattern that matched nothing in any process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedPattern {
    /// The option it was given with, as on the command line.
    pub option: &'static str,
    /// The pattern.
    pub pattern: String,
}

impl fmt::Display for UnmatchedPattern {
    /// `--include '[App]*' matched nothing`, in words that say what it could have matched.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what =
            if self.option == "--redact" { "no argument or field that was recorded" } else { "no function that ran" };
        write!(f, "{} '{}' matched {what}", self.option, self.pattern)
    }
}

/// The includes, excludes and redactions that matched nothing in any process of the recording. Empty
/// where no process was recorded.
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
    let all = all.chain(names.map(|name| ("--redact", name)));
    let has_matched = |(option, pattern): &(&'static str, String)| {
        let word = format!("{}={pattern}", option.trim_start_matches('-'));
        recorded.iter().any(|process| process.matched_patterns.contains(&word))
    };
    all.filter(|one| !has_matched(one)).map(|(option, pattern)| UnmatchedPattern { option, pattern }).collect()
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::{Process, Run};

    use super::*;

    #[test]
    fn what_matched_in_no_process_is_named() {
        let filled = "calls;include=[A]*;include=[B]*;exclude=*::Skip;redact=pass*;rate=500".into();
        let matched = |words: &[&str]| Process {
            matched_patterns: words.iter().map(|word| (*word).to_owned()).collect(),
            ..Process::default()
        };
        let run = Run { filled, ..Run::default() };
        let processes = vec![matched(&["include=[A]*"]), matched(&["redact=pass*", "exclude=[B]*"])];
        let found = unmatched_patterns(&Recording { run: run.clone(), processes, ..Recording::default() });
        let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            ["--include '[B]*' matched no function that ran", "--exclude '*::Skip' matched no function that ran"]
        );
        assert_eq!(unmatched_patterns(&Recording { run, ..Recording::default() }), [], "nothing was recorded");
    }
}
