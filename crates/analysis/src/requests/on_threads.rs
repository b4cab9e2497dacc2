//! Reducing a recording to what was done for some requests, before anything is asked of it.
//!
//! Threads have recorded for which request they work from when on. A sample is of the request for
//! which its thread worked at its time.

use clrscope_recording::events::{Kind, Records, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{EventBytes, Process, Recording, Sample};
use rustc_hash::{FxHashMap, FxHashSet};

use super::read::Reading;
use crate::query::{Query, QueryProblem};
use crate::request_filter::RequestFilter;

/// Instruments whose records are samples.
const SAMPLED: [&str; 2] = [instrument::CPU, instrument::WALL];

/// Takes the samples out of a recording that are of none of the requests that are meant. Without a
/// filter nothing changes.
///
/// # Errors
/// When no process has recorded requests.
pub fn keep_requests(recording: &mut Recording, filter: &RequestFilter) -> Result<(), QueryProblem> {
    if *filter == RequestFilter::default() {
        return Ok(());
    }
    let is_recorded = |process: &Process| process.arenas(instrument::REQUESTS).next().is_some();
    if !recording.processes.iter().any(is_recorded) {
        return Err(QueryProblem::NotRecorded { view: "--request", instrument: instrument::REQUESTS });
    }
    recording.processes.iter_mut().for_each(|process| keep_requests_of(process, filter));
    Ok(())
}

fn keep_requests_of(process: &mut Process, filter: &RequestFilter) {
    let wanted = Wanted::new(process, filter);
    for arena in process.events.iter_mut().filter(|arena| SAMPLED.contains(&&*arena.instrument)) {
        for chunk in &mut arena.chunks {
            let all = chunk.bytes.load();
            let samples = Sample::all(&all).filter(|sample| wanted.has(sample.thread, sample.time_ns));
            let bytes: Vec<u8> = samples.flat_map(|sample| sample.to_bytes()).collect();
            drop(all);
            chunk.bytes = EventBytes::from(bytes);
        }
    }
}

/// Times of threads in which they work for requests that are meant.
struct Wanted {
    /// By thread, in the order of time: from when on it works for one, or does not.
    changes: FxHashMap<u32, Vec<(u64, bool)>>,
}

impl Wanted {
    fn new(process: &Process, filter: &RequestFilter) -> Self {
        let mut ids = FxHashSet::default();
        for arena in process.arenas(instrument::REQUESTS) {
            Reading::new(process, arena).each(&Query::default(), |request| {
                ids.extend(request.id.filter(|_| filter.matches(&request)));
            });
        }
        let mut changes: FxHashMap<u32, Vec<(u64, bool)>> = FxHashMap::default();
        for arena in process.arenas(instrument::REQUESTS) {
            for chunk in &arena.chunks {
                let Some(thread) = process.threads.get(chunk.thread as usize) else { continue };
                let of_thread = changes.entry(thread.id).or_default();
                for record in Records::new(&chunk.bytes.load()) {
                    if record.kind == Kind::REQUEST_ON_THREAD {
                        let is_wanted = record.number(Tag::REQUEST).is_some_and(|id| ids.contains(&id));
                        of_thread.push((record.time_ns, is_wanted));
                    }
                }
            }
        }
        changes.values_mut().for_each(|changes| changes.sort_by_key(|(time_ns, _)| *time_ns));
        Self { changes }
    }

    /// Whether a thread works for a request that is meant.
    fn has(&self, thread: u32, time_ns: u64) -> bool {
        let Some(changes) = self.changes.get(&thread) else { return false };
        let before = changes.partition_point(|(since, _)| *since <= time_ns);
        before.checked_sub(1).is_some_and(|last| changes[last].1)
    }
}
