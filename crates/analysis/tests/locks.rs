//! Contended locks, put together from events that were written by hand.

use clrscope_analysis::{LockKind, LockQuery, LockRow, Query, Sort, ThreadSelector, locks};
use clrscope_contract::request::Glob;
use clrscope_recording::events::{EntityRef, Kind, Tag, Value};
use clrscope_recording::model::{
    EventArena, EventChunk, Function, Loss, LossReason, Module, ObjectType, Process, Recording, StackFrame,
    StacksBuilder, Thread, ThreadRole, ThreadState,
};
use clrscope_recording::testing::chunk::HandmadeChunk;
use clrscope_recording::testing::samples::{HandSampled, STEP_NS};

/// Numbers of the stacks of `Pay` and of `Ship`, both called by `Main`.
const STACKS: [u64; 2] = [2, 3];

fn recording(chunks: Vec<EventChunk>) -> Recording {
    let thread = |id: u32| Thread { id, os_id: 100 + id, name: format!("t{id}"), ..Thread::default() };
    let function =
        |name: &str| Function { name: name.into(), signature: name.into(), module: 1, ..Function::default() };
    let mut stacks = StacksBuilder::default();
    let frames = [3, 2].map(|function| StackFrame::method(function, None));
    let numbers = frames.map(|frame| u64::from(stacks.stack(&[frame, StackFrame::method(1, None)], false)));
    assert_eq!(numbers, [STACKS[0], STACKS[1]]);
    let process = Process {
        pid: 7,
        duration_ns: 100_000,
        threads: vec![thread(1), thread(2), thread(3)],
        modules: vec![
            Module::default(),
            Module { name: "Shop".into(), path: "/app/Shop.dll".into(), ..Module::default() },
        ],
        functions: vec![Function::default(), function("Main"), function("Ship"), function("Pay")],
        types: vec![
            ObjectType::default(),
            ObjectType { name: "Shop.Cart".into(), module: 1 },
            ObjectType { name: "Shop.Order".into(), module: 1 },
        ],
        stacks: stacks.finish().into(),
        events: vec![EventArena { instrument: "locks".into(), chunks }],
        ..Process::default()
    };
    Recording { processes: vec![process], ..Recording::default() }
}

/// A thread begins to wait for a lock on an object of this type, 0 for a `System.Threading.Lock`,
/// which another thread holds.
fn waits(chunk: HandmadeChunk, (lock, class): (u64, u32), holder: u64, stack: Option<u64>) -> HandmadeChunk {
    let number = Value::Number;
    let mut fields = vec![(Tag::LOCK, number(lock)), (Tag::HOLDER, number(holder))];
    fields.extend((class > 0).then_some((Tag::CLASS, Value::Entity(EntityRef { id: 0, index: class }))));
    fields.extend(stack.map(|stack| (Tag::STACK_NODE, number(stack))));
    chunk.put(Kind::CONTENTION_STARTED, &fields)
}

fn has(chunk: HandmadeChunk) -> HandmadeChunk {
    chunk.put(Kind::CONTENTION_ENDED, &[])
}

fn rows<'a>(recording: &'a Recording, query: &LockQuery) -> Vec<LockRow<'a>> {
    locks(recording, query).expect("locks").0
}

const CART: (u64, u32) = (1 << 40, 1);

#[test]
fn waits_beside_each_other_are_counted_with_who_held_the_lock() {
    // The second thread waits from 2 to 12, the third from 5 to 17 microseconds; the second holds
    // the lock from 12 on.
    let second = has(waits(HandmadeChunk::new(1, 1, 2_000), CART, 101, Some(STACKS[0])).after(10_000)).finish();
    let third = waits(HandmadeChunk::new(2, 2, 5_000), CART, 101, Some(STACKS[1])).after(12_000);
    let first = has(waits(HandmadeChunk::new(0, 3, 13_000), CART, 102, Some(STACKS[0])).after(2_000)).finish();
    let recording = recording(vec![second, has(third).finish(), first]);
    let rows = rows(&recording, &LockQuery::default());
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((row.kind, row.type_name, row.module, row.locks), (LockKind::Monitor, "Shop.Cart", "Shop", 1));
    assert_eq!((row.count, row.total_ns, row.max_ns, row.max_waiters), (3, 24_000, 12_000, 2));
    assert!(row.is_exact && row.pending == 0 && row.without_stack == 0);
    let innermost = |path: &clrscope_analysis::LockPath<'_>| {
        (path.frames().next().expect("a frame").function.name().to_owned(), path.count, path.ns)
    };
    let waiters: Vec<_> = row.waiters.iter().map(innermost).collect();
    assert_eq!(waiters, [("Pay".to_owned(), 2, 12_000), ("Ship".to_owned(), 1, 12_000)]);
    // The first thread had the lock without a wait, so its path is not known.
    let holders: Vec<_> = row.holders.iter().map(innermost).collect();
    assert_eq!((holders, row.without_holder), (vec![("Pay".to_owned(), 1, 2_000)], 2));
}

