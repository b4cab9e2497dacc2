//! `hst`: hot spots per thread and function, as a file for a spreadsheet.
//!
//! The file has a header, then for each thread its functions and a line of totals. Thread ids are
//! those of the operating system. Times are measured wall seconds. On every line the inclusive time
//! is the sum of exclusive, callee, suspended and profiler time. Suspensions have no lines of their
//! own: they are a column of the functions during which they occurred. The line of totals (function
//! `Total`) has the sums of calls, exclusive, suspended and profiler time of the thread's
//! functions. Its inclusive time is the sum of these times, and its callee time is 0 because
//! nothing is outside the total.

use std::borrow::Cow;
use std::io::{self, Write};

use clrscope_analysis::{FunctionRow, Metric, Query, QueryProblem, Sort, Times, WALL, functions};
use clrscope_recording::model::{FunctionKind, Recording, Thread};

use crate::delimited::{seconds, write_line};
use crate::{ExportError, ExportOptions, Exporter};

const HEADER: &str =
    "Thread ID;Function;Times Called;Exclusive Time;Inclusive Time;Callee Time;Suspended Time;Profiler Time";

/// The format `hst`; its module describes the output.
pub(crate) struct Hst;

impl Exporter for Hst {
    fn name(&self) -> &'static str {
        "hst"
    }

    fn description(&self) -> &'static str {
        "hot spots per thread and function, semicolon-separated, as measured"
    }

    fn extension(&self) -> &'static str {
        "hst"
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let query = Query { per_thread: true, raw: true, limit: None, ..options.query.clone() };
        let metric = Metric::for_query(recording, &query)?;
        if !metric.is_of_calls() {
            let why = "its columns are those of the instrument 'calls'";
            return Err(match query.metric {
                Some(_) => QueryProblem::NotAvailable { option: "this --metric", view: "hst", why },
                None => QueryProblem::NotRecorded { view: "hst", instrument: WALL.instrument },
            }
            .into());
        }
        let mut rows = functions(recording, &query)?.rows;
        rows.retain(|row| row.function.kind() != FunctionKind::Suspended);
        let sort = query.sort.unwrap_or(Sort::Exclusive);
        rows.sort_by(|a, b| order(recording, a).cmp(&order(recording, b)).then_with(|| a.compare(b, sort)));
        writeln!(out, "{HEADER}")?;
        for rows in rows.chunk_by(|a, b| same_thread(a.thread, b.thread)) {
            write_thread(out, rows, options.query.limit.unwrap_or(usize::MAX))?;
        }
        Ok(())
    }
}

/// The positions of a row's process and thread in the recording.
fn order(recording: &Recording, row: &FunctionRow<'_>) -> (usize, u32) {
    let process = recording.processes.iter().position(|p| p.pid == row.function.pid);
    (process.unwrap_or(usize::MAX), row.thread.map_or(0, |t| t.id))
}

fn same_thread(a: Option<&Thread>, b: Option<&Thread>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => std::ptr::eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn write_thread(out: &mut dyn Write, rows: &[FunctionRow<'_>], limit: usize) -> io::Result<()> {
    let os_id = rows.first().and_then(|row| row.thread).map_or(0, |t| t.os_id);
    let mut total = Times::default();
    for row in rows {
        total.calls = total.calls.saturating_add(row.times.calls);
        total.exclusive_ns = total.exclusive_ns.saturating_add(row.times.exclusive_ns);
        total.suspended_ns = total.suspended_ns.saturating_add(row.times.suspended_ns);
        total.profiler_ns = total.profiler_ns.saturating_add(row.times.profiler_ns);
    }
    total.inclusive_ns = total.exclusive_ns.saturating_add(total.suspended_ns).saturating_add(total.profiler_ns);
    for row in rows.iter().take(limit) {
        write_row(out, os_id, row.function.signature(), &row.times)?;
    }
    write_row(out, os_id, "Total", &total)
}

fn write_row(out: &mut dyn Write, os_id: u32, function: &str, times: &Times) -> io::Result<()> {
    let ns = [times.exclusive_ns, times.inclusive_ns, times.callee_ns, times.suspended_ns, times.profiler_ns];
    let mut fields = vec![Cow::from(os_id.to_string()), Cow::from(function), Cow::from(times.calls.to_string())];
    fields.extend(ns.iter().map(|&ns| Cow::from(seconds(ns))));
    write_line(out, ';', &fields)
}
