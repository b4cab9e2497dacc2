//! Formats of event counters and meters, which `-i counters` records.

mod otlp;
mod prometheus;

use clrscope_analysis::{CounterKind, CounterRow, counters};
use clrscope_recording::model::Recording;

use crate::refusals::refuse_all_but;
use crate::{ExportError, ExportOptions};

pub(crate) use otlp::OtlpMetrics;
pub(crate) use prometheus::Prometheus;

/// The requested counters, at least one.
fn rows<'r>(
    recording: &'r Recording,
    options: &ExportOptions,
    format: &'static str,
) -> Result<Vec<CounterRow<'r>>, ExportError> {
    let taken = ["--pid", "--process", "--part", "--since", "--until"];
    refuse_all_but(&taken, options, format, "it shows counters")?;
    let (rows, _) = counters(recording, &options.query, &[])?;
    match rows.is_empty() {
        true => Err(ExportError::Empty("no counter has a value")),
        false => Ok(rows),
    }
}

/// Whether the sum of a counter never falls. An event counter that polls a value has the same kind
/// whether the value grows or not, so the recorded values decide.
fn only_grows(row: &CounterRow<'_>) -> bool {
    row.kind == CounterKind::Counter && row.points.iter().all(|point| point.value >= 0.0)
}