#[test]
fn a_holder_that_had_not_waited_last_is_not_guessed() {
    let second = has(waits(HandmadeChunk::new(1, 1, 2_000), CART, 101, Some(STACKS[0])));
    // The second thread had the lock; the third holds it now, which had not waited.
    let first = has(waits(HandmadeChunk::new(0, 2, 20_000), CART, 103, Some(STACKS[0])));
    let recording = recording(vec![second.finish(), first.finish()]);
    assert!(rows(&recording, &LockQuery::default())[0].holders.is_empty());
}

#[test]
fn what_has_not_ended_lasts_to_the_end_of_the_recording() {
    let waiting = waits(HandmadeChunk::new(1, 1, 2_000), CART, 101, None).finish();
    let ends_only = has(HandmadeChunk::new(0, 2, 1_000)).finish();
    let recording = recording(vec![waiting, ends_only]);
    let rows = rows(&recording, &LockQuery::default());
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((row.count, row.pending, row.total_ns, row.without_stack), (1, 1, 98_000, 1));
}

#[test]
fn a_number_that_the_runtime_uses_again_is_another_lock() {
    let mut chunk = HandmadeChunk::new(1, 1, 2_000);
    for lock in [CART, (CART.0, 2), CART, (CART.0 + 8, 1)] {
        chunk = has(waits(chunk, lock, 101, Some(STACKS[0])));
    }
    let recording = recording(vec![chunk.finish()]);
    let by_name = LockQuery { query: Query { sort: Some(Sort::Name), ..Query::default() }, ..LockQuery::default() };
    let found: Vec<_> = rows(&recording, &by_name).iter().map(|row| (row.type_name, row.locks, row.count)).collect();
    assert_eq!(found, [("Shop.Cart", 3, 3), ("Shop.Order", 1, 1)]);
}

#[test]
fn locks_of_one_type_that_are_waited_for_at_different_places_have_rows_of_their_own() {
    let mut chunk = HandmadeChunk::new(1, 1, 2_000);
    for (lock, stack) in [(1, 0), (2, 0), (3, 1)] {
        chunk = has(waits(chunk, (CART.0 + lock * 8, 1), 101, Some(STACKS[stack])));
    }
    chunk = has(waits(chunk, (0x144, 0), 101, Some(STACKS[1])).after(9_000));
    let recording = recording(vec![chunk.finish()]);
    let found = rows(&recording, &LockQuery::default());
    let found: Vec<_> = found.iter().map(|row| (row.kind, row.type_name, row.locks)).collect();
    let (monitor, lock) = (LockKind::Monitor, LockKind::Lock);
    assert_eq!(found, [(lock, "System.Threading.Lock", 1), (monitor, "Shop.Cart", 2), (monitor, "Shop.Cart", 1)]);
}

