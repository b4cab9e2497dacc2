//! A call of a probed method as text.

use clrscope_analysis::ProbeCall;

use super::units::time;
use super::values::{arguments, results};
use super::{FAINT, WARNING, one_line, styled};

/// One call in a line: when and on which thread, what it was given and what it left, how long it took and how it ended.
pub(crate) fn call(call: &ProbeCall<'_>, several: bool) -> String {
    let process = if several { format!("process {} ", call.process.pid) } else { String::new() };
    let thread = call.thread.map_or_else(|| "?".to_owned(), |thread| thread.id.to_string());
    let seconds = call.time_ns / 1_000_000_000;
    let moment = format!("{seconds:>4}.{:09} s  {process}thread {thread:<3}", call.time_ns % 1_000_000_000);
    let given = call.arguments.as_ref().map(arguments).unwrap_or_default();
    let left = call.results.as_ref().map(results).unwrap_or_default();
    let duration = call.duration_ns.map_or_else(|| "no end".to_owned(), time);
    let failed = match call.failed {
        Some(true) => format!("  {}", styled(WARNING, "by an exception")),
        _ => String::new(),
    };
    let (name, values) = (one_line(&call.method.name), one_line(given + &left));
    format!("{} {name}{values}  {}{failed}\n", styled(FAINT, &moment), styled(FAINT, &duration))
}
