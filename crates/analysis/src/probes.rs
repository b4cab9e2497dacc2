//! Probed methods and lines, summed over the processes of a recording: calls, failures and times of
//! methods, and how often lines were reached.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use clrscope_recording::layout::{instrument, probes as layout};
use clrscope_recording::model::{ProbedLine, ProbedMethod, Process, Recording};

use crate::durations::Durations;
use crate::query::{Query, QueryProblem, Sort};
use crate::select;

/// A probed method, or a line in a method, summed over its instantiations and all processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProbeRow {
    /// Name of the method, in the form of function names.
    pub name: String,
    /// Signature of the method, in the form of function signatures.
    pub signature: String,
    /// The assembly that declares the method.
    pub module: String,
    /// Whether the probes of the method or line were removed during the recording, in all
    /// processes.
    pub is_removed: bool,
    /// The line of a line probe; `None` for a method probe. For a line, only the number of times
    /// that it was reached is known.
    pub place: Option<ProbedPlace>,
    /// Calls that began, or how often the line was reached.
    pub calls: u64,
    /// Calls that an exception ended.
    pub failed: u64,
    /// Wall time in the method, callees included, in nanoseconds. It counts calls that ended and
    /// were not nested in another call of the method on the same thread.
    pub total_ns: u64,
    /// Wall time of all calls that ended, in nanoseconds. Nested calls of the method also count.
    pub(crate) all_ns: u64,
    /// Time of the longest call, in nanoseconds.
    pub max_ns: u64,
    /// Distribution of the durations, in nanoseconds, of the calls that ended.
    durations: Durations,
}

/// A line of the source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProbedPlace {
    /// Path of the file as passed to the compiler.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u32,
}

/// Key of a row. Probes of several processes with the same key form one row: name, signature,
/// assembly and line.
pub(crate) type Key = (String, String, String, Option<ProbedPlace>);

impl ProbeRow {
    /// Number of calls that ended, by a return or by an exception.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.durations.count()
    }

    /// Number of calls that had not ended when the recording ended.
    #[must_use]
    pub fn active(&self) -> u64 {
        self.calls.saturating_sub(self.ended())
    }

    /// Mean duration of a call, in nanoseconds; `None` if no call ended.
    #[must_use]
    pub fn mean_ns(&self) -> Option<u64> {
        self.all_ns.checked_div(self.ended())
    }

    /// Time within which `percent` percent of the ended calls completed, in nanoseconds, with an
    /// error of 3 %; 100 percent gives the longest call. `None` if no call ended.
    #[must_use]
    pub fn percentile_ns(&self, percent: u8) -> Option<u64> {
        self.durations.percentile_ns(percent, self.max_ns)
    }

    /// An empty row of a method. It is marked as removed until a process is added whose probes are
    /// present.
    pub(crate) fn of_method(name: &str, signature: &str, module: &str) -> Self {
        let [name, signature, module] = [name, signature, module].map(str::to_owned);
        Self { name, signature, module, ..unseen() }
    }

    /// Key of the row among the rows of a recording.
    pub(crate) fn key(&self) -> Key {
        (self.name.clone(), self.signature.clone(), self.module.clone(), self.place.clone())
    }

    /// Adds the counts of another row.
    pub(crate) fn join(&mut self, other: &Self) {
        self.is_removed &= other.is_removed;
        let sums = [
            (&mut self.calls, other.calls),
            (&mut self.failed, other.failed),
            (&mut self.total_ns, other.total_ns),
            (&mut self.all_ns, other.all_ns),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
        self.max_ns = self.max_ns.max(other.max_ns);
        self.durations.join(&other.durations);
    }

    pub(crate) fn add_line(&mut self, line: &ProbedLine) {
        self.is_removed &= line.is_removed;
        self.calls = self.calls.saturating_add(line.hits);
    }

    pub(crate) fn add(&mut self, process: &Process, method: &ProbedMethod) {
        let ns = |ticks: f64| (ticks * process.ticks.ns_per_tick) as u64;
        self.is_removed &= method.is_removed;
        self.calls = self.calls.saturating_add(method.calls);
        self.failed = self.failed.saturating_add(method.failed);
        self.total_ns = self.total_ns.saturating_add(ns(method.ticks.saturating_sub(method.nested) as f64));
        self.all_ns = self.all_ns.saturating_add(ns(method.ticks as f64));
        self.max_ns = self.max_ns.max(ns(method.longest as f64));
        for (bucket, calls) in method.buckets.iter().enumerate().filter(|(_, calls)| **calls > 0) {
            let [least, next] = [bucket, bucket + 1].map(|bucket| layout::least(bucket) as f64);
            self.durations.add_all(ns((least + next) / 2.0), *calls);
        }
    }
}

