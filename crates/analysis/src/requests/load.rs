//! The view `load`: durations and throughput of served requests, by the number of concurrent
//! requests. It also finds the knee: the load at which the process works best.
//!
//! Concurrent requests are counted over all requests that the process serves, whatever the filters,
//! because all requests share the process. The load of a request is the load of the tenth of a
//! second in which it began or ended ([`slices`](super::slices)).

use std::collections::BTreeMap;
use std::rc::Rc;

use clrscope_contract::request::Glob;
use clrscope_recording::model::{Process, Recording};
use rustc_hash::FxHashMap;

use super::slices::{Load, LoadEvent, ServedRequest, by_load};
use super::{Direction, Reading, RecordedRequests, RequestEnd, recorded};
use crate::durations::Durations;
use crate::parts::watched_times;
use crate::query::{Query, QueryProblem};

/// Name of the row that sums all routes.
const ALL: &str = "(all)";
/// Minimum number of requests at a load, so that it counts in the search for the knee.
const ENOUGH: u64 = 20;

/// Requests that began at one load.
#[derive(Debug, Clone)]
pub struct LoadLevel {
    /// Number of concurrent requests in the process.
    pub load: Load,
    /// Number of requests that are entirely in the recording.
    pub requests: u64,
    /// Total duration of these requests, in nanoseconds.
    pub total_ns: u64,
    /// Duration of the longest of these requests, in nanoseconds.
    pub max_ns: u64,
    /// Number of requests that ended at this load.
    pub ended: u64,
    /// Time that the process was at this load, in nanoseconds.
    pub time_ns: u64,
    durations: Durations,
}

impl LoadLevel {
    fn new(load: Load) -> Self {
        let durations = Durations::default();
        Self { load, requests: 0, total_ns: 0, max_ns: 0, ended: 0, time_ns: 0, durations }
    }

    fn add(&mut self, told: LoadEvent) {
        match told {
            LoadEvent::Ended { .. } => self.ended += 1,
            LoadEvent::Began { duration_ns, .. } => {
                self.requests += 1;
                self.total_ns = self.total_ns.saturating_add(duration_ns);
                self.max_ns = self.max_ns.max(duration_ns);
                self.durations.add(duration_ns);
            }
        }
    }

    /// Mean duration of a request, in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.total_ns.checked_div(self.requests).unwrap_or(0)
    }

    /// Time within which `percent` percent of the requests completed, in nanoseconds, with an error
    /// of 3 %.
    #[must_use]
    pub fn percentile_ns(&self, percent: u8) -> Option<u64> {
        self.durations.percentile_ns(percent, self.max_ns)
    }

    /// Requests that ended per second at this load; `None` if the process was at this load for no
    /// time.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        (self.time_ns > 0).then(|| self.ended as f64 * 1e9 / self.time_ns as f64)
    }

    /// Kleinrock's power: throughput divided by mean duration. `None` if unknown.
    fn power(&self) -> Option<f64> {
        self.per_second().filter(|_| self.requests >= ENOUGH).map(|rate| rate / self.mean_ns().max(1) as f64)
    }
}

/// Reason why a route has no knee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoKnee {
    /// There are fewer than two loads with enough requests.
    TooFew,
    /// Requests took hardly longer at higher loads than at the best load.
    NotReached,
}

/// Requests of one route, by load.
#[derive(Debug, Clone)]
pub struct LoadCurve<'a> {
    /// The process.
    pub process: &'a Process,
    /// HTTP method with the route template; `(all)` for all routes together.
    pub route: Rc<str>,
    /// Whether this row is for all routes together.
    pub is_all: bool,
    /// Whether every request was recorded. If not, the numbers may be too low.
    pub is_exact: bool,
    /// One entry per load at which requests began, by ascending load.
    pub levels: Vec<LoadLevel>,
}

impl LoadCurve<'_> {
    /// The knee: the level with the largest power (throughput divided by mean duration). At some
    /// higher load, the mean duration must be longer by at least half, which shows that the peak
    /// was passed. Levels with few requests are ignored.
    ///
    /// # Errors
    /// The reason why there is no knee.
    pub fn knee(&self) -> Result<&LoadLevel, NoKnee> {
        let known: Vec<(&LoadLevel, f64)> =
            self.levels.iter().filter_map(|level| Some((level, level.power()?))).collect();
        // The first of equal levels: a lower load achieves the same.
        let best = known.iter().enumerate().rev().max_by(|a, b| a.1.1.total_cmp(&b.1.1)).map(|(at, _)| at);
        let Some(best) = best.filter(|_| known.len() > 1) else { return Err(NoKnee::TooFew) };
        let (knee, behind) = (known[best].0, &known[best + 1..]);
        let takes_longer = |level: &LoadLevel| level.mean_ns() >= knee.mean_ns().saturating_add(knee.mean_ns() / 2);
        if behind.iter().any(|(level, _)| takes_longer(level)) { Ok(knee) } else { Err(NoKnee::NotReached) }
    }

    /// The level with the highest load among levels with enough requests.
    #[must_use]
    pub fn highest(&self) -> Option<&LoadLevel> {
        self.levels.iter().rev().find(|level| level.power().is_some())
    }

    fn total_ns(&self) -> u64 {
        self.levels.iter().fold(0, |sum, level| sum.saturating_add(level.total_ns))
    }
}

