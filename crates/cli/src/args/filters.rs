//! The filters that are the same for every command that reads a recording.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, Command, ValueHint};
use clrscope_analysis::{METRICS, Metric, NativeCode, PathKind, Query, Sort, ThreadSelector};
use clrscope_contract::instruments::calls;
use clrscope_contract::request::{Glob, PATTERN_HELP, Pattern};
use clrscope_report::{Flag, VIEWS, View};

use super::requests::RequestFlags;
use super::times::time;
use crate::errors::{Failure, quoted};

/// Options that select a part of a recording.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters")]
pub(super) struct Filters {
    /// Only the process with this id
    #[arg(long, value_name = "PID", value_parser = whole::<u32>)]
    pid: Option<u32>,

    /// Only processes whose command matches, such as '*MyApp.dll*'
    #[arg(long, value_name = "PATTERN")]
    process: Option<String>,

    /// Only threads with this id (of the report or of the system), name or role; can be repeated
    #[arg(long, value_name = "ID|NAME")]
    thread: Vec<String>,

    /// Only functions that match, such as '[MyApp]*', 'Shop.Cart::*', 'Cart.Add' or 'Add'; can be
    /// repeated
    #[arg(long, value_name = "PATTERN")]
    function: Vec<String>,

    /// Only functions of assemblies that match; can be repeated
    #[arg(long, value_name = "PATTERN")]
    module: Vec<String>,

    /// Only objects of types that match, such as 'Shop.Order', 'Shop.*' or 'string', in allocations
    /// and on the heap; can be repeated
    #[arg(long = "type", value_name = "PATTERN")]
    types: Vec<String>,

    #[arg(long, value_name = "NAME", help = format!("Only this part of the recording, by its name or number (see clrscope record); can be repeated; {}", not_in()))]
    part: Vec<String>,

    #[arg(long, value_name = "TIME", help = format!("Only from this time after the start, such as 500ms or 10s; {}", with_times()))]
    since: Option<String>,

    #[arg(long, value_name = "TIME", help = format!("Only up to this time after the start; {}", with_times()))]
    until: Option<String>,

    /// At most this many rows; in trees, at most this many children of each node
    #[arg(short = 'n', long, value_name = "ROWS", value_parser = whole::<usize>)]
    limit: Option<usize>,

    /// Order of the rows: self or total of the metric, exclusive, inclusive, callee, suspended,
    /// profiler, cpu (exclusive-cpu), cpu-total (inclusive-cpu), calls, recursion, name or module;
    /// for the heap: retained, bytes, objects, name or module
    #[arg(long, value_name = "KEY", value_parser = SortKey, hide_possible_values = true)]
    sort: Option<Sort>,

    /// Samples: show only own code; the time of framework and native code counts for the own code
    /// that called it
    #[arg(long)]
    just_my_code: bool,

    #[arg(long, value_name = "AS", value_parser = one_of(&NativeCode::ALL), hide_possible_values = true, help = native_code_help())]
    native_code: Option<NativeCode>,

    /// Samples: name native functions from the symbol files in this folder, laid out as by
    /// dotnet-symbol or a distribution's packages; files are recognised by build id
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    symbols: Option<PathBuf>,

    /// Samples: show no inlined methods; their time counts for their callers
    #[arg(long)]
    no_inlined: bool,

    #[arg(long, value_name = "KIND", value_parser = one_of(&PathKind::ALL), hide_possible_values = true, help = paths_help())]
    paths: Option<PathKind>,

    /// Times as measured, without subtracting the profiler's own overhead
    #[arg(long)]
    raw: bool,

    #[command(flatten)]
    requests: RequestFlags,
}

/// Views that do not obey `--part`, in words.
fn not_in() -> String {
    let refusing: Vec<&str> = VIEWS.iter().filter(|view| view.why_not(Flag::Part).is_some()).map(|v| v.name).collect();
    let (last, others) = refusing.split_last().unwrap_or((&"", &[]));
    format!("not in the views {} and {last}", others.join(", "))
}

/// Views that obey `--since` and `--until`, in words: of samples, of single events, and of metrics
/// that are sums of such.
fn with_times() -> String {
    let of_calls = |view: &View| view.instruments().contains(&calls::SPEC.name);
    let views = VIEWS.iter().filter(|view| !of_calls(view)).filter_map(|view| view.words_to_have(Flag::Since));
    let views: Vec<String> = views.collect();
    let metrics = METRICS.iter().filter(|metric| !metric.is_of_calls()).map(|metric| format!("--metric {metric}"));
    let all: Vec<String> = metrics.collect();
    format!("for samples, the views {}, the export calllog, and {}", views.join(", "), all.join(", "))
}

