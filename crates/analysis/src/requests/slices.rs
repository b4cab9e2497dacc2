//! Cuts time into slices and finds the load of each slice: the number of concurrent requests.
//!
//! The number of concurrent requests at one moment says little. A timer or a collection can release
//! many requests at once; they end together, and the number falls and rises within microseconds.
//! Many requests would then end at loads that the process hardly had. The load is therefore the
//! mean over a slice, taken over the time in which any request was under way.

use std::collections::BTreeMap;

/// Length of a slice.
const SLICE_NS: u64 = 100_000_000;

/// Number of concurrent requests. It is exact up to seven; above seven it is a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load(u64);

impl Load {
    /// The load for `requests` concurrent requests, which must be at least one.
    #[must_use]
    pub const fn new(requests: u64) -> Self {
        match requests {
            0 => Self(1),
            1..8 => Self(requests),
            // The two highest bits.
            _ => Self(requests & (0b11 << (requests.ilog2() - 1))),
        }
    }

    /// The lowest number of requests that belongs to this load.
    #[must_use]
    pub const fn first(self) -> u64 {
        self.0
    }

    /// The highest number of requests that belongs to this load.
    #[must_use]
    pub const fn last(self) -> u64 {
        if self.0 < 8 { self.0 } else { self.0 | ((1 << (self.0.ilog2() - 1)) - 1) }
    }
}

/// A served request, with the route that it counts for.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServedRequest {
    pub(super) began_ns: u64,
    pub(super) ended_ns: u64,
    /// Number of its route; `None` for a request that only adds to the load.
    pub(super) route: Option<u32>,
    /// Duration of the request, in nanoseconds; `None` if only a part of it is known.
    pub(super) duration_ns: Option<u64>,
    /// Whether it has ended.
    pub(super) has_ended: bool,
}

/// Begin or end of a request that counts, reported when the load of its slice is known.
#[derive(Debug, Clone, Copy)]
pub(super) enum LoadEvent {
    /// A request began, and took this duration.
    Began { route: u32, duration_ns: u64 },
    /// A request ended.
    Ended { route: u32 },
}

/// What happens at one moment; the variants are in the order in which they are processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Watch,
    Begin(usize),
    End(usize),
    Leave,
}

/// The current slice, and the sums over the slices before it.
struct Slices<'r, T> {
    served: &'r [ServedRequest],
    tell: T,
    /// Time at each load.
    times: BTreeMap<Load, u64>,
    now_ns: u64,
    is_watched: bool,
    under_way: u64,
    /// Concurrent requests, summed over the watched nanoseconds of the slice.
    area: u128,
    /// Watched nanoseconds of the slice in which any request was under way.
    busy_ns: u64,
    /// Most requests at once.
    most: u64,
    told: Vec<LoadEvent>,
}

/// Reports for each request at which load it began and ended. `watched` has the times to look at,
/// which must not overlap. Returns how long the process was at each load, in nanoseconds.
pub(super) fn by_load(
    served: &[ServedRequest],
    watched: &[(u64, u64)],
    tell: impl FnMut(Load, LoadEvent),
) -> BTreeMap<Load, u64> {
    let mut steps: Vec<(u64, Step)> = Vec::with_capacity(2 * (served.len() + watched.len()));
    steps.extend(watched.iter().flat_map(|(since, until)| [(*since, Step::Watch), (*until, Step::Leave)]));
    for (at, one) in served.iter().enumerate() {
        steps.extend([(one.began_ns, Step::Begin(at)), (one.ended_ns.max(one.began_ns), Step::End(at))]);
    }
    steps.sort_unstable();
    let mut slices = Slices {
        served,
        tell,
        times: BTreeMap::new(),
        now_ns: 0,
        is_watched: false,
        under_way: 0,
        area: 0,
        busy_ns: 0,
        most: 0,
        told: Vec::new(),
    };
    for (time_ns, step) in steps {
        slices.advance(time_ns);
        slices.step(step);
    }
    slices.close();
    slices.times
}

