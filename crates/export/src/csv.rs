//! `csv`: the rows of the report `functions`, with the column names of its JSON.

use std::borrow::Cow;
use std::io::{self, Write};

use clrscope_analysis::{FunctionRow, functions};
use clrscope_recording::model::Recording;

use crate::delimited::write_line;
use crate::{ExportError, ExportOptions, Exporter};

const COLUMNS: &str = "pid,name,signature,module,token,kind,calls,inclusive_ns,exclusive_ns,callee_ns,suspended_ns,\
                       profiler_ns,profiler_low_ns,profiler_high_ns,inclusive_cpu_ns,exclusive_cpu_ns,max_recursion,threads";
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
        writeln!(out, "{COLUMNS}{}", if options.query.per_thread { THREAD_COLUMNS } else { "" })?;
        for row in &view.rows {
            write_row(out, row)?;
        }
        Ok(())
    }
}

fn write_row(out: &mut dyn Write, row: &FunctionRow<'_>) -> io::Result<()> {
    let (function, times) = (&row.function, &row.times);
    let known = |ns: Option<u64>| ns.map_or(String::new(), |ns| ns.to_string());
    let mut fields: Vec<Cow<'_, str>> = vec![
        function.pid.to_string().into(),
        function.name().into(),
        function.signature().into(),
        function.module().into(),
        function.token().to_string().into(),
        function.kind().name().into(),
    ];
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
    fields.extend(numbers.iter().map(|n| Cow::from(n.to_string())));
    fields.extend([known(times.inclusive_cpu_ns).into(), known(times.exclusive_cpu_ns).into()]);
    fields.extend([row.max_recursion.to_string().into(), row.threads.to_string().into()]);
    if let Some(thread) = row.thread {
        fields.extend([thread.id.to_string().into(), thread.os_id.to_string().into()]);
        fields.extend([Cow::from(thread.name.as_str()), thread.role.name().into()]);
    }
    write_line(out, ',', &fields)
}
