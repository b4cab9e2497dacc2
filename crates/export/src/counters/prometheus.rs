//! `prometheus`: counters in the text format of Prometheus (version 0.0.4). The values are those
//! that the program would expose at the end of the recording, without times.
//!
//! A metric name consists of the provider and the counter in lower case, with invalid characters
//! replaced by `_`, then the unit, and `_total` if the value only grows. Gauges and up-down
//! counters have their last value, counters the sum over the recording. Histograms are written as
//! summaries: count and sum over the recording, quantiles of the last interval.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use clrscope_analysis::{CounterKind, CounterRow, Resource, one_line};
use clrscope_recording::model::Recording;

use super::{only_grows, rows};
use crate::{ExportError, ExportOptions, Exporter};

/// The format `prometheus`; its module describes the output.
pub(crate) struct Prometheus;

impl Exporter for Prometheus {
    fn name(&self) -> &'static str {
        "prometheus"
    }

    fn description(&self) -> &'static str {
        "last values and sums of counters as Prometheus reads them (needs -i counters)"
    }

    fn extension(&self) -> &'static str {
        "prom"
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let rows = rows(recording, options, self.name())?;
        let pids: HashSet<u32> = rows.iter().map(|row| row.process.pid).collect();
        write_target_info(out, recording, &pids)?;
        for family in families(&rows, pids.len() > 1) {
            write_family(out, &family)?;
        }
        Ok(())
    }
}

/// Name of the metric whose labels are the attributes of processes.
const TARGET_INFO: &str = "target_info";

/// Writes the resources of processes as OpenTelemetry maps them to Prometheus: a gauge of 1 with
/// their attributes as labels.
fn write_target_info(out: &mut dyn Write, recording: &Recording, pids: &HashSet<u32>) -> io::Result<()> {
    writeln!(out, "# HELP {TARGET_INFO} Attributes of the processes.\n# TYPE {TARGET_INFO} gauge")?;
    for process in recording.processes.iter().filter(|process| pids.contains(&process.pid)) {
        let resource = Resource::from_process(recording, process);
        // Several attributes may get the same name here: the first counts.
        let mut labels = Labels::new();
        for (key, value) in resource.attributes() {
            let value = || escaped(&value.to_text()).replace('"', "\\\"");
            labels.entry(legal(key)).or_insert_with(value);
        }
        if pids.len() > 1 {
            labels.insert("pid".to_owned(), process.pid.to_string());
        }
        writeln!(out, "{TARGET_INFO}{} 1", written(&labels, None))?;
    }
    Ok(())
}

/// The type of a metric, in the format's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Type {
    Counter,
    Gauge,
    Summary,
}

impl Type {
    fn of(row: &CounterRow<'_>) -> Self {
        match row.kind {
            CounterKind::Counter if only_grows(row) => Self::Counter,
            CounterKind::Histogram => Self::Summary,
            _ => Self::Gauge,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Summary => "summary",
        }
    }
}

/// A metric: rows that differ only in their labels.
struct Family<'r> {
    name: String,
    kind: Type,
    series: Vec<(Labels, &'r CounterRow<'r>)>,
}

/// Names and values of labels, both in their written form.
type Labels = BTreeMap<String, String>;

/// Provider, name, unit and type.
type Key<'r> = (&'r str, &'r str, &'r str, Type);

fn families<'r>(rows: &'r [CounterRow<'r>], processes: bool) -> Vec<Family<'r>> {
    let mut families: Vec<Family<'r>> = Vec::new();
    let mut places: HashMap<Key<'r>, Vec<usize>> = HashMap::new();
    let mut said: HashMap<(Key<'r>, Labels), usize> = HashMap::new();
    let mut names = Names::default();
    names.taken.insert(TARGET_INFO.to_owned());
    for row in rows {
        let (kind, labels) = (Type::of(row), labels(row, processes));
        let key = (&*row.provider, &*row.name, &*row.unit, kind);
        let (places, before) = (places.entry(key).or_default(), said.entry((key, labels.clone())).or_default());
        // Counters that differ in the program but would be equal here become separate metrics.
        if places.len() <= *before {
            places.push(families.len());
            families.push(Family { name: names.of(row, kind), kind, series: Vec::new() });
        }
        families[places[*before]].series.push((labels, row));
        *before += 1;
    }
    families
}

/// Names already used.
#[derive(Default)]
struct Names {
    taken: HashSet<String>,
    /// How often each name was requested.
    asked: HashMap<String, u32>,
}

impl Names {
    /// A name that no other metric has in any of its forms.
    fn of(&mut self, row: &CounterRow<'_>, kind: Type) -> String {
        let unit = unit(&row.unit, kind);
        let base = legal(&format!("{}_{}", row.provider, row.name));
        loop {
            let asked = self.asked.entry(base.clone()).or_default();
            *asked += 1;
            let mut name = if *asked > 1 { format!("{base}_{asked}") } else { base.clone() };
            if !unit.is_empty() && !name.ends_with(&format!("_{unit}")) {
                name = format!("{name}_{unit}");
            }
            let plain = name.strip_suffix("_total").unwrap_or(&name).to_owned();
            let name = if kind == Type::Counter { format!("{plain}_total") } else { name };
            let endings = ["", "_total", "_sum", "_count", "_bucket", "_created"];
            let forms = endings.map(|ending| format!("{plain}{ending}"));
            if forms.iter().all(|form| !self.taken.contains(form)) {
                self.taken.extend(forms);
                return name;
            }
        }
    }
}

/// Converts a text to a name: letters, digits and single `_`, the first no digit.
fn legal(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }) {
        if c != '_' || !name.ends_with('_') {
            name.push(c);
        }
    }
    let name = name.trim_matches('_');
    match name.chars().next() {
        Some(first) if !first.is_ascii_digit() => name.to_owned(),
        _ => format!("_{name}"),
    }
}

