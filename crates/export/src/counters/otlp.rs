//! `otlp-metrics`: counters in OpenTelemetry's format, the message `MetricsData` of `metrics/v1`.
//! Collectors and their file exporters read it.
//!
//! Each process is a resource, and each of the process's providers is a scope. Every value has its
//! time. The value of a counter is the sum since the first recorded interval. The value of an
//! up-down counter is the one that the program reports; the start time of that sum is not known.
//! Histograms are written as summaries: the runtime reports three quantiles for each interval, and
//! no buckets.

use std::io::Write;

use clrscope_analysis::{CounterKind, CounterPoint, CounterRow, one_line};
use clrscope_recording::model::Recording;

use super::{only_grows, rows};
use crate::protobuf::Message;
use crate::resource::{put_attribute, put_resource, put_scope};
use crate::{ExportError, ExportOptions, Exporter};

/// Sums that accumulate from point to point (`AGGREGATION_TEMPORALITY_CUMULATIVE`).
const CUMULATIVE: u64 = 2;

/// The format `otlp-metrics`; its module describes the output.
pub(crate) struct OtlpMetrics;

impl Exporter for OtlpMetrics {
    fn name(&self) -> &'static str {
        "otlp-metrics"
    }

    fn description(&self) -> &'static str {
        "OpenTelemetry metrics (v1), every value of counters with its time (needs -i counters)"
    }

    fn extension(&self) -> &'static str {
        "metrics.otlp"
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let rows = rows(recording, options, self.name())?;
        for of_process in rows.chunk_by(|a, b| std::ptr::eq(a.process, b.process)) {
            let mut resource = Message::default();
            put_resource(&mut resource, recording, of_process[0].process);
            for of_provider in of_process.chunk_by(|a, b| a.provider == b.provider) {
                resource.message(2, |scope| {
                    put_scope(scope, &one_line(&*of_provider[0].provider), None);
                    let key = |row: &CounterRow<'_>| (row.name.clone(), row.unit.clone(), row.kind);
                    for of_metric in of_provider.chunk_by(|a, b| key(a) == key(b)) {
                        scope.message(2, |metric| put_metric(metric, of_metric, recording.run.started_unix_ns));
                    }
                });
            }
            out.write_all(Message::head(1, resource.encoded().len()).encoded())?;
            out.write_all(resource.encoded())?;
        }
        Ok(())
    }
}

/// A metric: rows that differ only in their labels.
fn put_metric(metric: &mut Message, rows: &[CounterRow<'_>], started_unix_ns: u64) {
    metric.bytes(1, one_line(&*rows[0].name).as_bytes());
    metric.bytes(3, one_line(&*rows[0].unit).as_bytes());
    let (kind, field) = match rows[0].kind {
        CounterKind::Gauge => (CounterKind::Gauge, 5),
        CounterKind::Histogram => (CounterKind::Histogram, 11),
        sum => (sum, 7),
    };
    metric.message(field, |data| {
        for row in rows {
            // Sums begin with the first interval.
            let since = row.points.first().map_or(0, CounterPoint::since_ns);
            for at in &row.points {
                data.message(1, |point| {
                    if matches!(kind, CounterKind::Counter | CounterKind::Histogram) {
                        point.fixed64(2, started_unix_ns.saturating_add(since));
                    }
                    point.fixed64(3, started_unix_ns.saturating_add(at.time_ns));
                    match kind {
                        CounterKind::Gauge | CounterKind::UpDownCounter => point.double(4, at.value),
                        CounterKind::Counter => point.double(4, at.total.unwrap_or(0.0)),
                        CounterKind::Histogram => put_summary(point, at),
                    }
                    row.label_pairs().iter().for_each(|(key, value)| put_attribute(point, 7, key, value));
                });
            }
        }
        if field == 7 {
            data.number(2, CUMULATIVE);
            data.number(3, u64::from(rows.iter().all(only_grows)));
        }
    });
}

fn put_summary(point: &mut Message, at: &CounterPoint) {
    point.fixed64(4, at.total_count);
    point.double(5, at.total.unwrap_or(0.0));
    for (quantile, value) in [0.5, 0.95, 0.99].into_iter().zip(at.percentiles.into_iter().flatten()) {
        point.message(6, |of| {
            of.double(1, quantile);
            of.double(2, value);
        });
    }
}
