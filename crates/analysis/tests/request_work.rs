//! What was done for some requests, put together from records that were written by hand.

use clrscope_analysis::{
    ExceptionLog, ExceptionQuery, LockQuery, Metric, Query, QueryProblem, RequestFilter, StepKind, awaits,
    each_request, functions, keep_requests, locks, request_steps, requests,
};
use clrscope_contract::request::Glob;
use clrscope_recording::events::{EntityRef, Kind, Tag, Value};
use clrscope_recording::model::{
    EventArena, EventChunk, Function, Loss, LossReason, Module, Process, Recording, Sample, StackFrame, StacksBuilder,
    Thread, ThreadState,
};
use clrscope_recording::testing::chunk::HandmadeChunk;

/// Start of the process's recording in that of the run.
const STARTED_NS: u64 = 1_000_000;

fn named(chunk: HandmadeChunk, number: u64, direction: u64, name: &'static str) -> HandmadeChunk {
    let fields = [(Tag::ROUTE, number.into()), (Tag::DIRECTION, direction.into()), (Tag::NAME, name.into())];
    chunk.put(Kind::REQUEST_NAME, &fields)
}

fn ended(chunk: HandmadeChunk, name: u64, id: u64, ns: u64) -> HandmadeChunk {
    let all = [(Tag::ROUTE, name), (Tag::REQUEST, id), (Tag::DURATION, ns)];
    let there = all.into_iter().filter(|(_, number)| *number > 0);
    let fields: Vec<(Tag, Value<'_>)> = there.map(|(tag, number)| (tag, number.into())).collect();
    chunk.put(Kind::REQUEST_ENDED, &fields)
}

/// Switches of a thread, each so many microseconds after the one before: to a request, or to none.
fn switches(thread: u32, all: &[(u64, u64)]) -> EventChunk {
    let chunk = all.iter().fold(HandmadeChunk::new(thread, 9, 0), |chunk, &(after_us, id)| {
        let fields: &[(Tag, Value<'_>)] = if id == 0 { &[] } else { &[(Tag::REQUEST, id.into())] };
        chunk.after(after_us * 1_000).put(Kind::REQUEST_ON_THREAD, fields)
    });
    chunk.finish()
}

/// Request 1 lasts from 10 to 50 µs, request 2 from 5 to 60. One thread works for request 1 from 10
/// to 20 µs, for request 2 from 20 to 30 and for 1 again from 40 on; the other one for 2 from 5 on.
/// On both happens something at 15, 25, 35 and 45 µs.
fn recording() -> Recording {
    let names = named(named(HandmadeChunk::new(0, 1, 0), 1, 0, "GET /orders"), 2, 0, "GET /carts");
    let names = named(names, 3, 1, "GET bank.example");
    let first = ended(names.after(48_000), 1, 1, 40_000);
    let served = ended(ended(first.after(10_000), 2, 2, 55_000), 3, 0, 5_000).finish();
    let mut stacks = StacksBuilder::default();
    let stack = stacks.stack(&[StackFrame::method(1, Some(3))], false);
    let node = (Tag::STACK_NODE, u64::from(stack).into());
    let at_all = |thread: u32, put: &dyn Fn(HandmadeChunk) -> HandmadeChunk| {
        let first = HandmadeChunk::new(thread, 1, 0).after(15_000);
        put(put(put(put(first).after(10_000)).after(10_000)).after(10_000)).finish()
    };
    let both = |put: &dyn Fn(HandmadeChunk) -> HandmadeChunk| vec![at_all(0, put), at_all(1, put)];
    let sample = |thread, time_us: u64| {
        Sample { time_ns: time_us * 1_000, weight_ns: 1_000, thread, stack, count: 1, ..Sample::default() }.to_bytes()
    };
    let samples: Vec<u8> =
        [1, 2].into_iter().flat_map(|thread| [15, 25, 35, 45].map(|us| sample(thread, us))).flatten().collect();
    let state = |time_us: u64, state| {
        let time_ns = time_us * 1_000;
        Sample { time_ns, weight_ns: 1_000, thread: 1, stack, count: 1, state, ..Sample::default() }.to_bytes()
    };
    let states = [(15, ThreadState::Running), (35, ThreadState::Running), (45, ThreadState::Lock)];
    let seen: Vec<u8> = states.into_iter().flat_map(|(at, of)| state(at, of)).collect();
    let arena = |name: &str, chunks| EventArena { instrument: name.into(), chunks };
    let await_of = |chunk: HandmadeChunk, id: u64| {
        let fields = [node, (Tag::DURATION, 100_u64.into()), (Tag::REQUEST, id.into())];
        chunk.put(Kind::AWAIT_ENDED, if id == 0 { &fields[..2] } else { &fields })
    };
    let class = Value::Entity(EntityRef { id: 0, index: 1 });
    let events = vec![
        arena("requests", vec![served, switches(0, &[(10, 1), (10, 2), (10, 0), (10, 1)]), switches(1, &[(5, 2)])]),
        arena("cpu", vec![EventChunk { thread: 0, sequence: 1, bytes: samples.into() }]),
        arena("wall", vec![EventChunk { thread: 0, sequence: 1, bytes: seen.into() }]),
        arena("exceptions", both(&|chunk| chunk.put(Kind::EXCEPTION_THROWN, &[node, (Tag::CLASS, class)]))),
        arena(
            "awaits",
            vec![[1, 2, 0, 1, 2, 2, 2, 2].into_iter().fold(HandmadeChunk::new(0, 1, 0), await_of).finish()],
        ),
        arena(
            "locks",
            both(&|chunk| {
                let began = chunk.put(Kind::CONTENTION_STARTED, &[node, (Tag::LOCK, 7_u64.into())]).after(0);
                began.put(Kind::CONTENTION_ENDED, &[])
            }),
        ),
    ];
    let thread = |id: u32| Thread { id, os_id: 100 + id, cpu_ns: Some(9), ..Thread::default() };
    let process = Process {
        pid: 7,
        started_ns: STARTED_NS,
        duration_ns: 100_000,
        cpu_ns: Some(18),
        threads: vec![thread(1), thread(2)],
        modules: vec![
            Module::default(),
            Module { name: "Shop".into(), path: "/app/Shop.dll".into(), ..Module::default() },
        ],
        functions: vec![Function::default(), Function { name: "Pay".into(), module: 1, ..Function::default() }],
        stacks: stacks.finish().into(),
        events,
        ..Process::default()
    };
    Recording { processes: vec![process], ..Recording::default() }
}

fn filter(route: &str) -> RequestFilter {
    RequestFilter { routes: vec![Glob::new(route)], ..RequestFilter::default() }
}

/// Number of samples, exceptions, awaits and contended acquisitions that are left, by the views.
fn left(recording: &Recording) -> [u64; 4] {
    let sum = |metric: &str| {
        let query = Query { metric: Metric::parse(metric), ..Query::default() };
        functions(recording, &query).expect("functions").rows.iter().map(|row| row.amount.own).sum::<u64>()
    };
    let log = ExceptionLog::open(recording, &ExceptionQuery::default()).expect("exceptions");
    let exceptions: u64 = log.groups().0.iter().map(|group| group.count).sum();
    assert_eq!(exceptions, sum("exceptions"));
    let awaits: u64 = awaits(recording, &Query::default()).expect("awaits").0.iter().map(|row| row.count).sum();
    assert_eq!(awaits * 100, sum("awaited"));
    let locks: u64 = locks(recording, &LockQuery::default()).expect("locks").0.iter().map(|row| row.count).sum();
    [sum("samples"), exceptions, awaits, locks]
}

fn reduced(recording: &Recording, filter: &RequestFilter) -> Recording {
    let mut reduced = recording.clone();
    keep_requests(&mut reduced, filter).expect("requests");
    reduced
}

#[test]
fn everything_is_of_the_request_for_which_its_thread_worked_at_its_time() {
    let all = recording();
    assert_eq!(left(&all), [8; 4]);
    assert_eq!(left(&reduced(&all, &RequestFilter::default())), [8; 4], "nothing is chosen");
    // On the first thread at 15 and 45 µs.
    let orders = reduced(&all, &filter("* /orders"));
    assert_eq!(left(&orders), [2; 4]);
    let [process] = &orders.processes[..] else { panic!("a process") };
    assert_eq!((process.cpu_ns, process.threads[0].cpu_ns), (None, None), "what was measured is of all");
    let work = process.shown_work.as_ref().expect("it is reduced");
    assert_eq!((work.requests.len(), work.is_known), (1, true));
    // On the first thread at 25 µs, and always on the other one.
    assert_eq!(left(&reduced(&all, &filter("* /carts"))), [5; 4]);
    assert_eq!(left(&reduced(&all, &filter("* /*"))), [7; 4]);
    let slow = RequestFilter { slower_than_ns: Some(41_000), ..RequestFilter::default() };
    assert_eq!(left(&reduced(&all, &slow)), [5; 4]);
}

#[test]
fn made_requests_have_no_work_of_their_own_and_others_are_named_where_none_is_meant() {
    let all = recording();
    let made = reduced(&all, &filter("* bank.example"));
    assert_eq!(left(&made), [0; 4]);
    assert_eq!(made.processes[0].shown_work.as_ref().map(|work| work.requests.len()), Some(0));
    let mut other = all.clone();
    let problem = keep_requests(&mut other, &filter("* /nothing")).expect_err("none is meant");
    let QueryProblem::NoRequest { known } = &problem else { panic!("{problem}") };
    assert_eq!(known, &["GET /carts", "GET /orders", "GET bank.example"]);
    other.processes[0].events.remove(0);
    let problem = keep_requests(&mut other, &filter("*")).expect_err("they were not recorded");
    assert_eq!(problem, QueryProblem::RequestsNotRecorded);
}

/// A thread that could not say more may work for another request by then.
#[test]
fn behind_lost_records_nothing_is_of_a_request() {
    let mut all = recording();
    all.processes[0].losses = vec![Loss::new(LossReason::EventDropped, 1, 0, 0)];
    assert_eq!(left(&reduced(&all, &filter("* /orders"))), [1, 1, 2, 1]);
}

/// Recordings of earlier versions have requests alone.
#[test]
fn where_threads_said_nothing_that_is_known() {
    let mut all = recording();
    all.processes[0].events[0].chunks.truncate(1);
    let orders = reduced(&all, &filter("* /orders"));
    assert_eq!(left(&orders), [0, 0, 2, 0]);
    assert_eq!(orders.processes[0].shown_work.as_ref().map(|work| work.is_known), Some(false));
}

#[test]
fn requests_have_what_was_done_for_them_and_where_their_time_went() {
    let all = recording();
    let (rows, _) = requests(&all, &Query::default()).expect("requests");
    let work = |route: &str| rows.iter().find(|row| &*row.route == route).expect("a row").work.as_ref();
    let orders = work("GET /orders").expect("it is known");
    assert_eq!((orders.cpu_ns, orders.exceptions, orders.allocated_bytes), (Some(2_000), Some(2), None));
    assert_eq!((orders.on_threads_ns, orders.awaited_ns), (20_000, 20_000));
    // One sample of two.
    assert_eq!((orders.running_ns(), orders.lock_ns(), orders.gc_ns()), (Some(10_000), Some(10_000), Some(0)));
    let carts = work("GET /carts").expect("it is known");
    assert_eq!((carts.cpu_ns, carts.exceptions), (Some(5_000), Some(5)));
    // Two threads at once are one time; no sample fell into it.
    assert_eq!((carts.on_threads_ns, carts.awaited_ns, carts.running_ns()), (55_000, 0, None));
    assert_eq!(work("GET bank.example"), None);
    let (each, _) = each_request(&all, &Query::default()).expect("requests");
    let of_each: Vec<Option<u64>> = each.iter().map(|one| one.work.as_ref().map(|work| work.awaited_ns)).collect();
    assert_eq!(of_each, [Some(0), Some(20_000), None]);

    // Within a time: the first half of request 1, in which a thread has 10 of its 20 µs.
    let half = Query { until_ns: Some(STARTED_NS + 30_000), ..Query::default() };
    let (rows, _) = requests(&all, &half).expect("requests");
    let orders = rows.iter().find(|row| &*row.route == "GET /orders").and_then(|row| row.work.as_ref());
    let orders = orders.expect("it is known");
    assert_eq!((orders.on_threads_ns, orders.awaited_ns, orders.cpu_ns), (10_000, 10_000, Some(1_000)));
}

/// Where records are missing, nothing is said rather than too little.
#[test]
fn behind_lost_records_the_work_of_requests_is_not_known() {
    let mut all = recording();
    all.processes[0].losses = vec![Loss::new(LossReason::EventDropped, 1, 0, 0)];
    let (rows, _) = requests(&all, &Query::default()).expect("requests");
    assert!(rows.iter().all(|row| row.work.is_none()), "{rows:?}");
}

#[test]
fn a_request_has_its_steps_in_order() {
    let all = recording();
    let orders = Query { requests: filter("* /orders"), ..Query::default() };
    let found = request_steps(&all, &orders).expect("requests").expect("one is meant");
    assert_eq!((&*found.request.route, found.others, found.has_awaits), ("GET /orders", 0, true));
    let of = |kind: StepKind| {
        let steps = found.steps.iter().filter(move |step| step.kind == kind);
        steps
            .map(|step| (step.time_ns.saturating_sub(STARTED_NS) / 1_000, step.duration_ns / 1_000))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(StepKind::Runs), [(10, 10), (40, 60)]);
    assert_eq!(of(StepKind::Throws), [(15, 0), (45, 0)]);
    assert_eq!(of(StepKind::Awaits).len(), 2);
    assert!(found.steps.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns), "{:#?}", found.steps);
    let runs: Vec<_> = found.steps.iter().filter(|step| step.kind == StepKind::Runs).collect();
    let named = |at: usize| (runs[at].samples, runs[at].method.map(|(function, _)| function.name().to_owned()));
    assert_eq!([named(0), named(1)], [(1, Some("Pay".to_owned())), (1, Some("Pay".to_owned()))]);
    // Its last stretch had not ended, for all that is known.
    assert_eq!(runs.iter().map(|step| step.is_pending).collect::<Vec<_>>(), [false, true]);

    // The longest of all, and no more steps than asked for.
    let few = Query { limit: Some(2), ..Query::default() };
    let found = request_steps(&all, &few).expect("requests").expect("one is meant");
    assert_eq!((&*found.request.route, found.others, found.steps.len()), ("GET /carts", 1, 2));
    assert!(found.left_out > 0);
    let made = Query { requests: filter("* bank.example"), ..Query::default() };
    assert!(request_steps(&all, &made).expect("requests").is_none(), "no thread works for those");
}
