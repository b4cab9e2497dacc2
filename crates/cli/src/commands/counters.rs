//! `clrscope counters`: the event counters and meters of a running program.

use clrscope_analysis::{Query, counters};
use clrscope_contract::instruments::counters::SPEC;
use clrscope_contract::request::Glob;
use clrscope_recording::model::Recording;
use clrscope_report::{Format, Request, View, view};

use super::report::print;
use crate::attach::Target;
use crate::errors::Failure;
use crate::live::page::{Content, Page};
use crate::live::screen::Screen;
use crate::live::source::{INTERVAL, Source};
use crate::recording_file::query_failure;
use crate::terminal::results_on_terminal;

/// Options of `counters`.
#[derive(Debug)]
pub(crate) struct CountersOptions {
    /// The process to attach to.
    pub(crate) pid: u32,
    /// The format in which to print the values once; `None` for a live screen.
    pub(crate) once: Option<Format>,
    /// Patterns of counter names: only matching counters are shown.
    pub(crate) names: Vec<Glob>,
}

/// Shows the counters.
///
/// # Errors
/// When the process can't be attached to.
pub(crate) fn perform(options: &CountersOptions) -> Result<(), Failure> {
    let target = Target::find(options.pid)?;
    let view = view("counters").expect("a view");
    let request = Request { names: options.names.clone(), ..Request::default() };
    let mut source = Source::begin(&target, &[SPEC.name])?;
    if let Some(format) = options.once {
        return once(&mut source, view, &request, format);
    }
    let title = format!("clrscope counters {}", options.pid);
    let page = Page::new("counters", "counters", vec![Content::View(view, Box::new(request))]);
    let mut screen = Screen::new(title, vec![page]);
    if results_on_terminal() { screen.show(&mut source) } else { screen.print(&mut source) }
}

/// Shows the values of the first whole interval.
fn once(source: &mut Source<'_>, view: &'static View, request: &Request, format: Format) -> Result<(), Failure> {
    let recording = source.first(has_values).ok_or_else(|| {
        let what = "there are no values to show";
        Failure::new(what, "the program ended before its first second was over", "'clrscope ps' lists what runs")
    })?;
    let request = if format == Format::Text { view.for_people(request) } else { request.clone() };
    let report = view.open(&recording, &request).map_err(|problem| query_failure(&problem))?;
    print(&report, format)
}

/// Whether each source has reported an interval: some report their first values a moment later than
/// others.
fn has_values(recording: &Recording) -> bool {
    const LATE: u64 = 300_000_000;
    let Ok((rows, _)) = counters(recording, &Query::default(), &[]) else { return false };
    let first = rows.iter().filter_map(|row| row.points.first()).map(|point| point.time_ns).min();
    let now = recording.processes.iter().map(|process| process.started_ns + process.duration_ns).max();
    let interval = INTERVAL.as_nanos() as u64;
    first.zip(now).is_some_and(|(first, now)| now > first + LATE && now > interval + LATE)
}