/// The probed methods and lines of the processes that a query selects, ordered by time. Also
/// returns the number of rows that the limit left out.
///
/// # Errors
/// When the query matches no process, or `probes` was not recorded.
pub fn probes(recording: &Recording, query: &Query) -> Result<(Vec<ProbeRow>, usize), QueryProblem> {
    query.without_metric("probes")?;
    let mut rows: BTreeMap<Key, ProbeRow> = BTreeMap::new();
    let mut is_recorded = false;
    for process in select::processes(recording, query)? {
        is_recorded |= process.arenas(instrument::PROBES).next().is_some();
        let module = |index: u32| process.module_name(index);
        let is_meant = |of: u32, name: &str, signature: &str| query.wants_method(module(of), name, signature);
        for chunk in process.arenas(instrument::PROBES).flat_map(|arena| &arena.chunks) {
            let is_meant = |method: &ProbedMethod| is_meant(method.module, &method.name, &method.signature);
            for method in ProbedMethod::all(&chunk.bytes.load()).filter(is_meant) {
                let key = (method.name.clone(), method.signature.clone(), module(method.module).to_owned(), None);
                rows.entry(key).or_insert_with(unseen).add(process, &method);
            }
        }
        for chunk in process.arenas(instrument::PROBE_LINES).flat_map(|arena| &arena.chunks) {
            let is_meant = |line: &ProbedLine| is_meant(line.module, &line.name, &line.signature);
            for line in ProbedLine::all(&chunk.bytes.load()).filter(is_meant) {
                let place = ProbedPlace { file: line.file.clone(), line: line.line };
                let key = (line.name.clone(), line.signature.clone(), module(line.module).to_owned(), Some(place));
                rows.entry(key).or_insert_with(unseen).add_line(&line);
            }
        }
    }
    if !is_recorded {
        return Err(QueryProblem::NotRecorded { view: "probes", instrument: instrument::PROBES });
    }
    let named = |((name, signature, module, place), row)| ProbeRow { name, signature, module, place, ..row };
    let mut rows: Vec<ProbeRow> = rows.into_iter().map(named).collect();
    order(&mut rows, query.sort, |row| row);
    let left_out = query.cut(&mut rows);
    Ok((rows, left_out))
}

/// Whether methods or lines of a recording have probes or had some that were removed.
#[must_use]
pub fn has_probes(recording: &Recording) -> bool {
    probes(recording, &Query::default()).is_ok_and(|(rows, _)| !rows.is_empty())
}

/// An empty row. It is marked as removed until a process is added whose probes are present.
fn unseen() -> ProbeRow {
    ProbeRow { is_removed: true, ..ProbeRow::default() }
}

/// Sorts items by their rows; equal rows are ordered by name.
pub(crate) fn order<T>(all: &mut [T], sort: Option<Sort>, row: impl Fn(&T) -> &ProbeRow) {
    all.sort_by_cached_key(|of| row(of).key());
    match sort {
        Some(Sort::Name) => {}
        Some(Sort::Module) => all.sort_by(|a, b| row(a).module.cmp(&row(b).module)),
        Some(Sort::Calls) => all.sort_by_key(|of| Reverse(row(of).calls)),
        // Lines have no time and come after all methods.
        _ => all.sort_by_key(|of| Reverse((row(of).total_ns, row(of).place.as_ref().map(|_| row(of).calls)))),
    }
}

#[cfg(test)]
mod tests {
    use clrscope_recording::layout::probe_lines as lines;
    use clrscope_recording::model::{EventArena, EventChunk, Module, TickClock};

    use super::*;