impl<T: FnMut(Load, LoadEvent)> Slices<'_, T> {
    /// Advances to a moment and closes the slices before it. Consecutive slices without any step
    /// have the same load and are closed together.
    fn advance(&mut self, to_ns: u64) {
        let (slice, last) = (self.now_ns / SLICE_NS, to_ns / SLICE_NS);
        if last > slice {
            self.spend((slice + 1) * SLICE_NS);
            self.close();
            if last > slice + 1 {
                self.spend(last * SLICE_NS);
                self.close();
            }
        }
        self.spend(to_ns);
    }

    fn spend(&mut self, to_ns: u64) {
        let ns = to_ns - self.now_ns;
        self.now_ns = to_ns;
        if self.is_watched && self.under_way > 0 {
            self.busy_ns += ns;
            self.area += u128::from(ns) * u128::from(self.under_way);
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Watch => self.is_watched = true,
            Step::Leave => self.is_watched = false,
            Step::Begin(at) => {
                self.under_way += 1;
                self.most = self.most.max(self.under_way);
                if let ServedRequest { route: Some(route), duration_ns: Some(duration_ns), .. } = self.served[at] {
                    self.keep(LoadEvent::Began { route, duration_ns });
                }
            }
            Step::End(at) => {
                self.under_way -= 1;
                if let ServedRequest { route: Some(route), has_ended: true, .. } = self.served[at] {
                    self.keep(LoadEvent::Ended { route });
                }
            }
        }
    }

    fn keep(&mut self, told: LoadEvent) {
        if self.is_watched {
            self.told.push(told);
        }
    }

    /// Closes the slice: its load is known now, and its requests are reported.
    fn close(&mut self) {
        let busy = u128::from(self.busy_ns);
        let mean = (self.area + busy / 2).checked_div(busy).and_then(|mean| u64::try_from(mean).ok());
        let load = Load::new(mean.unwrap_or(self.most));
        if self.busy_ns > 0 {
            *self.times.entry(load).or_default() += self.busy_ns;
        }
        for told in self.told.drain(..) {
            (self.tell)(load, told);
        }
        (self.area, self.busy_ns, self.most) = (0, 0, self.under_way);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_single_numbers_up_to_seven_and_ranges_above_that_leave_no_gap() {
        let ranges = |from: u64, to: u64| {
            let mut all: Vec<_> = (from..=to).map(|n| (Load::new(n).first(), Load::new(n).last())).collect();
            all.dedup();
            all
        };
        let small: Vec<_> = (1..8).map(|n| (n, n)).collect();
        assert_eq!((ranges(1, 7), Load::new(0)), (small, Load::new(1)));
        assert_eq!(ranges(8, 47), [(8, 11), (12, 15), (16, 23), (24, 31), (32, 47)]);
        assert_eq!(Load::new(u64::MAX).last(), u64::MAX);
    }

    fn one(began_ns: u64, ended_ns: u64) -> ServedRequest {
        let duration_ns = Some(ended_ns - began_ns);
        ServedRequest { began_ns, ended_ns, route: Some(0), duration_ns, has_ended: true }
    }

    const WHOLE: &[(u64, u64)] = &[(0, u64::MAX)];

    #[test]
    fn a_slice_has_the_mean_of_the_time_in_which_requests_were_under_way() {
        // Four requests at once, three times; after each time nothing runs for as long.
        let served: Vec<ServedRequest> =
            [0, 20, 40].into_iter().flat_map(|ms| [one(ms * 1_000_000, (ms + 20) * 1_000_000); 4]).collect();
        let mut told = Vec::new();
        let times = by_load(&served, WHOLE, |load, _| told.push(load.first()));
        assert_eq!((times, told), (BTreeMap::from([(Load::new(4), 60_000_000)]), vec![4; 24]));
    }

    #[test]
    fn a_request_that_lasts_as_long_as_numbers_go_is_walked_through_at_once() {
        let times = by_load(&[one(5, u64::MAX), one(u64::MAX, u64::MAX)], WHOLE, |_, _| {});
        assert_eq!(times.values().sum::<u64>(), u64::MAX - 5);
    }

    #[test]
    fn times_that_are_not_watched_are_in_no_number_but_what_is_under_way_then_is_known() {
        let served = [one(0, 500_000_000), one(0, 500_000_000), one(300_000_000, 350_000_000)];
        let mut told = 0;
        let watched = [(100_000_000, 200_000_000), (300_000_000, 400_000_000)];
        let times = by_load(&served, &watched, |_, _| told += 1);
        // Three requests in half of the second slice: 2.5 on average.
        assert_eq!(times, BTreeMap::from([(Load::new(2), 100_000_000), (Load::new(3), 100_000_000)]));
        assert_eq!(told, 2);
    }
}
