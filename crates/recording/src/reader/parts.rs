//! Parts of the recording: the boundaries of each part, and the gains of the trees in the part.

use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, OnceLock};

use super::segment::SegmentBytes;
use crate::gains::{self, kind};
use crate::log_records::LogRecords;
use crate::model::{BoundaryKind, NodeValues, Part, PartBoundary};
use crate::varint::unzigzag;

/// A boundary, and the number of carry records that precede it in the log.
#[derive(Debug, Clone)]
pub(super) struct Boundary {
    pub(super) record: PartBoundary,
    pub(super) carries: usize,
}

/// The logs of gains, oldest first, with an index that finds the records of one boundary.
#[derive(Debug)]
pub(super) struct GainsLog {
    logs: Vec<SegmentBytes>,
    /// Sorted by boundary, then in the order of the logs. Built when the first part is read.
    records: OnceLock<Vec<IndexedRecord>>,
}

/// Place of a record of gains.
#[derive(Debug)]
struct IndexedRecord {
    boundary: u32,
    kind: u16,
    log: usize,
    place: Range<usize>,
}

impl GainsLog {
    pub(super) fn new(logs: Vec<SegmentBytes>) -> Self {
        Self { logs, records: OnceLock::new() }
    }

    /// Kinds and contents of the records of these boundaries.
    fn records(&self, boundaries: &RangeInclusive<u32>) -> impl Iterator<Item = (u16, &[u8])> {
        let all = self.records.get_or_init(|| self.index());
        let first = all.partition_point(|record| record.boundary < *boundaries.start());
        let meant = all[first..].iter().take_while(|record| boundaries.contains(&record.boundary));
        meant.map(|record| (record.kind, &self.logs[record.log][record.place.clone()]))
    }

    fn index(&self) -> Vec<IndexedRecord> {
        let mut all: Vec<_> = (0..self.logs.len()).flat_map(|log| self.index_of(log)).collect();
        all.sort_by_key(|record| record.boundary);
        all
    }

    fn index_of(&self, log: usize) -> impl Iterator<Item = IndexedRecord> + use<'_> {
        let bytes: &[u8] = &self.logs[log];
        let start = bytes.as_ptr().addr();
        LogRecords::new(bytes).filter_map(move |(kind, payload)| {
            let record = payload.rest();
            let first = record.as_ptr().addr() - start;
            Some(IndexedRecord { boundary: gains::boundary(record)?, kind, log, place: first..first + record.len() })
        })
    }
}

/// Gains of the trees of a process in one part.
#[derive(Debug)]
pub(crate) struct PartGains {
    log: Arc<GainsLog>,
    /// Numbers of the boundaries whose records are summed.
    numbers: RangeInclusive<u32>,
    /// Edges whose count passed 2^32 in this part, each with the number of times.
    carries: Vec<(u32, u32)>,
    /// Whether this is the last part, which ends with the recording. Its gains are the trees'
    /// values minus the gains of all other parts.
    is_rest: bool,
    /// Read when a caller looks at a tree.
    read: OnceLock<Gains>,
}

/// Sums by edge, in ascending order.
#[derive(Debug, Default)]
struct Gains {
    calls: Vec<(u32, i64)>,
    /// Holds ticks instead of wall nanoseconds if hooks read the clock.
    times: Vec<(u32, NodeValues)>,
}

impl PartGains {
    /// The gains from one boundary, or from the beginning, to another one; `None` if damage has put
    /// the boundaries in another order.
    fn between(before: Option<&Boundary>, end: &Boundary, carried: &[u32], log: &Arc<GainsLog>) -> Option<Self> {
        let (number, carries) = before.map_or((0, 0), |before| (before.record.number, before.carries));
        let numbers = number.saturating_add(1)..=end.record.number;
        let carries = carried.get(carries..end.carries).map(count)?;
        Some(Self { log: Arc::clone(log), numbers, carries, is_rest: false, read: OnceLock::new() })
    }

