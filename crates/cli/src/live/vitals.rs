//! The most important counters, which are shown above every screen.

use std::collections::{BTreeMap, VecDeque};

use clrscope_analysis::{Query, counters};
use clrscope_recording::model::Recording;
use serde_json::{Value, json};

/// Values of a counter that are remembered, one for each look.
const REMEMBERED: usize = 60;
/// Columns of a value with its name and its last values.
const COLUMNS: usize = 26;

/// An important counter.
struct Vital {
    provider: &'static str,
    name: &'static str,
    label: &'static str,
    unit: &'static str,
    /// Factor for the values.
    scale: f64,
}

const fn runtime(name: &'static str, label: &'static str, unit: &'static str, scale: f64) -> Vital {
    Vital { provider: "System.Runtime", name, label, unit, scale }
}

const fn web(name: &'static str, label: &'static str, unit: &'static str) -> Vital {
    Vital { provider: "Microsoft.AspNetCore.Hosting", name, label, unit, scale: 1.0 }
}

/// The counters in the order on the screen. The names are those of the runtime's event counters
/// (`RuntimeEventSource.cs`, `HostingEventSource.cs`).
const ALL: [Vital; 12] = [
    runtime("cpu-usage", "CPU", "%", 1.0),
    runtime("working-set", "memory", "MB", 1.0),
    runtime("gc-heap-size", "GC heap", "MB", 1.0),
    runtime("alloc-rate", "allocated", "MB/s", 1e-6),
    runtime("time-in-gc", "in GC", "%", 1.0),
    runtime("exception-count", "exceptions", "/s", 1.0),
    runtime("threadpool-thread-count", "pool", "threads", 1.0),
    runtime("threadpool-queue-length", "pool queue", "", 1.0),
    runtime("monitor-lock-contention-count", "contended", "/s", 1.0),
    web("requests-per-second", "requests", "/s"),
    web("current-requests", "in flight", ""),
    web("failed-requests", "failed", ""),
];

/// Last values of all counters, important or not, by their full names.
#[derive(Debug, Default)]
pub(crate) struct Vitals(BTreeMap<String, VecDeque<f64>>);

impl Vitals {
    /// Reads the new values of the recording.
    pub(crate) fn look(&mut self, recording: &Recording) {
        let Ok((rows, _)) = counters(recording, &Query::default(), &[]) else { return };
        for row in rows.iter().filter(|row| row.labels.is_empty()) {
            let values = self.0.entry(row.full_name()).or_default();
            values.push_back(row.value());
            if values.len() > REMEMBERED {
                values.pop_front();
            }
        }
    }

    fn known(&self) -> impl Iterator<Item = (&'static Vital, &VecDeque<f64>)> {
        let values = |vital: &Vital| self.0.get(&format!("{}/{}", vital.provider, vital.name));
        ALL.iter().filter_map(move |vital| Some((vital, values(vital)?)))
    }

    /// Lines of `width` columns with the important counters, several per line: `CPU 42 % ▁▂▅`.
    pub(crate) fn lines(&self, width: usize) -> Vec<String> {
        let cells: Vec<String> = self.known().map(|(vital, values)| cell(vital, values)).collect();
        let beside = (width / COLUMNS).max(1);
        cells.chunks(beside).map(|cells| cells.concat().trim_end().to_owned()).collect()
    }

    /// The important counters as JSON.
    pub(crate) fn json(&self) -> Value {
        let row = |(vital, values): (&Vital, &VecDeque<f64>)| json!({ "provider": vital.provider, "name": vital.name, "value": values.back() });
        self.known().map(row).collect()
    }
}

fn cell(vital: &Vital, values: &VecDeque<f64>) -> String {
    let value = values.back().copied().unwrap_or_default() * vital.scale;
    let said = match value.abs() {
        ..9.95 if value.fract() != 0.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    let words = format!("{} {said} {}", vital.label, vital.unit);
    let words = words.trim_end();
    // The width that the text leaves, minus a blank.
    let room = COLUMNS.saturating_sub(words.chars().count() + 2).min(8);
    let line = spark(values, room);
    format!("{words} {line:<rest$}", rest = COLUMNS - 1 - words.chars().count().min(COLUMNS - 1))
}

/// The last values as bars, from zero to the largest of them.
fn spark(values: &VecDeque<f64>, room: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = values.iter().skip(values.len().saturating_sub(room));
    let most = values.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        let part = if most > 0.0 { value.max(0.0) / most } else { 0.0 };
        BARS[((part * 7.0).round() as usize).min(7)]
    };
    shown.map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_counters_stand_beside_one_another_as_there_is_room_for() {
        let mut vitals = Vitals::default();
        let values =
            [("cpu-usage", vec![0.0, 50.0, 100.0]), ("alloc-rate", vec![2_345_678.0]), ("working-set", vec![80.0])];
        for (name, values) in values {
            vitals.0.insert(format!("System.Runtime/{name}"), values.into());
        }
        vitals.0.insert("System.Runtime/unknown".to_owned(), [7.0].into());
        let narrow = vitals.lines(53);
        assert_eq!(narrow, ["CPU 100 % ▁▅█             memory 80 MB █", "allocated 2.3 MB/s █"]);
        assert_eq!(vitals.lines(20), ["CPU 100 % ▁▅█", "memory 80 MB █", "allocated 2.3 MB/s █"]);
        assert_eq!(vitals.lines(200).len(), 1);
        assert_eq!(vitals.json().as_array().map(Vec::len), Some(3));
    }
}
