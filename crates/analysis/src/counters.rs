//! The view `counters`: values of event counters and meters, one row each.

use std::collections::BTreeMap;

use clrscope_contract::request::Glob;
use clrscope_recording::events::{Kind, Record, Records, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{CounterKind, CounterReading, EventArena, Process, Recording, full_counter_name};

use crate::query::{Query, QueryProblem, Sort};
use crate::select;

/// A value of a counter for one interval. For a gauge it is the value at the end of the interval.
/// For a counter it is the increase per second. For an up-down counter it is the sum since the
/// program began. For a histogram it is the mean of the measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterPoint {
    /// End of the interval, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// The value.
    pub value: f64,
    /// Number of measurements in the value; 1 if the counter does not report it.
    pub count: u64,
    /// Length of the interval in nanoseconds; 0 if the counter does not report it.
    pub interval_ns: u64,
    /// [`CounterRow::total`] from the first point up to this one.
    pub total: Option<f64>,
    /// [`CounterRow::count`] from the first point up to this one.
    pub total_count: u64,
    /// [`CounterRow::percentiles`] of this interval.
    pub percentiles: Option<[f64; 3]>,
}

impl CounterPoint {
    /// Start of the interval, in nanoseconds since the start of the run.
    #[must_use]
    pub const fn since_ns(&self) -> u64 {
        self.time_ns.saturating_sub(self.interval_ns)
    }
}

/// A counter with its values.
#[derive(Debug, Clone)]
pub struct CounterRow<'a> {
    /// The process.
    pub process: &'a Process,
    /// Name of the event source or meter that the counter belongs to.
    pub provider: String,
    /// Name of the counter within the provider.
    pub name: String,
    /// Unit, as the program writes it; may be empty.
    pub unit: String,
    /// Labels: `name=value,name=value`; may be empty.
    pub labels: String,
    /// Kind of counter, which determines the meaning of its values.
    pub kind: CounterKind,
    /// The counter's values, in the order of time; at least one.
    pub points: Vec<CounterPoint>,
    /// Sum of the increments or measurements in the recording; `None` for gauges.
    pub total: Option<f64>,
    /// Number of measurements for gauges and histograms; number of intervals for additive counters.
    pub count: u64,
    /// Percentiles 50, 95 and 99 of a histogram, for the last interval with measurements; `None`
    /// for other kinds.
    pub percentiles: Option<[f64; 3]>,
}

impl CounterRow<'_> {
    /// The last value.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.value)
    }

    /// Mean of the values, weighted by their numbers of measurements where known.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.points.iter().map(|point| point.value * point.count as f64).sum();
        sum / self.points.iter().map(|point| point.count).sum::<u64>().max(1) as f64
    }

    /// The smallest value.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.points.iter().map(|point| point.value).fold(f64::INFINITY, f64::min)
    }

    /// The largest value.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.points.iter().map(|point| point.value).fold(f64::NEG_INFINITY, f64::max)
    }

    /// Provider, name and labels in one: `Shop/orders{kind=new}`.
    #[must_use]
    pub fn full_name(&self) -> String {
        full_counter_name(&self.provider, &self.name, &self.labels)
    }

    /// The labels as pairs of name and value. The runtime's text does not escape commas, so a piece
    /// without `=` continues the value before it.
    #[must_use]
    pub fn label_pairs(&self) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        for piece in self.labels.split(',').filter(|_| !self.labels.is_empty()) {
            match (piece.split_once('='), pairs.last_mut()) {
                (Some((name, value)), _) => pairs.push((name.to_owned(), value.to_owned())),
                (None, Some((_, value))) => {
                    value.push(',');
                    value.push_str(piece);
                }
                (None, None) => pairs.push((piece.to_owned(), String::new())),
            }
        }
        pairs
    }

    fn is_named(&self, names: &[Glob]) -> bool {
        let matches = |name: &Glob| name.matches(&self.name) || name.matches(&self.full_name());
        names.is_empty() || names.iter().any(matches)
    }

    fn add(&mut self, record: &Record<'_>, time_ns: u64) {
        let number = |tag| record.number(tag).map(f64::from_bits).filter(|number| number.is_finite());
        let (value, total) = (number(Tag::VALUE), number(Tag::TOTAL));
        let count = record.number(Tag::COUNT);
        let interval_ns = record.number(Tag::DURATION).unwrap_or(0);
        let reading = CounterReading { value, total, count, interval_ns };
        let point = reading.shown(self.kind);
        if self.kind != CounterKind::Gauge {
            *self.total.get_or_insert(0.0) += reading.measured().unwrap_or(0.0);
        }
        self.count = self.count.saturating_add(count.unwrap_or(1));
        let percentiles = record.text(Tag::QUANTILES).and_then(percentiles);
        self.percentiles = percentiles.or(self.percentiles);
        if let Some(value) = point {
            let (count, total, total_count) = (count.unwrap_or(1), self.total, self.count);
            self.points.push(CounterPoint { time_ns, value, count, interval_ns, total, total_count, percentiles });
        }
    }
}