    /// Returns the gain of an edge in this part; `calls` and `values` are the edge's totals.
    /// `ns_per_tick` is given if hooks read the clock.
    pub(super) fn gain_of_edge(
        &self,
        edge: u32,
        calls: u64,
        values: NodeValues,
        ns_per_tick: Option<f64>,
    ) -> (u64, NodeValues) {
        let gains = self.read.get_or_init(|| self.read());
        let mut found = (0_i64, NodeValues::default());
        if let Ok(at) = gains.calls.binary_search_by_key(&edge, |entry| entry.0) {
            found.0 = gains.calls[at].1;
        }
        if let Ok(at) = gains.times.binary_search_by_key(&edge, |entry| entry.0) {
            found.1 = gains.times[at].1;
        }
        if let Some(ns_per_tick) = ns_per_tick {
            found.1.metric = (found.1.metric as f64 * ns_per_tick) as u64;
        }
        // A carry that found no place in the log is missing.
        let gained = u64::try_from(found.0).unwrap_or_else(|_| found.0.wrapping_add(1 << 32).max(0) as u64);
        if !self.is_rest {
            return (gained, found.1);
        }
        let metric = values.metric.saturating_sub(found.1.metric);
        (calls.saturating_sub(gained), NodeValues { metric, cpu_ns: values.cpu_ns.saturating_sub(found.1.cpu_ns) })
    }

    /// Whether the gains of this part are the trees' values minus the gains of all other parts. If
    /// so, nearly every edge may have a gain.
    pub(super) fn is_rest(&self) -> bool {
        self.is_rest
    }

    /// Edges with a gain; some edges appear twice.
    pub(super) fn edges(&self) -> impl Iterator<Item = u32> {
        let gains = self.read.get_or_init(|| self.read());
        gains.calls.iter().map(|entry| entry.0).chain(gains.times.iter().map(|entry| entry.0))
    }

    fn read(&self) -> Gains {
        let mut gains = Gains::default();
        gains.calls.extend(self.carries.iter().map(|&(edge, times)| (edge, i64::from(times) << 32)));
        for (kind, record) in self.log.records(&self.numbers) {
            let times = &mut gains.times;
            // A record that makes no sense any more ends there.
            let _ = match kind {
                kind::CALLS => gains::read(record, |_, edge, [gained]| gains.calls.push((edge, unzigzag(gained)))),
                kind::TICKS => gains::read(record, |_, edge, [metric]| {
                    times.push((edge, NodeValues { metric, cpu_ns: 0 }));
                }),
                kind::TIMES => gains::read(record, |_, edge, [metric, cpu_ns]| {
                    times.push((edge, NodeValues { metric, cpu_ns }));
                }),
                _ => None,
            };
        }
        gains.calls.sort_unstable_by_key(|entry| entry.0);
        gains.calls.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            sum.1 = if same { sum.1.saturating_add(next.1) } else { sum.1 };
            same
        });
        gains.times.sort_unstable_by_key(|entry| entry.0);
        gains.times.dedup_by(|next, sum| {
            let same = next.0 == sum.0;
            if same {
                sum.1.metric = sum.1.metric.saturating_add(next.1.metric);
                sum.1.cpu_ns = sum.1.cpu_ns.saturating_add(next.1.cpu_ns);
            }
            same
        });
        gains
    }
}

