//! `calllog`: the log of calls as a list indented by depth, then a summary of the functions.
//!
//! Each call is a line with the function, the function's number (`id`) and the number of the call
//! among that function's calls on this thread (`call count`). Threads follow one another. The
//! summary has a line for each function, with the number of its calls on all threads. The end of a
//! call has no line: the indentation shows it.

use std::io::{self, Write};

use clrscope_analysis::{FlowFunction, FlowKind, FlowLog, FlowRow, one_line};
use clrscope_recording::model::Recording;

use crate::{ExportError, ExportOptions, Exporter};

/// Largest depth of indentation.
const MOST_INDENTED: u32 = 200;

/// The format `calllog`; its module describes the output.
pub(crate) struct CallLog;

impl Exporter for CallLog {
    fn name(&self) -> &'static str {
        "calllog"
    }

    fn description(&self) -> &'static str {
        "every call indented by depth, then calls per function (needs -i flow)"
    }

    fn extension(&self) -> &'static str {
        "log"
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let log = FlowLog::open(recording, &options.query, None)?.reading_on();
        writeln!(out, "Calls")?;
        let mut thread = None;
        let (functions, left_out) = log.walk(|row| {
            if row.kind != FlowKind::Enter {
                return Ok(());
            }
            if thread.replace((row.function.pid, row.thread.id)) != Some((row.function.pid, row.thread.id)) {
                write_thread(out, row)?;
            }
            write_call(out, row)
        })?;
        if left_out.rows > 0 {
            writeln!(out, "\n{} more rows are left out", left_out.rows)?;
        }
        write_summary(out, &functions)?;
        Ok(())
    }
}

fn write_thread(out: &mut dyn Write, row: &FlowRow<'_>) -> io::Result<()> {
    let name = if row.thread.name.is_empty() { row.thread.role.name() } else { &row.thread.name };
    let name = one_line(name);
    writeln!(out, "\nthread {} ({name}), process {}, OS thread {}", row.thread.id, row.function.pid, row.thread.os_id)
}

fn write_call(out: &mut dyn Write, row: &FlowRow<'_>) -> io::Result<()> {
    for _ in 0..row.depth.min(MOST_INDENTED) {
        out.write_all(b"  ")?;
    }
    let (signature, id, count) = (one_line(row.function.signature()), row.id, row.call_count);
    writeln!(out, "{signature}, id = {id}, call count = {count}")
}

fn write_summary(out: &mut dyn Write, functions: &[FlowFunction<'_>]) -> io::Result<()> {
    writeln!(out, "\nFunctions\n")?;
    for row in functions {
        writeln!(out, "{}, id = {}, call count = {}", one_line(row.function.signature()), row.id, row.calls)?;
    }
    Ok(())
}
