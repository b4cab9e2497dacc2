//! Refusals of options that a view does not support.

use std::fmt;

use clrscope_contract::words::nearest;

use crate::render::Format;
use crate::request::{Flag, REQUESTS, Request};
use crate::view::View;
use crate::views::VIEWS;

/// Reason why a request makes no sense: three lines for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The refused option.
    pub what: String,
    /// Reason, in one line.
    pub why: String,
    /// What to do instead.
    pub hint: String,
}

impl Refusal {
    fn new(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into(), hint: hint.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.what, self.why, self.hint)
    }
}

impl View {
    /// Refuses a request that makes no sense for the view.
    ///
    /// # Errors
    /// The option that makes no sense, the reason, and what to do instead.
    pub fn check(&self, request: &Request, format: Format) -> Result<(), Refusal> {
        if format == Format::Html {
            return check_page(request);
        }
        for (name, flag) in Flag::ALL.iter().filter(|(_, flag)| flag.is_in(request)) {
            if let Some(why) = self.why_not_with(request.each, *flag) {
                let what = format!("'{name}' is not for the view '{}'", self.name);
                return Err(Refusal::new(what, why, takers(*flag)));
            }
        }
        check_sort(self, request)?;
        check_callers(request)?;
        check_threads(self, request)?;
        check_follow(request, format)?;
        check_columns(self, request)
    }
}

/// Options of a page: filters, which apply to every view that takes them, the metric that the page
/// shows first, and the sources of lines.
const OF_PAGES: &[Flag] = &[
    Flag::Pid,
    Flag::Process,
    Flag::Thread,
    Flag::Function,
    Flag::Module,
    Flag::Part,
    Flag::Since,
    Flag::Until,
    Flag::Raw,
    Flag::JustMyCode,
    Flag::NoInlined,
    Flag::Paths,
    Flag::Metric,
    Flag::Source,
];

/// Checks the request for a page. A page has every view with all rows and columns, and its reader
/// sorts and selects them there.
fn check_page(request: &Request) -> Result<(), Refusal> {
    let is_of_pages = |flag: &Flag| OF_PAGES.contains(flag) || REQUESTS.contains(flag);
    let refused = Flag::ALL.iter().find(|(_, flag)| flag.is_in(request) && !is_of_pages(flag));
    refused.map_or(Ok(()), |(name, _)| {
        let why = "a page has all rows and columns of all views, to be sorted in the browser";
        Err(Refusal::new(format!("'{name}' is not for '--format html'"), why, "leave it out"))
    })
}

/// A hint that lists the views that take an option. For an option that selects a part of the time,
/// it lists only views of single events; views of metrics take such an option if the metric
/// consists of events.
fn takers(flag: Flag) -> String {
    let is_time = matches!(flag, Flag::Since | Flag::Until);
    let may_take = |view: &&&View| !(is_time && view.why_not(Flag::Metric).is_none());
    let views: Vec<String> = VIEWS.iter().filter(may_take).filter_map(|view| view.words_to_have(flag)).collect();
    match views.as_slice() {
        [] => "leave it out".to_owned(),
        [only] => format!("leave it out, or choose the view {only}, which has it"),
        [first @ .., last] => format!("leave it out, or choose a view that has it: {} or {last}", first.join(", ")),
    }
}

fn check_sort(view: &View, request: &Request) -> Result<(), Refusal> {
    let Some(sort) = request.query.sort else { return Ok(()) };
    let what = |what: &str| format!("'--sort {}' is not for the view '{}'{what}", sort.name(), view.name);
    if request.each {
        return Err(Refusal::new(what(" with --each"), "its rows are ordered by time", "leave --sort out"));
    }
    if view.sorts.contains(&sort) {
        return Ok(());
    }
    let known: Vec<&str> = view.sorts.iter().map(|sort| sort.name()).collect();
    Err(Refusal::new(what(""), "it has no such order", format!("they can be ordered by {}", known.join(", "))))
}

/// Refuses `--callers` together with `--each`, because callers are totals of all calls and each
/// call has its own row.
fn check_callers(request: &Request) -> Result<(), Refusal> {
    if request.callers && request.each {
        let why = "callers are totals over all calls, and --each has a row for each call";
        return Err(Refusal::new("'--callers' can't be combined with '--each'", why, "leave one of them out"));
    }
    Ok(())
}

/// Refuses `--per-thread` for a log that is not written to a folder: such a log shows one thread
/// after another anyway. With a folder, each thread gets a file.
fn check_threads(view: &View, request: &Request) -> Result<(), Refusal> {
    let Request { query, interleave, files, .. } = request;
    let takes_files = view.why_not(Flag::Output).is_none();
    if takes_files && query.per_thread && !files {
        let why = format!("the view '{}' shows one thread after another anyway", view.name);
        return Err(Refusal::new("'--per-thread' needs a folder", why, "add -o DIR for a file per thread"));
    }
    if *files && (*interleave || request.columns.is_some()) {
        let why = "a file per thread holds the lines of one thread";
        return Err(Refusal::new(
            "'--output' can't be combined with these options",
            why,
            "leave --interleave and --columns out",
        ));
    }
    Ok(())
}

fn check_follow(request: &Request, format: Format) -> Result<(), Refusal> {
    if request.follow && !request.query.parts.is_empty() {
        let why = "a part is known only once it has ended";
        return Err(Refusal::new("'--follow' can't be combined with '--part'", why, "leave one of them out"));
    }
    if request.follow && (format != Format::Text || request.files || request.columns.is_some()) {
        let why = "a growing recording is shown as text on the terminal only";
        let hint = "leave --format, --output and --columns out";
        return Err(Refusal::new("'--follow' can't be combined with these options", why, hint));
    }
    Ok(())
}

fn check_columns(view: &View, request: &Request) -> Result<(), Refusal> {
    let Some(picked) = &request.columns else { return Ok(()) };
    let known: Vec<&str> =
        view.columns(&view.with_metric_of_columns(request)).iter().map(|column| column.key).collect();
    let refuse =
        |key: &str, why: String, hint| Err(Refusal::new(format!("'--columns' does not take '{key}'"), why, hint));
    for (at, key) in picked.iter().enumerate() {
        if !known.contains(&key.as_str()) {
            let hint = match nearest(key, known.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => format!("its columns: {}", known.join(", ")),
            };
            return refuse(key, format!("the view '{}' has no such column", view.name), hint);
        }
        if picked[..at].contains(key) {
            return refuse(key, "it is named twice".to_owned(), "name each column once".to_owned());
        }
    }
    Ok(())
}
