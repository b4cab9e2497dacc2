//! The view `load`: how long requests took to be served, and how many were, by how many were under
//! way at once; and at how many it is best, the knee.
//!
//! What is under way is counted over all requests that the process serves, whatever the filters:
//! they share the process. The load is that of the tenth of a second in which a request began or
//! ended ([`slices`](super::slices)).

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

/// Name of all routes together.
const ALL: &str = "(all)";
/// Requests without which a load says nothing of the knee.
const ENOUGH: u64 = 20;

/// Requests that began at one load.
#[derive(Debug, Clone)]
pub struct LoadLevel {
    /// Requests under way in the process.
    pub load: Load,
    /// Requests that are entirely in the recording.
    pub requests: u64,
    /// Time of these together, in nanoseconds.
    pub total_ns: u64,
    /// Time of the longest, in nanoseconds.
    pub max_ns: u64,
    /// Requests that ended at the load.
    pub ended: u64,
    /// How long the process was at the load, in nanoseconds.
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

    /// Time of a request on average.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.total_ns.checked_div(self.requests).unwrap_or(0)
    }

    /// Time within which `percent` of the requests were done, 3 % more or less.
    #[must_use]
    pub fn percentile_ns(&self, percent: u8) -> Option<u64> {
        self.durations.percentile_ns(percent, self.max_ns)
    }

    /// Requests that ended in a second at the load; `None` where it did not last.
    #[must_use]
    pub fn per_second(&self) -> Option<f64> {
        (self.time_ns > 0).then(|| self.ended as f64 * 1e9 / self.time_ns as f64)
    }

    /// Kleinrock's power: what is done by how long it takes. `None` where it is not known.
    fn power(&self) -> Option<f64> {
        self.per_second().filter(|_| self.requests >= ENOUGH).map(|rate| rate / self.mean_ns().max(1) as f64)
    }
}

/// Reason why a route has no knee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoKnee {
    /// There are fewer than two loads with enough requests.
    TooFew,
    /// Requests took no longer at any load than at the best.
    NotReached,
}

/// Requests of a route by load.
#[derive(Debug, Clone)]
pub struct LoadCurve<'a> {
    /// The process.
    pub process: &'a Process,
    /// Method with the template of the route; `(all)` of all routes together.
    pub route: Rc<str>,
    /// Whether it is all routes together.
    pub is_all: bool,
    /// Whether each request was recorded.
    pub is_exact: bool,
    /// Loads at which requests began, in ascending order.
    pub levels: Vec<LoadLevel>,
}

impl LoadCurve<'_> {
    /// The knee: the level with the greatest power, where others behind it say what becomes of more
    /// load: they have a mean time at least half longer. Levels with few requests are not looked
    /// at.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn knee(&self) -> Result<&LoadLevel, NoKnee> {
        let known: Vec<(&LoadLevel, f64)> =
            self.levels.iter().filter_map(|level| Some((level, level.power()?))).collect();
        // Among equals the first: less load does as well.
        let best = known.iter().enumerate().rev().max_by(|a, b| a.1.1.total_cmp(&b.1.1)).map(|(at, _)| at);
        let Some(best) = best.filter(|_| known.len() > 1) else { return Err(NoKnee::TooFew) };
        let (knee, behind) = (known[best].0, &known[best + 1..]);
        let takes_longer = |level: &LoadLevel| level.mean_ns() >= knee.mean_ns().saturating_add(knee.mean_ns() / 2);
        if behind.iter().any(|(level, _)| takes_longer(level)) { Ok(knee) } else { Err(NoKnee::NotReached) }
    }

    /// The highest level that has enough requests to say something.
    #[must_use]
    pub fn highest(&self) -> Option<&LoadLevel> {
        self.levels.iter().rev().find(|level| level.power().is_some())
    }

    fn total_ns(&self) -> u64 {
        self.levels.iter().fold(0, |sum, level| sum.saturating_add(level.total_ns))
    }
}

/// Served requests by load: of each process all together, then by route, those first that took the
/// most time together.
///
/// # Errors
/// When no process is meant, or `requests` was not recorded.
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
    // What is under way when the time that is wanted begins may end behind it.
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
            // One that began before the recording, or while it was switched off, is there from the
            // beginning on.
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

/// Times in order, where those that overlap or touch are one.
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
