//! Awaits, put together from events that were written by hand.

use clrscope_analysis::{AwaitRow, Finding, FindingKind, Metric, Query, Sort, awaits, functions, summary};
use clrscope_recording::events::{Kind, Tag, Value};
use clrscope_recording::model::{
    AwaiterChain, ChainEnd, EventArena, EventChunk, Function, Loss, LossReason, Module, Process, Recording, StackFrame,
    StacksBuilder, Thread, ThreadRole,
};
use clrscope_recording::testing::chunk::HandmadeChunk;
use clrscope_recording::testing::samples::{HandSampled, STEP_NS};

/// Numbers of stacks: of `Query` awaited by `Pay`, of `Pay` not awaited yet, of `Query` and of
/// `Pay` with unknown awaiters, and of `Main`.
struct Stacks {
    query_below_pay: u64,
    pay: u64,
    query_alone: u64,
    pay_alone: u64,
    main: u64,
}

fn method(function: u32, il_offset: u32) -> StackFrame {
    StackFrame::method(function, Some(il_offset))
}

fn recording(chunks: impl FnOnce(&Stacks) -> Vec<EventChunk>) -> Recording {
    let function =
        |name: &str| Function { name: name.into(), signature: name.into(), module: 1, ..Function::default() };
    let mut stacks = StacksBuilder::default();
    let mut stack = |frame: StackFrame, awaiters: &[StackFrame], end: ChainEnd| {
        u64::from(stacks.awaited_stack(&[frame], AwaiterChain { frames: awaiters, end }))
    };
    let (main, pay, query) = (method(1, 5), method(2, 7), method(3, 9));
    let numbers = Stacks {
        query_below_pay: stack(query, &[pay], ChainEnd::NotAwaitedYet),
        pay: stack(pay, &[], ChainEnd::NotAwaitedYet),
        query_alone: stack(query, &[], ChainEnd::Unknown),
        pay_alone: stack(pay, &[], ChainEnd::Unknown),
        main: stack(main, &[], ChainEnd::NotAwaited),
    };
    let process = Process {
        pid: 7,
        duration_ns: 100_000,
        threads: vec![Thread { id: 1, os_id: 101, name: "t1".into(), ..Thread::default() }],
        modules: vec![
            Module::default(),
            Module { name: "Shop".into(), path: "/app/Shop.dll".into(), ..Module::default() },
        ],
        functions: vec![Function::default(), function("Main"), function("Pay"), function("Query")],
        stacks: stacks.finish().into(),
        events: vec![EventArena { instrument: "awaits".into(), chunks: chunks(&numbers) }],
        ..Process::default()
    };
    Recording { processes: vec![process], ..Recording::default() }
}

fn ended(chunk: HandmadeChunk, stack: u64, ns: u64, outcome: u64) -> HandmadeChunk {
    let number = Value::Number;
    let mut fields = vec![(Tag::STACK_NODE, number(stack)), (Tag::DURATION, number(ns))];
    fields.extend((outcome > 0).then_some((Tag::OUTCOME, number(outcome))));
    chunk.put(Kind::AWAIT_ENDED, &fields)
}

fn place(chunk: HandmadeChunk, stack: u64, awaits: &str) -> HandmadeChunk {
    chunk.put(Kind::AWAIT_PLACE, &[(Tag::STACK_NODE, stack.into()), (Tag::NAME, awaits.into())])
}

/// `Pay` awaits `Query` twice, for 30 and 40 microseconds; `Query` waits 28 and 36 of these. `Main`
/// still waits.
fn shop() -> Recording {
    recording(|stacks| {
        let chunk = place(HandmadeChunk::new(0, 1, 0), stacks.query_alone, "Shop.Bank::Send");
        let chunk = place(chunk, stacks.pay_alone, "Shop.Query");
        let chunk = ended(chunk.after(30_000), stacks.query_below_pay, 28_000, 0);
        let chunk = ended(chunk.after(1_000), stacks.pay, 30_000, 0);
        let chunk = ended(chunk.after(40_000), stacks.query_alone, 36_000, 1);
        let chunk = ended(chunk.after(1_000), stacks.pay_alone, 40_000, 2);
        let pending = [(Tag::STACK_NODE, stacks.main.into()), (Tag::DURATION, 70_000_u64.into())];
        vec![chunk.put(Kind::AWAIT_PENDING, &pending).finish()]
    })
}

