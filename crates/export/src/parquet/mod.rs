//! `parquet` and `parquet-samples`: tables for databases and data frames, one file per recording,
//! so that SQL over a folder of files can compare recordings.
//!
//! `parquet` has a row for each thread, path and metric of any recording; `parquet-samples` has a
//! row for each sample, exception and sampled allocation, with its time. `docs/parquet.md`
//! describes the columns and has queries. No value is ever null: a missing value is an empty text
//! or zero.

mod file;
mod read;
mod thrift;

use std::io::Write;
use std::ops::Range;

use clrscope_analysis::{FunctionRef, METRICS, Metric, Query, StackLog, kind_of_code, observed_unix_ns};
use clrscope_contract::labels::Label;
use clrscope_recording::model::{Process, Recording, Run, Thread};

use crate::origin::Origin;
use crate::stacks::{Step, forest, push_frame, walk};
use crate::threads::command;
use crate::{ExportError, ExportOptions, Exporter};
pub(crate) use file::{Kind, Table, Value};
pub(crate) use read::{Column, Malformed, read};

/// Columns at the start of both tables.
const SHARED: [(&str, Kind); 24] = [
    ("command", Kind::Text),
    ("started_unix_ns", Kind::Number),
    ("recording_id", Kind::Text),
    ("service", Kind::Text),
    ("service_version", Kind::Text),
    ("environment", Kind::Text),
    ("host", Kind::Text),
    ("container", Kind::Text),
    ("labels", Kind::Text),
    ("processors", Kind::Number),
    ("duration_ns", Kind::Number),
    ("pid", Kind::Number),
    ("runtime", Kind::Text),
    ("thread_id", Kind::Number),
    ("thread_name", Kind::Text),
    ("thread_role", Kind::Text),
    ("metric", Kind::Text),
    ("unit", Kind::Text),
    ("period_ns", Kind::Number),
    ("name", Kind::Text),
    ("signature", Kind::Text),
    ("module", Kind::Text),
    ("code", Kind::Text),
    ("path", Kind::Text),
];

/// Additional columns of the paths.
const PATHS: [(&str, Kind); 3] = [("depth", Kind::Number), ("self", Kind::Number), ("total", Kind::Number)];

/// Additional columns of the samples.
const SAMPLES: [(&str, Kind); 6] = [
    ("time_ns", Kind::Number),
    ("lasted_ns", Kind::Number),
    ("amount", Kind::Number),
    ("request", Kind::Text),
    ("trace_id", Kind::Text),
    ("span_id", Kind::Text),
];

/// The format `parquet`; its module describes the output.
pub(crate) struct Paths;

impl Exporter for Paths {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn description(&self) -> &'static str {
        "a table for databases: a row for each thread, path and metric"
    }

    fn extension(&self) -> &'static str {
        "parquet"
    }

    fn takes_min_share(&self) -> bool {
        true
    }

    fn shows_native_code(&self) -> bool {
        true
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let metrics = metrics(recording, &options.query)?;
        let mut table = Table::begin(out, [&SHARED[..], &PATHS].concat())?;
        let context = Context::new(recording);
        for metric in metrics {
            let query = Query { metric: Some(metric), per_thread: true, ..options.query.clone() };
            let forest = forest(recording, &query)?;
            let mut path = Path::default();
            walk(&forest, options.min_share.unwrap_or(0.0), |step| {
                let Step::Enter(at) = step else {
                    path.pop();
                    return Ok(());
                };
                path.push(&at.function);
                let process = recording.processes.iter().find(|process| process.pid == at.function.pid);
                let numbers = [at.depth.into(), at.amount.own, at.amount.total];
                let label = at.function.label();
                let names = (&*label, path.text.as_str());
                Ok(table.row(context.row(process, at.thread, metric, &at.function, names, numbers))?)
            })?;
        }
        Ok(table.end()?)
    }
}

/// The format `parquet-samples`; its module describes the output.
pub(crate) struct Samples;

impl Exporter for Samples {
    fn name(&self) -> &'static str {
        "parquet-samples"
    }

    fn description(&self) -> &'static str {
        "a table for databases: a row for each sample, exception and sampled allocation"
    }

    fn extension(&self) -> &'static str {
        "samples.parquet"
    }

    fn shows_native_code(&self) -> bool {
        true
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let metrics = metrics(recording, &options.query)?.into_iter().filter(|metric| !metric.is_of_calls());
        // The sample counts are in the rows of the time that the samples stand for.
        let metrics: Vec<_> = metrics.filter(|metric| !metric.counts_samples()).collect();
        if metrics.is_empty() {
            let query = Query { metric: None, ..options.query.clone() };
            StackLog::open(recording, &query, "parquet-samples")?;
        }
        let mut table = Table::begin(out, [&SHARED[..], &SAMPLES].concat())?;
        let context = Context::new(recording);
        for metric in metrics {
            let query = Query { metric: Some(metric), ..options.query.clone() };
            for thread in StackLog::open(recording, &query, "parquet-samples")?.threads() {
                let (mut path, mut before) = (Path::default(), None);
                thread.walk(|event| -> Result<(), ExportError> {
                    if before.replace(event.stack) != Some(event.stack) {
                        path = Path::default();
                        event.path.iter().for_each(|function| path.push(function));
                    }
                    let Some(innermost) = event.path.last() else { return Ok(()) };
                    let numbers = [event.time_ns, event.lasted_ns, event.amount];
                    let (process, thread) = (Some(thread.process), Some(thread.thread));
                    let label = innermost.label();
                    let names = (&*label, path.text.as_str());
                    let route = event.request.map_or("", |request| &*request.route);
                    let trace = event.request.and_then(|request| request.trace);
                    let [trace_id, span_id] =
                        trace.map_or_else(Default::default, |ids| [ids.trace_id(), ids.span_id()]);
                    let of_request = [route, &trace_id, &span_id].map(Value::Text);
                    let row = context.row(process, thread, metric, innermost, names, numbers);
                    Ok(table.row(row.chain(of_request))?)
                })?;
            }
        }
        Ok(table.end()?)
    }
}

