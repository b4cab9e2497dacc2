//! Reduces a recording to the work for some requests, before any view is computed.
//!
//! Threads record when they start to work for another request. A sample, an exception or a wait
//! belongs to the request that its thread worked for at that time. Only requests that the program
//! serves have such work.

use std::collections::BTreeSet;
use std::sync::Arc;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{EventBytes, Process, Recording, Sample, ShownWork};
use rustc_hash::FxHashMap;

use super::Request;
use super::read::Reading;
use super::switches::Switches;
use crate::query::{Query, QueryProblem};
use crate::request_filter::RequestFilter;

/// Instruments whose records are samples.
const SAMPLED: [&str; 2] = [instrument::CPU, instrument::WALL];
/// Maximum number of request names that an error lists.
const MOST_NAMED: usize = 10;

/// Reduces a recording to the work for the requests that the filter selects. Samples of other work
/// are deleted, and events stay only if their thread worked for a selected request. Without a
/// filter nothing changes. The requests themselves, and facts about the whole process, stay.
///
/// # Errors
/// When no process has recorded requests, or the filter selects none.
pub fn keep_requests(recording: &mut Recording, filter: &RequestFilter) -> Result<(), QueryProblem> {
    if *filter == RequestFilter::default() {
        return Ok(());
    }
    let has_recorded = |process: &Process| process.arenas(instrument::REQUESTS).next().is_some();
    if !recording.processes.iter().any(has_recorded) {
        return Err(QueryProblem::RequestsNotRecorded);
    }
    let meant: Vec<MeantRequests> =
        recording.processes.iter().map(|process| MeantRequests::read(process, filter)).collect();
    if meant.iter().all(|meant| meant.all == 0) {
        return Err(QueryProblem::NoRequest { known: known_names(recording) });
    }
    if let Some(physical) = &mut recording.physical {
        keep_requests(Arc::make_mut(physical), filter)?;
    }
    for (process, meant) in recording.processes.iter_mut().zip(meant) {
        keep_work(process, shown_work(process, meant));
    }
    Ok(())
}

/// Requests of a process that a filter selects.
#[derive(Debug, Default)]
struct MeantRequests {
    all: u64,
    /// Ids of the selected requests that threads may have worked for.
    ids: BTreeSet<u64>,
}

impl MeantRequests {
    fn read(process: &Process, filter: &RequestFilter) -> Self {
        let mut meant = Self::default();
        each_request(process, |request| {
            if filter.matches(request) {
                meant.all += 1;
                // In a recording that is reduced already, the requests stay that both filters
                // select.
                meant.ids.extend(request.id.filter(|id| process.shows_request(Some(*id))));
            }
        });
        meant
    }
}

fn each_request(process: &Process, mut visit: impl FnMut(&Request<'_>)) {
    for arena in process.arenas(instrument::REQUESTS) {
        Reading::new(process, arena).each(&Query::default(), |request| visit(&request));
    }
}

/// Names of requests, the most frequent first.
fn known_names(recording: &Recording) -> Vec<String> {
    let mut counts: FxHashMap<String, u64> = FxHashMap::default();
    for process in &recording.processes {
        each_request(process, |request| *counts.entry(request.route.to_string()).or_default() += 1);
    }
    let mut names: Vec<(String, u64)> = counts.into_iter().collect();
    names.sort_by(|(name, count), (other, more)| more.cmp(count).then_with(|| name.cmp(other)));
    names.into_iter().map(|(name, _)| name).take(MOST_NAMED).collect()
}

fn shown_work(process: &Process, meant: MeantRequests) -> ShownWork {
    let switches = Switches::for_process(process);
    let mut work = ShownWork::default();
    work.is_known = switches.is_known();
    switches.each_stretch(|thread, stretch| {
        if meant.ids.contains(&stretch.request) {
            work.push(thread, stretch.since_ns, stretch.until_ns);
        }
    });
    work.requests = meant.ids;
    work
}

fn keep_work(process: &mut Process, work: ShownWork) {
    let started_ns = process.started_ns;
    let is_meant = |sample: &Sample| work.has(sample.thread, started_ns.saturating_add(sample.time_ns));
    for arena in process.events.iter_mut().filter(|arena| SAMPLED.contains(&&*arena.instrument)) {
        for chunk in &mut arena.chunks {
            let all = chunk.bytes.load();
            let bytes: Vec<u8> = Sample::all(&all).filter(is_meant).flat_map(|sample| sample.to_bytes()).collect();
            drop(all);
            chunk.bytes = EventBytes::from(bytes);
        }
    }
    // The measured CPU time covers all work of the process.
    process.cpu_ns = None;
    process.threads.iter_mut().for_each(|thread| thread.cpu_ns = None);
    process.shown_work = Some(Arc::new(work));
}
