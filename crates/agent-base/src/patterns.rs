//! Remembers which patterns have matched. A pattern that never matches is probably misspelt, and
//! the report says so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::FunctionName;
use clrscope_contract::request::{Filter, Glob, Pattern};
use clrscope_contract::words::NearNames;
use clrscope_recording::writer::ProcessWriter;

/// Some patterns of one option.
struct Marks {
    /// The patterns, as written in the recording.
    words: Vec<String>,
    seen: Vec<AtomicBool>,
    writer: &'static ProcessWriter,
}

/// Some patterns of functions. For those without a match so far, also the names that resemble them.
struct PatternWatch {
    marks: Marks,
    near: Vec<Mutex<NearNames>>,
}

impl PatternWatch {
    fn new(option: &str, patterns: &[Pattern], writer: &'static ProcessWriter) -> Self {
        let near = patterns.iter().map(|pattern| Mutex::new(pattern.near_names())).collect();
        Self { marks: Marks::new(option, patterns.iter().map(Pattern::as_str), writer), near }
    }

    /// The names that resemble a pattern.
    fn near_names(&self) -> Vec<String> {
        let of_one = |near: &Mutex<NearNames>| {
            let near = near.lock().unwrap_or_else(PoisonError::into_inner);
            near.names().map(str::to_owned).collect::<Vec<_>>()
        };
        self.near.iter().flat_map(of_one).collect()
    }

    fn look_at(&self, patterns: &[Pattern], function: &FunctionName) {
        self.look_by(Pattern::matches, patterns, function);
    }

    fn look_by(
        &self,
        is_meant: impl Fn(&Pattern, &str, &str, &str) -> bool,
        patterns: &[Pattern],
        function: &FunctionName,
    ) {
        let FunctionName { module, name, signature, .. } = function;
        self.marks.test(|at| {
            let matches = is_meant(&patterns[at], module, name, signature);
            if !matches && self.near[at].lock().unwrap_or_else(PoisonError::into_inner).look_at(name) {
                self.marks.writer.near_name(&self.marks.words[at], name);
            }
            matches
        });
    }
}

impl Marks {
    fn new<'t>(option: &str, patterns: impl Iterator<Item = &'t str>, writer: &'static ProcessWriter) -> Self {
        let words: Vec<String> = patterns.map(|pattern| format!("{option}={pattern}")).collect();
        let seen = words.iter().map(|_| AtomicBool::new(false)).collect();
        Self { words, seen, writer }
    }

    /// Tests the patterns that have not matched anything yet with `matches`.
    fn test(&self, matches: impl Fn(usize) -> bool) {
        for (at, seen) in self.seen.iter().enumerate() {
            if !seen.load(Ordering::Relaxed) && matches(at) && !seen.swap(true, Ordering::Relaxed) {
                self.writer.pattern_matched(&self.words[at]);
            }
        }
    }
}

/// Include and exclude patterns. Remembers which of them matched.
pub struct WatchedFilter {
    filter: Filter,
    include: PatternWatch,
    exclude: PatternWatch,
}

impl WatchedFilter {
    /// Creates the filter of a request. Matches are noted in the recording.
    pub fn new(filter: Filter, writer: &'static ProcessWriter) -> Self {
        let include = PatternWatch::new("include", &filter.include, writer);
        let exclude = PatternWatch::new("exclude", &filter.exclude, writer);
        Self { filter, include, exclude }
    }

    /// Whether the patterns select a function.
    pub fn passes(&self, function: &FunctionName) -> bool {
        self.include.look_at(&self.filter.include, function);
        self.exclude.look_by(Pattern::leaves_out, &self.filter.exclude, function);
        self.filter.passes(&function.module, &function.name, &function.signature)
    }

    /// Whether there are no patterns, so that every function passes.
    pub fn is_empty(&self) -> bool {
        self.filter.include.is_empty() && self.filter.exclude.is_empty()
    }

    /// Whether there are include patterns, which name functions.
    pub(crate) fn names_any(&self) -> bool {
        !self.filter.include.is_empty()
    }

    /// Whether an include pattern names a function.
    pub fn names(&self, function: &FunctionName) -> bool {
        self.filter.includes(&function.module, &function.name, &function.signature)
    }
}

/// Patterns that choose the methods to be probed. Remembers which patterns matched. Only patterns
/// that name their assembly choose methods of the framework.
#[derive(Clone)]
pub struct ProbePatterns {
    /// The rules in their given order. The last one that matches a method decides.
    rules: Vec<ProbeRule>,
    /// The patterns of rules that want methods.
    wanted: Arc<[Pattern]>,
    watched: Arc<PatternWatch>,
    writer: &'static ProcessWriter,
}