/// The requested metric; if none is requested, all recorded metrics.
pub(crate) fn metrics(recording: &Recording, query: &Query) -> Result<Vec<&'static Metric>, ExportError> {
    if query.metric.is_some() {
        return Ok(vec![Metric::for_query(recording, query)?]);
    }
    let of =
        |metric: &'static Metric| Metric::for_query(recording, &Query { metric: Some(metric), ..query.clone() }).ok();
    let recorded: Vec<_> = METRICS.into_iter().filter_map(of).collect();
    if recorded.is_empty() { Err(ExportError::Empty("no metric of call paths was recorded")) } else { Ok(recorded) }
}

/// The text of a path, frame by frame.
#[derive(Default)]
struct Path {
    text: String,
    /// Length of the text before each frame.
    before: Vec<usize>,
}

impl Path {
    fn push(&mut self, function: &FunctionRef<'_>) {
        self.before.push(self.text.len());
        push_frame(&mut self.text, &function.label());
    }

    fn pop(&mut self) {
        self.text.truncate(self.before.pop().unwrap_or(0));
    }
}

/// Values that are the same in all rows, or in all rows of a process.
struct Context<'a> {
    command: String,
    run: &'a Run,
    /// The time that the recording tells of, since the Unix epoch.
    observed: Range<u64>,
    processes: Vec<OfProcess<'a>>,
}

/// Values that distinguish a process from those of other recordings.
struct OfProcess<'a> {
    process: &'a Process,
    origin: Origin,
    labels: String,
}

impl<'a> OfProcess<'a> {
    fn new(recording: &'a Recording, process: &'a Process) -> Self {
        let labels: Vec<String> = process.identity.labels.iter().map(encoded).collect();
        Self { process, origin: Origin::of(recording, process), labels: labels.join(",") }
    }
}

/// A label encoded as in `OTEL_RESOURCE_ATTRIBUTES`.
fn encoded(label: &Label) -> String {
    let text = |text: &str| text.replace('%', "%25").replace(',', "%2C").replace('=', "%3D");
    format!("{}={}", text(&label.key), text(&label.value))
}

impl<'a> Context<'a> {
    fn new(recording: &'a Recording) -> Self {
        let processes = recording.processes.iter().map(|process| OfProcess::new(recording, process)).collect();
        Self { command: command(recording), run: &recording.run, observed: observed_unix_ns(recording), processes }
    }

    fn row<'r>(
        &'r self,
        process: Option<&'r Process>,
        thread: Option<&'r Thread>,
        metric: &Metric,
        function: &FunctionRef<'r>,
        (name, path): (&'r str, &'r str),
        numbers: [u64; 3],
    ) -> impl Iterator<Item = Value<'r>> + use<'r, 'a> {
        let (number, text) = (Value::Number, Value::Text);
        let of = process.and_then(|process| self.processes.iter().find(|of| std::ptr::eq(of.process, process)));
        let of_process = |value: fn(&'r OfProcess<'a>) -> &'r str| text(of.map_or("", value));
        let row = [
            text(&self.command),
            number(self.observed.start),
            text(&self.run.id),
            of_process(|of| &of.origin.service),
            of_process(|of| &of.origin.version),
            of_process(|of| &of.origin.environment),
            of_process(|of| &of.origin.host),
            of_process(|of| &of.origin.container),
            of_process(|of| &of.labels),
            number(process.map_or(0, |process| process.processors.into())),
            number(self.observed.end - self.observed.start),
            number(process.map_or(0, |process| process.pid.into())),
            text(process.map_or("", |process| &process.runtime)),
            number(thread.map_or(0, |thread| thread.id.into())),
            text(thread.map_or("", |thread| &thread.name)),
            text(thread.map_or("", |thread| thread.role.name())),
            text(metric.name),
            text(metric.unit.name()),
            number(process.and_then(|process| metric.sampling_period_ns(process)).unwrap_or(0)),
            text(name),
            text(function.signature()),
            text(function.module()),
            text(kind_of_code(function)),
            text(path),
        ];
        row.into_iter().chain(numbers.map(number))
    }
}