fn rows<'a>(recording: &'a Recording, query: &Query) -> Vec<AwaitRow<'a>> {
    awaits(recording, query).expect("awaits").0
}

fn names(rows: &[AwaitRow<'_>]) -> Vec<String> {
    rows.iter().map(|row| row.frame.function.name().to_owned()).collect()
}

#[test]
fn awaits_are_added_up_by_place_and_told_apart_by_path() {
    let recording = shop();
    let rows = rows(&recording, &Query::default());
    assert_eq!(names(&rows), ["Query", "Pay", "Main"], "those first that took the longest time themselves");
    let numbers = |row: &AwaitRow<'_>| (row.count, row.pending, row.failed, row.cancelled, row.total_ns, row.max_ns);
    assert_eq!(numbers(&rows[0]), (2, 0, 1, 0, 64_000, 36_000));
    assert_eq!(numbers(&rows[1]), (2, 0, 0, 1, 70_000, 40_000));
    assert_eq!(numbers(&rows[2]), (0, 1, 0, 0, 0, 0));
    assert_eq!(rows.iter().map(|row| row.awaits.as_str()).collect::<Vec<_>>(), ["Shop.Bank::Send", "Shop.Query", ""]);
    assert_eq!((rows[0].mean_ns(), rows[2].mean_ns(), rows[2].percentile_ns(50)), (Some(32_000), None, None));
    assert!(rows[0].percentile_ns(50).is_some_and(|ns| ns.abs_diff(28_000) < 1_200) && rows[0].is_exact);
    assert_eq!(rows.iter().map(|row| row.self_ns).collect::<Vec<_>>(), [64_000, 0, 0]);
    assert_eq!(rows[0].paths.iter().map(|path| (path.count, path.ns)).collect::<Vec<_>>(), [(1, 36_000), (1, 28_000)]);
}

#[test]
fn time_of_a_method_that_awaits_one_that_waits_counts_there_alone() {
    let recording = shop();
    let metric = Metric::parse("awaited").expect("a metric");
    let view = functions(&recording, &Query { metric: Some(metric), ..Query::default() }).expect("functions");
    let own: Vec<(&str, u64)> = view.rows.iter().map(|row| (row.function.name(), row.amount.own)).collect();
    // The awaiter of `Pay` in its last await is unknown, and at its place it awaits a method that
    // waits.
    assert_eq!(own.iter().filter(|(_, own)| *own > 0).collect::<Vec<_>>(), [&("Query", 64_000)]);
    assert_eq!(view.conditions.total, 64_000);
}

#[test]
fn filters_and_orders_hold() {
    let recording = shop();
    let early = Query { until_ns: Some(15_000), ..Query::default() };
    // What lies in the time: from 2 and from 3 microseconds on, as each record is one later than
    // the one before.
    let rows = rows(&recording, &early);
    let found: Vec<_> = rows.iter().map(|row| (row.frame.function.name(), row.count, row.total_ns)).collect();
    assert_eq!(found, [("Query", 1, 12_000), ("Pay", 1, 13_000), ("Main", 0, 0)]);
    let sorted = |sort| names(&self::rows(&recording, &Query { sort: Some(sort), ..Query::default() }));
    assert_eq!(sorted(Sort::Name), ["Main", "Pay", "Query"]);
    assert_eq!(sorted(Sort::Total), ["Pay", "Query", "Main"]);
    let (rows, left_out) = awaits(&recording, &Query { limit: Some(1), ..Query::default() }).expect("awaits");
    assert_eq!((names(&rows), left_out), (vec!["Query".to_owned()], 2));
    assert!(
        awaits(&Recording { processes: vec![Process::default()], ..Recording::default() }, &Query::default()).is_err()
    );
}

#[test]
fn dropped_events_are_said() {
    let mut recording = shop();
    recording.processes[0].losses.push(Loss::new(LossReason::EventDropped, 3, 1, 2));
    assert!(rows(&recording, &Query::default()).iter().all(|row| !row.is_exact));
}

const DELAY: &str = "System.Threading.Tasks.Task::Delay";

/// Who awaits what, from when until when.
type Awaited<'a> = (u64, &'a str, &'a [(u64, u64)]);

/// What is said of awaits (who awaits what, from when until when, in steps) alongside threads that
/// work for so many of a thousand steps.
fn said(worked: u64, awaited: &[Awaited<'_>]) -> Vec<Finding> {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    (0..worked).for_each(|step| _ = taken.cpu(main, step, "App.P::Main"));
    let mut recording = taken.recording();
    let awaits = self::recording(|stacks| {
        let number = |who: u64| [stacks.main, stacks.pay_alone, stacks.query_alone][who as usize - 1];
        let mut chunk = HandmadeChunk::new(0, 1, 0);
        let mut ends = Vec::new();
        for (who, what, spans) in awaited {
            chunk = place(chunk, number(*who), what);
            ends.extend(spans.iter().map(|&(since, until)| (until, until - since, number(*who))));
        }
        ends.sort_unstable();
        let mut now = 0;
        for (until, steps, stack) in ends {
            chunk = ended(chunk.after((until - now) * STEP_NS), stack, steps * STEP_NS, 0);
            now = until;
        }
        vec![chunk.finish()]
    });
    let process = awaits.processes.into_iter().next().expect("a process");
    recording.processes.push(Process { duration_ns: 1_000 * STEP_NS, processors: 2, ..process });
    let findings = summary(&recording, &Query::default()).expect("a summary").findings;
    findings.into_iter().filter(|found| found.kind == FindingKind::Await).collect()
}

fn texts(found: &[Finding]) -> Vec<&str> {
    found.iter().map(|found| found.text.as_str()).collect()
}

/// A loop that lets 100 steps go by each time, all the time.
const LOOP: [(u64, u64); 10] = [
    (0, 100),
    (100, 200),
    (200, 300),
    (300, 400),
    (400, 500),
    (500, 600),
    (600, 700),
    (700, 800),
    (800, 900),
    (900, 1_000),
];

#[test]
fn awaits_that_take_long_stand_out_with_what_is_awaited() {
    let slow = [(100, 150), (110, 150), (500, 560)];
    let found = said(10, &[(3, "Shop.Bank::Send", &slow), (1, DELAY, &LOOP)]);
    let text =
        "in Query the await of Shop.Bank::Send took 50.0 ms on average, 3 times (150 ms in all, 60.0 ms at most)";
    assert_eq!(texts(&found), [text], "and not the loop in the background");
    assert!((found[0].cost - 0.075).abs() < 1e-9 && (found[0].share - 0.15).abs() < 1e-9, "{found:?}");
    assert_eq!(found[0].report.as_deref(), Some("--view awaits"));
    // Many at once keep no more than the processors could do meanwhile.
    let many = vec![(0, 1_000); 40];
    assert!((said(10, &[(3, "Shop.Bank::Send", &many)])[0].cost - 1.0).abs() < 1e-9);
    assert_eq!(texts(&said(10, &[(3, "Shop.Bank::Send", &[(0, 49)])])), [""; 0], "below 5 % of the time");
}

#[test]
fn what_is_there_to_wait_stands_out_where_nothing_else_does() {
    let channel = "System.Threading.Channels.ChannelReader::ReadAsync";
    let answer =
        "in Pay the await of Shop.Queue::Next took 100 ms on average, 10 times (1.00 s in all, 100 ms at most)";
    let timer =
        format!("in Main the await of {DELAY} took 100 ms on average, 10 times (1.00 s in all, 100 ms at most)");
    let none = [""; 0];
    assert_eq!(texts(&said(10, &[(1, DELAY, &LOOP), (2, "Shop.Queue::Next", &LOOP)])), [answer]);
    assert_eq!(texts(&said(10, &[(1, DELAY, &LOOP)])), [timer.as_str()]);
    assert_eq!(texts(&said(10, &[(1, channel, &LOOP)])), none, "consumers wait for work");
    assert_eq!(texts(&said(500, &[(1, DELAY, &LOOP), (2, "Shop.Queue::Next", &LOOP)])), none, "what works does");
}

/// `Query` is the name of what `Pay` awaits, too.
#[test]
fn an_await_of_a_method_that_waits_itself_is_that_ones() {
    let found = said(10, &[(2, "Query", &[(0, 200), (300, 400)]), (3, "Shop.Bank::Send", &[(0, 190), (300, 390)])]);
    assert_eq!(found.len(), 1, "{:?}", texts(&found));
    assert!(found[0].text.starts_with("in Query the await of Shop.Bank::Send"));
}
