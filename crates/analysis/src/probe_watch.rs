//! Probes of a recording that is still growing: their counts since the recording began, and since
//! the last look.

use std::collections::{BTreeMap, HashMap};

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{ProbedLine, ProbedMethod, Process, Recording};

use crate::probes::{Key, ProbeRow, ProbedPlace, probes};
use crate::query::{Query, QueryProblem};

/// The counts of a recording's probes at the last look.
#[derive(Debug, Default)]
pub struct ProbeWatch {
    /// Methods at the last look, by process, module, token and source line.
    methods: HashMap<(u32, u32, u32), ProbedMethod>,
    lines: HashMap<(u32, u32, u32, u32, String), u64>,
}

/// A probed method or line of a growing recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedProbe {
    /// Counts since the recording began.
    pub all: ProbeRow,
    /// Counts since the last look, except that the longest time covers the whole recording.
    pub gained: ProbeRow,
}

impl ProbeWatch {
    /// Returns the probes of a growing recording, or of one of its processes. The probe with the
    /// most time since the last look comes first.
    ///
    /// # Errors
    /// When the query matches no process, or `probes` was not recorded.
    pub fn look(&mut self, recording: &Recording, query: &Query) -> Result<Vec<WatchedProbe>, QueryProblem> {
        let (rows, _) = probes(recording, query)?;
        let mut gains: BTreeMap<Key, ProbeRow> = BTreeMap::new();
        recording.processes.iter().for_each(|process| self.add_gains(process, &mut gains));
        let watched = |all: ProbeRow| {
            let gained = gains.remove(&all.key()).unwrap_or_default();
            WatchedProbe { all, gained }
        };
        let mut watched: Vec<WatchedProbe> = rows.into_iter().map(watched).collect();
        watched.sort_by_key(|one| std::cmp::Reverse((one.gained.total_ns, one.gained.calls)));
        Ok(watched)
    }

    fn add_gains(&mut self, process: &Process, gains: &mut BTreeMap<Key, ProbeRow>) {
        let module = |index: u32| process.module_name(index).to_owned();
        for chunk in process.arenas(instrument::PROBES).flat_map(|arena| &arena.chunks) {
            for method in ProbedMethod::all(&chunk.bytes.load()) {
                let key = (method.name.clone(), method.signature.clone(), module(method.module), None);
                let before = self.methods.insert((process.pid, method.module, method.token), method.clone());
                gains.entry(key).or_default().add(process, &since(method, before.as_ref()));
            }
        }
        for chunk in process.arenas(instrument::PROBE_LINES).flat_map(|arena| &arena.chunks) {
            for mut line in ProbedLine::all(&chunk.bytes.load()) {
                let place = ProbedPlace { file: line.file.clone(), line: line.line };
                let key = (line.name.clone(), line.signature.clone(), module(line.module), Some(place));
                let place = (process.pid, line.module, line.token, line.line, line.file.clone());
                line.hits = line.hits.saturating_sub(self.lines.insert(place, line.hits).unwrap_or(0));
                gains.entry(key).or_default().add_line(&line);
            }
        }
    }
}

/// The counts of a method minus its counts at the last look. Ticks are subtracted, not nanoseconds,
/// because each look knows the length of a tick more precisely.
fn since(mut method: ProbedMethod, before: Option<&ProbedMethod>) -> ProbedMethod {
    let Some(before) = before else { return method };
    method.calls = method.calls.saturating_sub(before.calls);
    method.failed = method.failed.saturating_sub(before.failed);
    method.ticks = method.ticks.saturating_sub(before.ticks);
    method.nested = method.nested.saturating_sub(before.nested);
    for (now, before) in method.buckets.iter_mut().zip(&before.buckets) {
        *now = now.saturating_sub(*before);
    }
    method
}

#[cfg(test)]
mod tests {
    use clrscope_recording::layout::probes as layout;
    use clrscope_recording::model::{EventArena, EventChunk, TickClock};

    use super::*;

    /// Recording of one method. Each item of `calls` is a number of calls and the ticks that each
    /// of them took.
    fn recording(calls: &[(u8, u64)], ns_per_tick: f64) -> Recording {
        let method = ProbedMethod { token: 7, name: "Shop.Cart::Add".into(), ..ProbedMethod::default() };
        let mut bytes = method.to_empty_bytes(1);
        for (calls, ticks) in calls {
            bytes[layout::HEAD + layout::CALLS] += calls;
            bytes[layout::HEAD + layout::BUCKETS + layout::bucket(*ticks) * 8] = *calls;
            let sum = layout::HEAD + layout::TICKS;
            let ticks = u64::from_le_bytes(bytes[sum..sum + 8].try_into().expect("eight")) + u64::from(*calls) * ticks;
            bytes[sum..sum + 8].copy_from_slice(&ticks.to_le_bytes());
            bytes[layout::HEAD + layout::LONGEST..][..8].copy_from_slice(&1_000_000_u64.to_le_bytes());
        }
        let chunk = EventChunk { thread: u32::MAX, sequence: 0, bytes: bytes.into() };
        let process = Process {
            pid: 3,
            ticks: TickClock { start: 0, ns_per_tick },
            events: vec![EventArena { instrument: instrument::PROBES.into(), chunks: vec![chunk] }],
            ..Process::default()
        };
        Recording { processes: vec![process], ..Recording::default() }
    }

    #[test]
    fn percentiles_are_those_of_the_calls_since_the_last_look() {
        let mut watch = ProbeWatch::default();
        let mut look = |recording| watch.look(&recording, &Query::default()).expect("probes").remove(0);
        let first = look(recording(&[(100, 1_000)], 1.0));
        assert_eq!((first.all.calls, first.gained.calls), (100, 100));
        // The length of a tick is known more precisely now.
        let second = look(recording(&[(100, 1_000), (10, 50_000)], 1.01));
        assert_eq!((second.all.calls, second.gained.calls, second.gained.ended()), (110, 10, 10));
        let near = |found: Option<u64>, wanted: u64| found.expect("a time").abs_diff(wanted) * 20 < wanted;
        assert!(near(second.all.percentile_ns(50), 1_010) && near(second.gained.percentile_ns(50), 50_500));
        let third = look(recording(&[(100, 1_000), (10, 50_000)], 1.0));
        assert_eq!((third.gained.calls, third.gained.percentile_ns(99)), (0, None));
    }
}
