//! `csv`: the rows of the report `functions`, with the column names of its JSON.

use std::borrow::Cow;
use std::io::{self, Write};

use clrscope_analysis::{FunctionRow, Metric, Times, functions};
use clrscope_recording::model::Recording;

use crate::delimited::write_line;
use crate::{ExportError, ExportOptions, Exporter};

const FUNCTION_COLUMNS: &str = "pid,name,signature,module,token,kind";
const CALLS_COLUMNS: &str = "calls,inclusive_ns,exclusive_ns,callee_ns,suspended_ns,profiler_ns,profiler_low_ns,\
                             profiler_high_ns,inclusive_cpu_ns,exclusive_cpu_ns";
const THREAD_COLUMNS: &str = ",thread_id,thread_os_id,thread_name,thread_role";

/// See the module's page.
pub(crate) struct Csv;

impl Exporter for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn description(&self) -> &'static str {
        "the rows of the report 'functions', comma-separated"
    }

    fn extension(&self) -> &'static str {
        "csv"
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let view = functions(recording, &options.query)?;
        let metric = view.conditions.metric;
        let columns = match metric.is_of_calls() {
            true => CALLS_COLUMNS.to_owned(),
            false => metric.keys().join(","),
        };
        let threads = if options.query.per_thread { THREAD_COLUMNS } else { "" };
        writeln!(out, "{FUNCTION_COLUMNS},{columns},max_recursion,threads{threads}")?;
        for row in &view.rows {
            write_row(out, row, metric)?;
        }
        Ok(())
    }
}

fn write_row(out: &mut dyn Write, row: &FunctionRow<'_>, metric: &Metric) -> io::Result<()> {
    let function = &row.function;
    let mut fields: Vec<Cow<'_, str>> = vec![
        function.pid.to_string().into(),
        function.name().into(),
        function.signature().into(),
        function.module().into(),
        function.token().to_string().into(),
        function.kind().name().into(),
    ];
    match metric.is_of_calls() {
        true => fields.extend(calls(&row.times).map(Cow::from)),
        false => fields.extend([row.amount.own, row.amount.total].map(|number| Cow::from(number.to_string()))),
    }
    fields.extend([row.max_recursion.to_string().into(), row.threads.to_string().into()]);
    if let Some(thread) = row.thread {
        fields.extend([thread.id.to_string().into(), thread.os_id.to_string().into()]);
        fields.extend([Cow::from(thread.name.as_str()), thread.role.name().into()]);
    }
    write_line(out, ',', &fields)
}

/// The columns of `calls`; what was not measured is empty.
fn calls(times: &Times) -> impl Iterator<Item = String> {
    let numbers = [
        times.calls,
        times.inclusive_ns,
        times.exclusive_ns,
        times.callee_ns,
        times.suspended_ns,
        times.profiler_ns,
        times.profiler_low_ns,
        times.profiler_high_ns,
    ];
    let cpu = [times.inclusive_cpu_ns, times.exclusive_cpu_ns];
    numbers.map(Some).into_iter().chain(cpu).map(|number| number.map_or(String::new(), |number| number.to_string()))
}