/// Parses the percentiles 50, 95 and 99 in `0.5=12;0.95=40;0.99=55`.
fn percentiles(text: &str) -> Option<[f64; 3]> {
    let find = |wanted: f64| {
        let mut pairs = text.split(';').filter_map(|pair| pair.split_once('='));
        pairs.find(|(quantile, _)| quantile.parse() == Ok(wanted)).and_then(|(_, value)| value.parse::<f64>().ok())
    };
    Some([find(0.5)?, find(0.95)?, find(0.99)?]).filter(|all| all.iter().all(|value| value.is_finite()))
}

/// The counters that a query selects, ordered by provider and name. Also returns the number of rows
/// that the limit left out. `names` selects counters by name; without patterns, all counters are
/// selected.
///
/// # Errors
/// When the query selects no process, or `counters` was not recorded.
pub fn counters<'a>(
    recording: &'a Recording,
    query: &Query,
    names: &[Glob],
) -> Result<(Vec<CounterRow<'a>>, usize), QueryProblem> {
    query.without_metric("counters")?;
    let processes = select::threads(recording, query)?;
    let arenas = |process: &'a Process| process.arenas(instrument::COUNTERS).collect::<Vec<_>>();
    if processes.iter().all(|selected| arenas(selected.process).is_empty()) {
        return Err(QueryProblem::NotRecorded { view: "counters", instrument: instrument::COUNTERS });
    }
    let mut rows = Vec::new();
    for selected in processes {
        for arena in arenas(selected.process) {
            rows.extend(of_process(selected.process, arena, query).into_values());
        }
    }
    rows.retain(|row| !row.points.is_empty() && row.is_named(names));
    let key = |row: &CounterRow<'_>| (row.process.pid, row.provider.clone(), row.name.clone(), row.labels.clone());
    rows.sort_by_cached_key(key);
    if query.sort == Some(Sort::Name) {
        rows.sort_by(|a, b| a.name.cmp(&b.name));
    }
    let left_out = query.cut(&mut rows);
    Ok((rows, left_out))
}

/// Counters of a process by their numbers.
fn of_process<'a>(process: &'a Process, arena: &'a EventArena, query: &Query) -> BTreeMap<u64, CounterRow<'a>> {
    let mut rows: BTreeMap<u64, CounterRow<'a>> = BTreeMap::new();
    let chunks: Vec<_> = arena.chunks.iter().map(|chunk| chunk.bytes.load()).collect();
    let mut values = Vec::new();
    for record in chunks.iter().flat_map(|bytes| Records::new(bytes)) {
        match record.kind {
            Kind::COUNTER_NAME => {
                let number = record.number(Tag::COUNTER).unwrap_or(0);
                rows.entry(number).or_insert_with(|| named(process, &record));
            }
            Kind::COUNTER_VALUE => values.push(record),
            _ => {}
        }
    }
    // Values may be recorded on any thread, and each thread has chunks of its own.
    values.sort_by_key(|record| record.time_ns);
    for record in values {
        let time_ns = process.started_ns.saturating_add(record.time_ns);
        let row = record.number(Tag::COUNTER).and_then(|number| rows.get_mut(&number));
        if let Some(row) = row.filter(|_| query.wants_time(process, time_ns)) {
            row.add(&record, time_ns);
        }
    }
    rows
}

fn named<'a>(process: &'a Process, record: &Record<'_>) -> CounterRow<'a> {
    let text = |tag| record.text(tag).unwrap_or_default().to_owned();
    CounterRow {
        process,
        provider: text(Tag::SOURCE),
        name: text(Tag::NAME),
        unit: text(Tag::UNIT),
        labels: text(Tag::LABELS),
        kind: CounterKind::from_number(record.number(Tag::COUNTER_KIND).unwrap_or(0)),
        points: Vec::new(),
        total: None,
        count: 0,
        percentiles: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_taken_apart_where_they_can_be() {
        let process = Process::default();
        let pairs = |labels: &str| {
            let row = CounterRow { labels: labels.to_owned(), ..blank(&process) };
            row.label_pairs().into_iter().map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>()
        };
        assert_eq!(pairs(""), [""; 0]);
        assert_eq!(pairs("kind=new,http.route=/a=b"), ["kind:new", "http.route:/a=b"]);
        assert_eq!(pairs("names=a,b,,c=,d"), ["names:a,b,", "c:,d"]);
        assert_eq!(pairs("odd,a=1"), ["odd:", "a:1"]);
    }

    fn blank(process: &Process) -> CounterRow<'_> {
        let (provider, name, unit, labels) = Default::default();
        let (points, kind) = (Vec::new(), CounterKind::Gauge);
        CounterRow { process, provider, name, unit, labels, kind, points, total: None, count: 0, percentiles: None }
    }

    #[test]
    fn percentiles_are_read_where_all_are_there() {
        assert_eq!(percentiles("0.5=1;0.95=2.5;0.99=3"), Some([1.0, 2.5, 3.0]));
        assert_eq!(percentiles("0.50=1;0.95=2.5;0.99=3E2"), Some([1.0, 2.5, 300.0]));
        for odd in ["", "0.5=1", "0.5=1;0.95=x;0.99=3", "0.5=NaN;0.95=1;0.99=1"] {
            assert_eq!(percentiles(odd), None, "{odd}");
        }
    }
}