/// Served requests by load. For each process, all routes together come first, then each route,
/// ordered by total duration.
///
/// # Errors
/// When the query matches no process, or `requests` was not recorded.
pub fn loads<'a>(recording: &'a Recording, query: &Query) -> Result<Vec<LoadCurve<'a>>, QueryProblem> {
    let mut curves = Vec::new();
    for of_process in recorded(recording, query, "load")? {
        let (served, routes) = served(&of_process, query);
        let watched = merged(watched_times(of_process.process, query, (0, u64::MAX)));
        let mut levels: BTreeMap<(Option<u32>, Load), LoadLevel> = BTreeMap::new();
        let times = by_load(&served, &watched, |load, told| {
            let (LoadEvent::Began { route, .. } | LoadEvent::Ended { route }) = told;
            for route in [None, Some(route)] {
                levels.entry((route, load)).or_insert_with(|| LoadLevel::new(load)).add(told);
            }
        });
        let mut of_routes: BTreeMap<Option<u32>, Vec<LoadLevel>> = BTreeMap::new();
        for ((route, load), level) in levels.into_iter().filter(|(_, level)| level.requests > 0) {
            let time_ns = times.get(&load).copied().unwrap_or(0);
            of_routes.entry(route).or_default().push(LoadLevel { time_ns, ..level });
        }
        let RecordedRequests { process, is_exact, .. } = of_process;
        let first = curves.len();
        curves.extend(of_routes.into_iter().map(|(number, levels)| {
            let route = number.map_or_else(|| Rc::from(ALL), |number| Rc::clone(&routes[number as usize]));
            LoadCurve { process, route, is_all: number.is_none(), is_exact, levels }
        }));
        let order = |curve: &LoadCurve<'_>| (!curve.is_all, std::cmp::Reverse(curve.total_ns()));
        curves[first..].sort_by(|a, b| order(a).cmp(&order(b)).then_with(|| a.route.cmp(&b.route)));
    }
    Ok(curves)
}

/// The requests that a process served, and the names of their routes.
fn served(recorded: &RecordedRequests<'_>, query: &Query) -> (Vec<ServedRequest>, Vec<Rc<str>>) {
    let process = recorded.process;
    // A request under way at the start of the query's time range may end after that range.
    let any_time = Query { since_ns: None, until_ns: None, ..query.clone() };
    let stretches = merged(process.parts.iter().map(|part| (part.since_ns, part.until_ns)).collect());
    let (mut all, mut routes) = (Vec::new(), Vec::new());
    let mut numbers: FxHashMap<Rc<str>, u32> = FxHashMap::default();
    for arena in &recorded.arenas {
        Reading::new(process, arena).each(&any_time, |request| {
            if request.direction != Direction::Served {
                return;
            }
            let route = Glob::any_matches(&query.requests.routes, &request.route).then(|| {
                *numbers.entry(Rc::clone(&request.route)).or_insert_with(|| {
                    routes.push(Rc::clone(&request.route));
                    routes.len() as u32 - 1
                })
            });
            let ended_ns = request.last_ns;
            // A request that began before the recording, or while the recording was switched off,
            // counts from the start of the recorded stretch.
            let before = stretches.iter().rev().find(|(since, _)| *since <= ended_ns);
            let first_ns = before.map_or(process.started_ns, |(since, _)| *since).min(ended_ns);
            let began_ns = request.duration_ns.map_or(first_ns, |_| request.time_ns);
            let duration_ns = (!request.is_partial()).then(|| ended_ns.saturating_sub(began_ns));
            let has_ended = request.end != RequestEnd::UnderWay;
            all.push(ServedRequest { began_ns, ended_ns, route, duration_ns, has_ended });
        });
    }
    (all, routes)
}

/// Sorts time ranges and merges ranges that overlap or touch.
fn merged(mut times: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    times.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(times.len());
    for (since, until) in times {
        match merged.last_mut() {
            Some(last) if since <= last.1 => last.1 = last.1.max(until),
            _ => merged.push((since, until)),
        }
    }
    merged
}