#[test]
fn filters_choose_threads_functions_types_and_times() {
    let second = has(waits(HandmadeChunk::new(1, 1, 2_000), CART, 101, Some(STACKS[0])).after(10_000));
    let third = has(waits(HandmadeChunk::new(2, 2, 5_000), (CART.0 + 8, 2), 101, Some(STACKS[1])).after(12_000));
    let recording = recording(vec![second.finish(), third.finish()]);
    let types = |query: Query| {
        let query = LockQuery { query, ..LockQuery::default() };
        rows(&recording, &query).iter().map(|row| (row.type_name, row.total_ns)).collect::<Vec<_>>()
    };
    assert_eq!(types(Query::default()), [("Shop.Order", 12_000), ("Shop.Cart", 10_000)]);
    let threads = vec![ThreadSelector::Id(2)];
    assert_eq!(types(Query { threads, ..Query::default() }), [("Shop.Cart", 10_000)]);
    let pattern = clrscope_contract::request::Pattern::parse("Ship").expect("a pattern");
    assert_eq!(types(Query { functions: vec![pattern], ..Query::default() }), [("Shop.Order", 12_000)]);
    let late = Query { since_ns: Some(15_000), ..Query::default() };
    assert_eq!(types(late), [("Shop.Order", 2_000)], "the part of it that lies in the time that is asked for");
    let of_type = LockQuery { types: vec![Glob::new("*.Cart")], ..LockQuery::default() };
    assert_eq!(rows(&recording, &of_type).len(), 1);
}

#[test]
fn a_recording_that_lost_events_is_not_exact() {
    let mut recording = recording(vec![waits(HandmadeChunk::new(1, 1, 2_000), CART, 101, None).finish()]);
    recording.processes[0].losses = vec![Loss::new(LossReason::EventDropped, 1, 0, 0)];
    assert!(!rows(&recording, &LockQuery::default())[0].is_exact);
}

/// A recording with stacks of `Pay`, called by `Main`, at one place of its code: that waits for a
/// semaphore, and the same without the framework's methods, which the compiler has put into it; and
/// of a thread without own code.
fn blocking(chunks: impl FnOnce([u64; 3]) -> Vec<EventChunk>) -> Recording {
    let mut recording = recording(Vec::new());
    let process = &mut recording.processes[0];
    process.modules.push(Module { name: "System.Private.CoreLib".into(), framework: true, ..Module::default() });
    let name = "System.Threading.SemaphoreSlim::Wait";
    process.functions.push(Function { name: name.into(), signature: name.into(), module: 2, ..Function::default() });
    let (wait, main) = (StackFrame::method(4, None), StackFrame::method(1, None));
    let pay = StackFrame::method(3, Some(7));
    let mut stacks = StacksBuilder::default();
    let numbers = [&[wait, pay, main][..], &[pay, main], &[wait]].map(|frames| u64::from(stacks.stack(frames, false)));
    process.stacks = stacks.finish().into();
    process.events = vec![EventArena { instrument: "locks".into(), chunks: chunks(numbers) }];
    recording
}

fn blocks(chunk: HandmadeChunk, stack: Option<u64>, ns: u64) -> HandmadeChunk {
    let fields: Vec<_> = stack.map(|stack| (Tag::STACK_NODE, Value::Number(stack))).into_iter().collect();
    chunk.put(Kind::BLOCKING_STARTED, &fields).after(ns).put(Kind::BLOCKING_ENDED, &[])
}

#[test]
fn what_a_thread_blocks_on_is_known_by_its_stack_or_by_the_same_call_on_another_one() {
    let recording = blocking(|[semaphore, inlined, idle]| {
        let first = blocks(HandmadeChunk::new(0, 1, 1_000), Some(semaphore), 10_000);
        let first = blocks(blocks(first, Some(idle), 20_000), None, 3_000);
        let second = blocks(HandmadeChunk::new(1, 2, 5_000), Some(inlined), 30_000);
        vec![first.finish(), second.finish()]
    });
    let rows = rows(&recording, &LockQuery::default());
    let found: Vec<_> =
        rows.iter().map(|row| (row.kind.name(), row.type_name, row.count, row.total_ns, row.max_waiters)).collect();
    let semaphore = ("SemaphoreSlim", "System.Threading.SemaphoreSlim", 2, 40_000, 2);
    assert_eq!(found, [semaphore, ("unknown", "(unknown)", 1, 3_000, 1)]);
    assert!(rows.iter().all(|row| !row.is_exact && row.locks == 0), "the one without a stack may be of any kind");
}