/// The parts between the `boundaries` of a recording from `start_ns` to `end_ns`, each with its
/// gains; `None` if the logs of gains do not contain them. `carried` lists the edges whose counts
/// passed 2^32, in the order of the log.
pub(super) fn read(
    boundaries: &[Boundary],
    carried: &[u32],
    log: &Arc<GainsLog>,
    start_ns: u64,
    end_ns: u64,
) -> Vec<(Part, Option<Arc<PartGains>>)> {
    let boundaries = &without_earlier_ends(in_order(boundaries));
    let records: Vec<PartBoundary> = boundaries.iter().map(|boundary| boundary.record.clone()).collect();
    let parts = Part::between(&records, start_ns, end_ns);
    let first_known = first_known(&records);
    let mut ends = Vec::new();
    let mut is_open = true;
    for (at, Boundary { record, .. }) in boundaries.iter().enumerate() {
        if is_open && record.kind != BoundaryKind::Delay {
            ends.push(at);
        }
        is_open = record.kind.begins_part();
    }
    // From the first gain without room on, the gains of the parts are unknown.
    let told = boundaries.iter().position(|b| b.record.number == 0 && b.record.kind != BoundaryKind::Delay);
    let told = told.unwrap_or(boundaries.len());
    let of_part = |part: usize| match (ends.get(part), boundaries.last()) {
        (Some(&end), _) if end < told && boundaries[end].record.number >= first_known => {
            let before = end.checked_sub(1).map(|before| &boundaries[before]);
            PartGains::between(before, &boundaries[end], carried, log)
        }
        (None, Some(last)) if told == boundaries.len() && first_known == 0 => {
            PartGains::between(None, last, carried, log).map(|gains| PartGains { is_rest: true, ..gains })
        }
        _ => None,
    };
    let with_gains = |(at, part)| (part, of_part(at).map(Arc::new));
    let mut parts: Vec<_> = parts.into_iter().enumerate().map(with_gains).collect();
    // What came after the end that the process recorded belongs to its last period.
    if records.last().is_some_and(PartBoundary::is_end_of_process) && parts.len() > 1 {
        let after = parts.pop().map_or(end_ns, |(after, _)| after.until_ns);
        parts.last_mut().into_iter().for_each(|(last, _)| last.until_ns = after);
    }
    parts
}

/// Removes the boundaries at the end of the process, except the last one. A process that ends may
/// end its last period several times; all but the last time are too early.
fn without_earlier_ends(mut boundaries: Vec<Boundary>) -> Vec<Boundary> {
    let last = boundaries.iter().rposition(|boundary| boundary.record.is_end_of_process());
    let mut at = 0..;
    boundaries.retain(|boundary| at.next() == last || !boundary.record.is_end_of_process());
    boundaries
}

/// Number of the first boundary whose gains are in the logs; 0 if the logs have the gains of all
/// boundaries. The logs reach back to the second last end of a period.
fn first_known(boundaries: &[PartBoundary]) -> u32 {
    let cuts = boundaries.iter().rev().filter(|boundary| boundary.kind == BoundaryKind::Cut);
    cuts.map(|cut| cut.number).nth(1).map_or(0, |number| number.saturating_add(1))
}

/// The gains of the period from the boundary `before`, or from the start if that is `None`, to the
/// boundary `end`; `None` if the gains are not known.
pub(super) fn of_period(
    before: Option<&Boundary>,
    end: &Boundary,
    carried: &[u32],
    log: &Arc<GainsLog>,
) -> Option<Arc<PartGains>> {
    let number = before.map_or(0, |before| before.record.number);
    let is_known = end.record.number > number && (before.is_none() || number > 0);
    PartGains::between(before, end, carried, log).filter(|_| is_known).map(Arc::new)
}

/// Boundaries in the order of their times, without boundaries that the program's code set while
/// nothing was recorded. Several threads of the program and the agent's thread may note boundaries
/// at the same time; all boundaries with numbers come from one thread.
fn in_order(boundaries: &[Boundary]) -> Vec<Boundary> {
    let mut ordered = boundaries.to_vec();
    ordered.sort_by_key(|boundary| boundary.record.mono_ns);
    let mut is_open = true;
    ordered.retain(|Boundary { record, .. }| {
        let counts = is_open || !record.kind.needs_recording();
        is_open = if counts { record.kind.begins_part() } else { is_open };
        counts
    });
    ordered
}

/// The distinct edges in ascending order, each with how often it occurs.
pub(super) fn count(edges: &[u32]) -> Vec<(u32, u32)> {
    let mut edges = edges.to_vec();
    edges.sort_unstable();
    edges.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
}