impl Filters {
    pub(super) fn into_query(self) -> Result<Query, Failure> {
        Ok(Query {
            states: Vec::new(),
            pid: self.pid,
            process: self.process.as_deref().map(Glob::new),
            threads: self.thread.iter().map(|text| ThreadSelector::parse(text)).collect(),
            functions: patterns("--function", &self.function)?,
            modules: self.module.iter().map(|text| Glob::new(text)).collect(),
            parts: self.part,
            since_ns: self.since.as_deref().map(|text| time("--since", text)).transpose()?,
            until_ns: self.until.as_deref().map(|text| time("--until", text)).transpose()?,
            limit: self.limit,
            sort: self.sort,
            per_thread: false,
            raw: self.raw,
            just_my_code: self.just_my_code,
            no_inlined: self.no_inlined,
            paths: self.paths,
            native_code: self.native_code,
            symbols: self.symbols,
            requests: self.requests.into_filter()?,
            types: self.types.iter().map(|text| Glob::new(text)).collect(),
            type_leaves: false,
            metric: None,
        })
    }
}

/// Choices of an option: each with its name, what it is in a few words, and its value.
type Choices<T> = &'static [(&'static str, &'static str, T)];

/// Returns the parser of a choice by its name.
fn one_of<T: Copy + Send + Sync + 'static>(choices: Choices<T>) -> impl TypedValueParser<Value = T> {
    let names = choices.iter().map(|(name, about, _)| PossibleValue::new(*name).help(*about));
    let choice = move |name: String| choices.iter().find(|(known, ..)| *known == name).map(|(.., choice)| *choice);
    PossibleValuesParser::new(names).try_map(move |name| choice(name).ok_or("there is no such choice"))
}

/// Returns choices in words: `libraries (...), or places (...)`.
fn in_words<T>(choices: Choices<T>) -> String {
    let each: Vec<String> = choices.iter().map(|(name, about, _)| format!("{name} ({about})")).collect();
    each.join(", or ")
}

fn native_code_help() -> String {
    format!("Samples: show native functions without names as {} [default: libraries]", in_words(&NativeCode::ALL))
}

fn paths_help() -> String {
    format!("Call paths: {} [default: logical]", in_words(&PathKind::ALL))
}

/// A metric by its name.
pub(super) fn metrics() -> impl TypedValueParser<Value = &'static Metric> {
    let instruments = |metric: &Metric| [&[metric.instrument], metric.others].concat().join(", ");
    let help = |metric: &Metric| format!("{} ({})", metric.title, instruments(metric));
    let names = METRICS.map(|metric| PossibleValue::new(metric.name).help(help(metric)));
    PossibleValuesParser::new(names).try_map(|name| Metric::parse(&name).ok_or("there is no such metric"))
}

/// Patterns of functions, for every option that takes them.
pub(super) fn patterns(option: &str, texts: &[String]) -> Result<Vec<Pattern>, Failure> {
    texts.iter().map(|text| pattern(option, text)).collect()
}

fn pattern(option: &str, text: &str) -> Result<Pattern, Failure> {
    Pattern::parse(text).map_err(|error| {
        Failure::usage(format!("'{option}' does not take {}", quoted(text)), error.why, format!("write {PATTERN_HELP}"))
    })
}

pub(super) fn whole<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "it takes a whole number".to_owned())
}

/// A sort key: the words of the command line, which shells complete, and the names of columns in
/// JSON.
#[derive(Debug, Clone)]
struct SortKey;

impl TypedValueParser for SortKey {
    type Value = Sort;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Sort, clap::Error> {
        let words = self.possible_values().into_iter().flatten();
        match value.to_str().and_then(Sort::parse) {
            Some(sort) => Ok(sort),
            // For its words of refusal.
            None => PossibleValuesParser::new(words).parse_ref(command, arg, value).and(Ok(Sort::Own)),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = Sort::ALL.iter().chain(&Sort::ALIASES).map(|(name, _)| PossibleValue::new(*name));
        Some(Box::new(names))
    }
}