#[test]
fn a_thread_that_waits_for_a_lock_blocks_on_nothing_else_meanwhile() {
    let recording = blocking(|[semaphore, ..]| {
        let waiting = waits(HandmadeChunk::new(1, 1, 2_000), CART, 101, Some(semaphore));
        vec![has(blocks(waiting, Some(semaphore), 5_000)).finish()]
    });
    let rows = rows(&recording, &LockQuery::default());
    let [row] = &rows[..] else { panic!("{} rows", rows.len()) };
    assert_eq!((row.kind, row.count, row.total_ns), (LockKind::Monitor, 1, 7_000));
}

#[test]
fn what_has_not_unblocked_lasts_to_the_end_of_the_recording() {
    let recording = blocking(|[semaphore, ..]| {
        let fields = [(Tag::STACK_NODE, Value::Number(semaphore))];
        vec![HandmadeChunk::new(1, 1, 2_000).put(Kind::BLOCKING_STARTED, &fields).finish()]
    });
    let rows = rows(&recording, &LockQuery::default());
    assert_eq!((rows[0].count, rows[0].pending, rows[0].total_ns), (1, 1, 98_000));
}

/// Two threads that wait for a semaphore in turns, by samples alone, alongside one without own
/// code.
fn sampled_waits() -> Recording {
    const WAITS: &str = "App.P::Take > System.Threading.SemaphoreSlim::Wait > System.Threading.Monitor::Wait";
    let mut taken = HandSampled::default();
    let [one, other, idle] = [(); 3].map(|()| taken.thread("", ThreadRole::User));
    for step in [0, 1, 2, 3, 20, 21, 22] {
        taken.wall(one, step, WAITS).state = ThreadState::Waiting;
        taken.wall(idle, step, "System.Threading.Monitor::Wait").state = ThreadState::Waiting;
    }
    taken.wall(one, 4, "App.P::Take").state = ThreadState::Running;
    for step in 5..10 {
        taken.wall(other, step, WAITS).state = ThreadState::Waiting;
    }
    let mut recording = taken.recording();
    recording.processes[0].events.push(EventArena { instrument: "locks".into(), chunks: Vec::new() });
    recording
}

#[test]
fn waits_without_events_are_there_in_bounds_where_the_clock_sampled_them() {
    let recording = sampled_waits();
    let rows = rows(&recording, &LockQuery::default());
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((row.kind, row.type_name), (LockKind::SemaphoreSlim, "System.Threading.SemaphoreSlim"));
    assert!(row.is_sampled && !row.is_exact);
    assert_eq!((row.count, row.total_ns, row.max_ns, row.max_waiters), (3, 12 * STEP_NS, 0, 0));
    let (low, high) = row.bounds_ns;
    assert!(0 < low && low < row.total_ns && row.total_ns < high, "{low} {high}");
    assert_eq!(row.waiters.iter().map(|path| (path.count, path.ns)).collect::<Vec<_>>(), [(3, 12 * STEP_NS)]);
    let only = |query: Query| self::rows(&recording, &LockQuery { query, types: Vec::new() }).len();
    assert_eq!(only(Query { threads: vec![ThreadSelector::Number(3)], ..Query::default() }), 0);
    let part = LockQuery { query: Query { until_ns: Some(5 * STEP_NS), ..Query::default() }, types: Vec::new() };
    let found = self::rows(&recording, &part);
    assert!(found[0].total_ns < 12 * STEP_NS && found[0].total_ns >= 4 * STEP_NS, "{}", found[0].total_ns);
    let none = LockQuery { types: vec![Glob::new("Shop.*")], ..LockQuery::default() };
    assert!(self::rows(&recording, &none).is_empty());
}

/// Locks by the million: the table is bounded, and each wait counts.
#[test]
fn locks_beyond_those_that_are_told_apart_count_and_are_said_to_be_more() {
    let all = 70_000;
    let mut chunk = HandmadeChunk::new(0, 1, 0);
    for lock in 0..all {
        chunk = has(waits(chunk, (1 << 40 | lock, 1), 0, Some(STACKS[0])).after(1));
    }
    let recording = recording(vec![chunk.finish()]);
    let found = rows(&recording, &LockQuery::default());
    assert_eq!(found.len(), 1);
    let row = &found[0];
    assert_eq!((row.count, row.total_ns, row.locks, row.has_more_locks), (all, all, 1 << 16, true));
}
