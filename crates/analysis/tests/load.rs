//! Served requests by how many were under way, of recordings that were written by hand.

use clrscope_analysis::{LoadCurve, LoadLevel, NoKnee, Query, QueryProblem, RequestFilter, loads};
use clrscope_contract::request::Glob;
use clrscope_recording::events::{Kind, Tag, Value};
use clrscope_recording::model::{EventArena, Loss, LossReason, Part, Process, Recording};
use clrscope_recording::testing::chunk::HandmadeChunk;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// A request: number of its name, when it ended, how long it took, whether it had ended.
type Asked = (u64, u64, Option<u64>, bool);

fn process(names: &[(u64, &str)], mut asked: Vec<Asked>) -> Process {
    asked.sort_by_key(|one| one.1);
    let mut chunk = HandmadeChunk::new(0, 1, 0);
    for (number, (direction, name)) in (1_u64..).zip(names) {
        let fields = [(Tag::ROUTE, number.into()), (Tag::DIRECTION, (*direction).into()), (Tag::NAME, (*name).into())];
        chunk = chunk.put(Kind::REQUEST_NAME, &fields).after(0);
    }
    let mut last_ns = 0;
    for (name, ended_ns, took_ns, has_ended) in asked {
        let kind = if has_ended { Kind::REQUEST_ENDED } else { Kind::REQUEST_PENDING };
        let took = took_ns.map(|ns| (Tag::DURATION, Value::Number(ns)));
        let fields: Vec<(Tag, Value<'_>)> = [(Tag::ROUTE, name.into())].into_iter().chain(took).collect();
        chunk = chunk.after(ended_ns - last_ns).put(kind, &fields);
        last_ns = ended_ns;
    }
    let events = vec![EventArena { instrument: "requests".into(), chunks: vec![chunk.finish()] }];
    Process { pid: 7, duration_ns: 100 * SECOND, events, ..Process::default() }
}

fn recording(process: Process) -> Recording {
    Recording { processes: vec![process], ..Recording::default() }
}

/// Clients that ask from a moment on, each again once it has its answer, for a second.
fn clients(name: u64, from_ns: u64, clients: u64, took_ns: u64) -> Vec<Asked> {
    let each = |client: u64| {
        let first = from_ns + client * took_ns / clients;
        (1..=SECOND / took_ns).map(move |number| (name, first + number * took_ns, Some(took_ns), true))
    };
    (0..clients).flat_map(each).collect()
}

/// As [`clients`], whose requests end together, in fours as slots become free.
fn together(name: u64, from_ns: u64, clients: u64, took_ns: u64) -> Vec<Asked> {
    let each = |client: u64| {
        let first = from_ns + client / 4 * took_ns * 4 / clients.max(4);
        (1..=SECOND / took_ns).map(move |number| (name, first + number * took_ns, Some(took_ns), true))
    };
    (0..clients).flat_map(each).collect()
}

fn numbers(level: &LoadLevel) -> (u64, u64, u64) {
    (level.load.first(), level.requests, level.mean_ns() / MS)
}

/// Four slots of 20 ms each, whose load rises.
fn rising(of: fn(u64, u64, u64, u64) -> Vec<Asked>) -> Vec<Asked> {
    let stages = [(1, 20), (2, 20), (4, 20), (8, 40), (16, 80)];
    (0_u64..).zip(stages).flat_map(|(at, (clients, took))| of(1, at * 2 * SECOND, clients, took * MS)).collect()
}

const SLOTS: &[(u64, &str)] = &[(0, "GET /slots")];

#[test]
fn the_knee_is_where_more_load_makes_requests_wait_whether_they_end_together_or_not() {
    for of in [clients, together] {
        let recording = recording(process(SLOTS, rising(of)));
        let curves = loads(&recording, &Query::default()).expect("loads");
        let [all, slots] = &curves[..] else { panic!("{curves:?}") };
        assert_eq!((&*all.route, all.is_all, &*slots.route, slots.is_all), ("(all)", true, "GET /slots", false));
        for curve in [all, slots] {
            for (clients, took) in [(1, 20), (2, 20), (4, 20), (8, 40), (16, 80)] {
                let level = curve.levels.iter().find(|level| level.load.first() == clients).expect("a level");
                let requests = clients * 1_000 / took;
                // Where clients come one by one, the first and the last tenth of a second have
                // lower loads.
                assert!(level.requests.abs_diff(requests) * 4 <= requests, "{level:?}");
                assert!(level.mean_ns().abs_diff(took * MS) * 8 <= took * MS, "{level:?}");
                assert!(level.percentile_ns(90).is_some_and(|ns| ns.abs_diff(took * MS) * 20 <= took * MS));
                let (rate, wanted) = (level.per_second().expect("a rate"), requests as f64);
                assert!((rate / wanted - 1.0).abs() < 0.1, "{rate} for {wanted}: {level:?}");
            }
            assert_eq!(curve.knee().map(numbers).expect("a knee").0, 4);
            assert_eq!(curve.highest().map(|level| level.load.first()), Some(16));
        }
    }
}

fn knee(asked: Vec<Asked>) -> Result<u64, NoKnee> {
    let recording = recording(process(SLOTS, asked));
    let curves = loads(&recording, &Query::default()).expect("loads");
    curves[1].knee().map(|level| level.load.first())
}

#[test]
fn there_is_no_knee_where_the_load_has_not_gone_beyond_it_or_requests_are_few() {
    let up_to = |clients: u64| rising(self::clients).into_iter().filter(move |one| one.1 <= clients * SECOND).collect();
    assert_eq!(knee(up_to(6)), Err(NoKnee::NotReached));
    assert_eq!(knee(up_to(8)), Ok(4));
    assert_eq!(knee(up_to(2)), Err(NoKnee::TooFew), "one load");
    assert_eq!(knee(clients(1, 0, 8, 500 * MS)), Err(NoKnee::TooFew), "16 requests");
    // What there is too little of may be of any length.
    let few: Vec<Asked> = up_to(6).into_iter().chain(clients(1, 20 * SECOND, 16, SECOND)).collect();
    assert_eq!(knee(few), Err(NoKnee::NotReached));
}

fn levels(curve: &LoadCurve<'_>) -> Vec<(u64, u64, u64)> {
    curve.levels.iter().map(numbers).collect()
}

#[test]
fn all_served_requests_count_as_load_whatever_the_filters_and_those_that_are_made_do_not() {
    let names = [(0, "GET /a"), (0, "GET /b"), (1, "GET bank.example")];
    let asked = [clients(1, 0, 1, 10 * MS), clients(2, 0, 2, 20 * MS), clients(3, 0, 5, 20 * MS)].concat();
    let recording = recording(process(&names, asked));
    let curves = loads(&recording, &Query::default()).expect("loads");
    let routes: Vec<&str> = curves.iter().map(|curve| &*curve.route).collect();
    // Those first that took the most time together.
    assert_eq!(routes, ["(all)", "GET /b", "GET /a"]);
    let most = |curve: &LoadCurve<'_>| curve.levels.iter().map(numbers).max_by_key(|level| level.1);
    assert_eq!(
        curves.iter().map(most).collect::<Vec<_>>(),
        [Some((3, 200, 15)), Some((3, 100, 20)), Some((3, 100, 10))]
    );
    let rates: Vec<u64> =
        curves.iter().map(|curve| curve.levels[0].per_second().expect("a rate").round() as u64).collect();
    assert!(rates[0].abs_diff(rates[1] + rates[2]) <= 1 && rates[0].abs_diff(200) <= 4, "{rates:?}");
    let of_a = RequestFilter { routes: vec![Glob::new("*/a")], ..RequestFilter::default() };
    let of_a = Query { requests: of_a, ..Query::default() };
    let only = loads(&recording, &of_a).expect("loads");
    assert_eq!(only.iter().map(levels).collect::<Vec<_>>(), vec![levels(&curves[2]); 2]);
}

#[test]
fn what_is_partly_in_the_recording_is_load_and_nothing_else() {
    // One that had begun before, for 2 s, and one that has begun after 2 s and never ends,
    // alongside one at a time.
    let partial = vec![(1, 2 * SECOND, None, true), (1, 4 * SECOND, Some(2 * SECOND), false)];
    let single = (0..4).flat_map(|second| clients(1, second * SECOND, 1, 20 * MS));
    let recording = recording(process(SLOTS, single.chain(partial).collect()));
    let curves = loads(&recording, &Query::default()).expect("loads");
    assert_eq!(levels(&curves[0]), [(2, 200, 20)]);
    assert_eq!(curves[0].levels[0].ended, 201);
}

#[test]
fn times_choose_requests_that_begin_within_them_and_keep_what_is_under_way() {
    let long = (1, 4 * SECOND, Some(4 * SECOND), true);
    let single = (0..4).flat_map(|second| clients(1, second * SECOND, 1, 20 * MS));
    let mut process = process(SLOTS, single.chain([long]).collect());
    let query = Query { since_ns: Some(SECOND), until_ns: Some(2 * SECOND - 1), ..Query::default() };
    let shown = |process: &Process, query: &Query| {
        let recording = recording(process.clone());
        let curves = loads(&recording, query).expect("loads");
        let level = &curves[0].levels[0];
        (numbers(level), level.ended, level.time_ns.div_ceil(MS))
    };
    // A request ends in the moment that is the first.
    let wanted = ((2, 50, 20), 50, 1_000);
    assert_eq!(shown(&process, &query), wanted);
    process.shown = Some(vec![(SECOND, 2 * SECOND - 1)]);
    assert_eq!(shown(&process, &Query::default()), wanted);
    // Recorded in two stretches: what began in between was under way from the second one's
    // beginning.
    process.shown = None;
    let part = |since_ns, until_ns| Part { since_ns, until_ns, ..Part::default() };
    process.parts = vec![part(0, SECOND / 2), part(SECOND, 2 * SECOND - 1)];
    let mut of_parts = process.clone();
    of_parts.events = self::process(SLOTS, vec![(1, 3 * SECOND / 2, None, true)]).events;
    let recording = recording(of_parts);
    assert!(loads(&recording, &Query::default()).expect("loads").is_empty(), "no whole request");
    assert_eq!(shown(&process, &query), wanted);
}

#[test]
fn what_was_not_recorded_is_said_and_what_found_no_room_makes_counts_inexact() {
    let nothing = recording(Process { pid: 7, ..Process::default() });
    let problem = loads(&nothing, &Query::default()).map(|curves| curves.len());
    assert_eq!(problem, Err(QueryProblem::NotRecorded { view: "load", instrument: "requests" }));
    let losses = vec![Loss::new(LossReason::EventDropped, 1, 0, 0)];
    let lossy = recording(Process { losses, ..process(SLOTS, clients(1, 0, 1, 20 * MS)) });
    assert!(loads(&lossy, &Query::default()).expect("loads").iter().all(|curve| !curve.is_exact));
}

/// Each number at once, up to thousands, and times that jump to the end of all time and back.
#[test]
fn thousands_of_loads_and_clocks_that_jump_are_few_rows() {
    let risen = (0..5_000).map(|at| (1, 10_000 * SECOND, Some((10_000 - 2 * at) * SECOND / 2), true));
    let jumped = [(1, u64::MAX, Some(u64::MAX), true), (1, u64::MAX, Some(0), true), (1, 5, Some(u64::MAX), true)];
    let recording = recording(process(SLOTS, risen.chain(jumped).collect()));
    let curves = loads(&recording, &Query::default()).expect("loads");
    assert_eq!(
        curves.iter().map(|curve| curve.levels.iter().map(|level| level.requests).sum()).collect::<Vec<u64>>(),
        [5_003; 2]
    );
    assert!(curves.iter().all(|curve| (10..40).contains(&curve.levels.len())), "{curves:?}");
}