    /// A process in which each call of `Shop.Cart::Add` took the given ticks, and one call has not
    /// ended.
    fn process(ns_per_tick: f64, ticks: &[u64]) -> Process {
        let method = ProbedMethod { module: 1, token: 7, name: "Shop.Cart::Add".into(), ..ProbedMethod::default() };
        let mut bytes = method.to_empty_bytes(1);
        let mut add = |at: usize, more: u64| {
            let at = layout::HEAD + at;
            let sum = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) + more;
            bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
        };
        add(layout::CALLS, ticks.len() as u64 + 1);
        add(layout::FAILED, 1);
        add(layout::LONGEST, ticks.iter().copied().max().unwrap_or(0));
        for ticks in ticks {
            add(layout::TICKS, *ticks);
            add(layout::BUCKETS + layout::bucket(*ticks) * 8, 1);
        }
        let chunk = EventChunk { thread: u32::MAX, sequence: 0, bytes: bytes.into() };
        Process {
            ticks: TickClock { start: 0, ns_per_tick },
            modules: vec![Module::default(), Module { name: "Shop".into(), ..Module::default() }],
            events: vec![EventArena { instrument: instrument::PROBES.into(), chunks: vec![chunk] }],
            ..Process::default()
        }
    }

    #[test]
    fn times_of_processes_with_clocks_of_their_own_are_added_up() {
        let mut slow: Vec<u64> = vec![1_000_000];
        slow.extend([2_000; 49]);
        let processes = vec![process(1.0, &[1_000; 50]), process(0.5, &slow)];
        let recording = Recording { processes, ..Recording::default() };
        let (rows, left_out) = probes(&recording, &Query::default()).expect("rows");
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        assert_eq!((row.calls, row.failed, row.ended(), row.active(), left_out), (102, 2, 100, 2, 0));
        assert_eq!((row.total_ns, row.max_ns, row.mean_ns()), (99_000 + 500_000, 500_000, Some(5_990)));
        let near = |percent: u8, wanted: u64| {
            let found = row.percentile_ns(percent).expect("a time");
            assert!(found.abs_diff(wanted) * 100 <= wanted * 4, "{percent}: {found}");
        };
        [50, 90, 99].into_iter().for_each(|percent| near(percent, 1_000));
        assert_eq!(row.percentile_ns(100), Some(500_000), "no call took longer than the longest");
    }

    #[test]
    fn calls_within_themselves_count_once_in_the_total_and_each_in_the_mean() {
        let mut of = process(2.0, &[1_000, 900, 800]);
        let mut bytes = of.events[0].chunks[0].bytes.load().to_vec();
        bytes[layout::HEAD + layout::NESTED..][..8].copy_from_slice(&1_700_u64.to_le_bytes());
        of.events[0].chunks[0].bytes = bytes.into();
        let recording = Recording { processes: vec![of], ..Recording::default() };
        let (rows, _) = probes(&recording, &Query::default()).expect("rows");
        assert_eq!((rows[0].total_ns, rows[0].mean_ns()), (2_000, Some(1_800)));
    }

    #[test]
    fn hits_of_a_line_are_added_up_and_stand_beside_the_calls_of_the_method() {
        let line = |removed: u8, hits: u8| {
            let (file, name) = ("/src/Cart.cs".to_owned(), "Shop.Cart::Add".to_owned());
            let line = ProbedLine { module: 1, token: 7, line: 42, file, name, ..ProbedLine::default() };
            let mut bytes = line.to_empty_bytes();
            bytes[lines::REMOVED] = removed;
            bytes[lines::HEAD + lines::LANE + lines::HITS] = hits;
            let chunk = EventChunk { thread: u32::MAX, sequence: 0, bytes: bytes.into() };
            EventArena { instrument: instrument::PROBE_LINES.into(), chunks: vec![chunk] }
        };
        let mut processes = vec![process(1.0, &[1_000]), process(1.0, &[])];
        processes[0].events.push(line(1, 3));
        processes[1].events.push(line(0, 4));
        let recording = Recording { processes, ..Recording::default() };
        let (rows, _) = probes(&recording, &Query::default()).expect("rows");
        let place = ProbedPlace { file: "/src/Cart.cs".to_owned(), line: 42 };
        let seen: Vec<_> = rows.iter().map(|row| (row.place.clone(), row.calls, row.is_removed)).collect();
        assert_eq!(seen, [(None, 3, false), (Some(place), 7, false)]);
        assert_eq!((rows[1].mean_ns(), rows[1].percentile_ns(50)), (None, None));
    }

    #[test]
    fn a_method_without_an_end_has_no_time() {
        let recording = Recording { processes: vec![process(1.0, &[])], ..Recording::default() };
        let (rows, _) = probes(&recording, &Query::default()).expect("rows");
        let row = &rows[0];
        assert_eq!((row.active(), row.mean_ns(), row.percentile_ns(50), row.max_ns), (1, None, None, 0));
        let nothing = Recording { processes: vec![Process::default()], ..Recording::default() };
        assert!(matches!(probes(&nothing, &Query::default()), Err(QueryProblem::NotRecorded { .. })));
    }
}