/// The unit as the suffix of a name: in words, without annotations in braces.
fn unit(text: &str, kind: Type) -> String {
    let of = |part: &str| match part {
        "%" => "percent".to_owned(),
        "B" | "By" => "bytes".to_owned(),
        "KB" | "kBy" => "kilobytes".to_owned(),
        "MB" | "MBy" => "megabytes".to_owned(),
        "GB" | "GBy" => "gigabytes".to_owned(),
        "KiBy" => "kibibytes".to_owned(),
        "MiBy" => "mebibytes".to_owned(),
        "GiBy" => "gibibytes".to_owned(),
        "d" => "days".to_owned(),
        "h" => "hours".to_owned(),
        "min" => "minutes".to_owned(),
        "s" => "seconds".to_owned(),
        "ms" => "milliseconds".to_owned(),
        "us" => "microseconds".to_owned(),
        "ns" => "nanoseconds".to_owned(),
        "Hz" => "hertz".to_owned(),
        other => legal(other).trim_matches('_').to_owned(),
    };
    let mut plain = String::new();
    let mut depth = 0_u32;
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    let (one, other) = match plain.split_once('/') {
        None if plain == "1" => return (if kind == Type::Gauge { "ratio" } else { "" }).to_owned(),
        None => return of(&plain),
        Some((one, other)) => (of(one), of(other)),
    };
    // A unit follows "per".
    let other = other.strip_suffix('s').unwrap_or(&other);
    let parts = [&*one, if other.is_empty() { "" } else { "per" }, other];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_")
}

/// Labels of a row in the order of their names, labels of the same name joined.
fn labels(row: &CounterRow<'_>, processes: bool) -> Labels {
    let mut labels = Labels::new();
    let own = row.label_pairs().into_iter().map(|(name, value)| match legal(&name) {
        // Names that the format or this exporter uses.
        name if ["quantile", "le", "pid"].contains(&&*name) => (format!("exported_{name}"), value),
        name => (name, value),
    });
    for (name, value) in own.chain(processes.then(|| ("pid".to_owned(), row.process.pid.to_string()))) {
        let value = escaped(&value).replace('"', "\\\"");
        let joined = |known: &String| format!("{known};{value}");
        let value = labels.get(&name).map(joined).unwrap_or(value);
        labels.insert(name, value);
    }
    labels
}

/// Text on one line, with its backslashes escaped.
fn escaped(text: &str) -> String {
    one_line(text).replace('\\', "\\\\")
}

fn write_family(out: &mut dyn Write, family: &Family<'_>) -> io::Result<()> {
    let Family { name, kind, series } = family;
    let Some((_, first)) = series.first() else { return Ok(()) };
    let unit = if first.unit.is_empty() { String::new() } else { format!(" ({})", escaped(&first.unit)) };
    let what = match (first.kind, kind) {
        (CounterKind::Histogram, _) => "number and sum in the recording, quantiles of the last second",
        (CounterKind::Counter, _) => "sum in the recording",
        _ => "last value",
    };
    writeln!(out, "# HELP {name} {}/{}{unit}: {what}.", escaped(&first.provider), escaped(&first.name))?;
    writeln!(out, "# TYPE {name} {}", kind.name())?;
    for (labels, row) in series {
        let value = match first.kind {
            CounterKind::Counter => row.total.unwrap_or(0.0),
            _ => row.value(),
        };
        if *kind != Type::Summary {
            writeln!(out, "{name}{} {value}", written(labels, None))?;
            continue;
        }
        for (quantile, value) in ["0.5", "0.95", "0.99"].into_iter().zip(row.percentiles.into_iter().flatten()) {
            writeln!(out, "{name}{} {value}", written(labels, Some(quantile)))?;
        }
        let labels = written(labels, None);
        writeln!(out, "{name}_sum{labels} {}\n{name}_count{labels} {}", row.total.unwrap_or(0.0), row.count)?;
    }
    Ok(())
}

/// Labels in braces; those of a quantile include the quantile's own label.
fn written(labels: &Labels, quantile: Option<&str>) -> String {
    let mut all: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    all.extend(quantile.map(|quantile| format!("quantile=\"{quantile}\"")));
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_units_are_legal() {
        let names = ["System.Runtime_cpu-usage", "9lives", "__a..b", "Größe", ""].map(legal);
        assert_eq!(names, ["system_runtime_cpu_usage", "_9lives", "a_b", "gr_e", "_"]);
        let units = ["MB", "By", "{order}", "By/s", "1", "°C", "{request}/s", "EUR", ""];
        let units = units.map(|text| unit(text, Type::Gauge));
        assert_eq!(units, ["megabytes", "bytes", "", "bytes_per_second", "ratio", "c", "per_second", "eur", ""]);
        assert_eq!(unit("1", Type::Counter), "");
    }
}