/// A rule about the methods that a pattern matches.
#[derive(Clone)]
struct ProbeRule {
    pattern: Pattern,
    is_wanted: bool,
}

impl ProbeRule {
    /// Whether the rule can apply to methods of the framework, or to those of other assemblies. A
    /// rule that excludes methods need not name the assembly.
    fn may_be_about(&self, is_framework: bool) -> bool {
        !is_framework || !self.is_wanted || self.pattern.names_assembly()
    }
}

impl ProbePatterns {
    /// Creates the list from patterns of methods that are to be probed.
    pub fn new(patterns: &[Pattern], writer: &'static ProcessWriter) -> Self {
        let wanted = |pattern: &Pattern| ProbeRule { pattern: pattern.clone(), is_wanted: true };
        Self::with_rules(patterns.iter().map(wanted).collect(), writer)
    }

    fn with_rules(rules: Vec<ProbeRule>, writer: &'static ProcessWriter) -> Self {
        let wanted: Vec<Pattern> =
            rules.iter().filter(|rule| rule.is_wanted).map(|rule| rule.pattern.clone()).collect();
        let watched = Arc::new(PatternWatch::new("probe", &wanted, writer));
        Self { rules, wanted: wanted.into(), watched, writer }
    }

    /// These patterns with a rule added at the end: `is_wanted` says whether methods that match
    /// `pattern` are wanted.
    pub fn and(&self, pattern: &Pattern, is_wanted: bool) -> Self {
        let mut rules = self.rules.clone();
        rules.retain(|rule| rule.pattern != *pattern);
        rules.push(ProbeRule { pattern: pattern.clone(), is_wanted });
        Self::with_rules(rules, self.writer)
    }

    /// A list with only this pattern.
    pub fn only(&self, pattern: &Pattern) -> Self {
        Self::new(std::slice::from_ref(pattern), self.writer)
    }

    /// Whether no pattern wants a method.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Whether a pattern may choose a method of this assembly.
    pub fn may_choose_in(&self, assembly: &str, is_framework: bool) -> bool {
        let is_about = |rule: &ProbeRule| rule.is_wanted && rule.pattern.is_about(assembly);
        self.rules.iter().filter(|rule| rule.may_be_about(is_framework)).any(is_about)
    }

    /// The message for a program in which no method matches. Call it once all methods have been
    /// checked.
    pub fn nothing_chosen(&self) -> String {
        let words: Vec<String> = self.wanted.iter().map(|pattern| format!("'{}'", pattern.as_str())).collect();
        let near = self.watched.near_names();
        let there_is = if near.is_empty() { String::new() } else { format!("; there is {}", near.join(", ")) };
        format!("no method of any loaded assembly matches --probe {}{there_is}", words.join(" or "))
    }

    /// Whether the patterns choose a method. The last pattern that matches decides.
    pub fn choose(&self, method: &FunctionName, is_framework: bool) -> bool {
        let FunctionName { module, name, signature, .. } = method;
        let mut about = self.rules.iter().rev().filter(|rule| rule.may_be_about(is_framework));
        let is_meant =
            about.find(|rule| rule.pattern.matches(module, name, signature)).is_some_and(|rule| rule.is_wanted);
        if is_meant || !is_framework {
            self.watched.look_at(&self.wanted, method);
        }
        is_meant
    }
}

/// Patterns of names whose values are never read. Remembers which patterns matched. Case is
/// ignored, as a property and its parameter differ only in case.
pub struct Redaction {
    /// The patterns in lower case.
    globs: Vec<Glob>,
    marks: Marks,
}

impl Redaction {
    /// Creates the list from patterns of names.
    pub fn new(globs: &[String], writer: &'static ProcessWriter) -> Self {
        let marks = Marks::new("redact", globs.iter().map(String::as_str), writer);
        Self { globs: globs.iter().map(|text| Glob::new(&text.to_lowercase())).collect(), marks }
    }

    /// Whether there are any patterns, so that some values may be hidden.
    pub fn hides_something(&self) -> bool {
        !self.globs.is_empty()
    }

    /// Whether values with this name must not be read.
    pub fn hides(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.marks.test(|at| self.globs[at].matches(&name));
        self.globs.iter().any(|glob| glob.matches(&name))
    }
}
