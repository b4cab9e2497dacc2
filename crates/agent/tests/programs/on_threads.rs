//! For which request threads work, against a program that always knows it by an `AsyncLocal` of its
//! own.

use std::collections::{BTreeMap, BTreeSet};

use clrscope_analysis::{
    AwaitRow, Direction, ExceptionLog, ExceptionQuery, Query, RequestFilter, allocations, awaits, keep_requests,
    requests,
};
use clrscope_contract::async_code::CORE_LIBRARY;
use clrscope_contract::request::Glob;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{LossReason, Recording, Sample, StackFrame};
use clrscope_testkit::{
    SWITCHING_METHODS, WorkOfThreads, attempted, each_runtime, each_web_runtime, marks, recompiled,
};

use crate::support::record_with;

/// Numbers by route, as the program printed them behind a word.
fn printed(output: &str, word: &str) -> BTreeMap<String, u64> {
    let parse = |line: &str| {
        let (route, number) = line.strip_prefix(word)?.strip_prefix(' ')?.split_once('|')?;
        Some((route.to_owned(), number.parse().expect("a number")))
    };
    output.lines().filter_map(parse).collect()
}

/// Across awaits, tasks, threads, the pool, timers, loops in parallel, iterators, contexts that are
/// restored or not passed on, and any number of other locals.
#[test]
fn threads_work_for_the_requests_that_the_programs_own_local_says() {
    each_web_runtime(|runtime| {
        let run = record_with(runtime, "Whose", "requests;exceptions", &["10", "0.2"]);
        let (recording, output) = (&run.recording, run.finished.expect_success().stdout_text());
        let (work, marks) = (WorkOfThreads::new(&recording.processes[0]), marks(&recording.processes[0]));
        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        marks.iter().for_each(|mark| *counted.entry(mark.route.clone()).or_default() += 1);
        assert_eq!(counted, printed(&output, "MARKS"), "each mark is recorded, on {}", runtime.version);

        let wrong = work.misplaced(&marks, |mark, found| mark.route == found);
        assert!(wrong.is_empty(), "{} of {}: {wrong:#?} on {}", wrong.len(), marks.len(), runtime.version);

        // Not only the right route: each request has one id, and no id is that of two.
        let pairs = work.ids(&marks);
        let numbers: BTreeSet<u64> = pairs.iter().map(|(number, _)| *number).collect();
        let ids: BTreeSet<u64> = pairs.iter().map(|(_, id)| *id).collect();
        assert_eq!([numbers.len(), ids.len()], [pairs.len(); 2], "on {}", runtime.version);
        // All that were served, and none.
        assert_eq!(numbers.len(), work.requests() + 1, "on {}", runtime.version);
    });
}

/// Each mark is an object, and belongs to the request that throws it: sums by path begin again
/// where a thread works for another request.
#[test]
fn allocations_and_exceptions_of_a_request_are_those_that_the_program_counts() {
    each_web_runtime(|runtime| {
        let run = record_with(runtime, "Whose", "requests;exceptions;alloc:exact", &["10", "0.2"]);
        let marks = printed(&run.finished.expect_success().stdout_text(), "MARKS");
        let counted = |recording: &Recording| {
            let query = Query { types: vec![Glob::new("Whose.Mark")], ..Query::default() };
            let objects: u64 =
                allocations(recording, &query).expect("allocations").rows.iter().map(|row| row.objects).sum();
            let query = ExceptionQuery { types: query.types, query: Query::default() };
            let log = ExceptionLog::open(recording, &query).expect("exceptions");
            let thrown: u64 = log.groups().0.iter().map(|group| group.count).sum();
            [objects, thrown]
        };
        let all: u64 = marks.values().sum();
        assert_eq!(counted(&run.recording), [all; 2], "on {}", runtime.version);
        for (route, count) in marks.iter().filter(|(route, _)| *route != "(none)") {
            let mut reduced = run.recording.clone();
            let filter = RequestFilter { routes: vec![Glob::new(route)], ..RequestFilter::default() };
            keep_requests(&mut reduced, &filter).expect("requests");
            assert_eq!(counted(&reduced), [*count; 2], "{route} on {}", runtime.version);
        }
        // The view of requests says the same.
        let (rows, _) = requests(&run.recording, &Query::default()).expect("requests");
        for row in rows.iter().filter(|row| row.direction == Direction::Served && row.partial == 0) {
            let work = row.work.as_ref().expect("it is known");
            // The program counts marks, and a request that fails throws once more.
            let thrown = work.exceptions.expect("they were recorded");
            let own = marks.get(&*row.route).copied().unwrap_or(0);
            assert!(thrown >= own && work.allocated_bytes.is_some_and(|bytes| bytes > 0), "{row:?}");
        }
    });
}

/// The record of an await has its request: the awaits of a handler all belong to its route.
#[test]
fn each_await_is_of_the_request_of_its_method() {
    each_web_runtime(|runtime| {
        let run = record_with(runtime, "Whose", "requests;awaits", &["10", "0.2"]);
        run.finished.expect_success();
        let in_handlers = |recording: &Recording| -> BTreeMap<String, u64> {
            let (rows, _) = awaits(recording, &Query::default()).expect("awaits");
            // Handlers are lambdas of one method.
            let place = |row: &AwaitRow<'_>| {
                let function = row.frame.function;
                format!("{} {:x}+{:?}", function.name(), function.function.token, row.frame.il_offset)
            };
            rows.iter().filter(|row| row.count > 0).map(|row| (place(row), row.count)).collect()
        };
        let (all, mut sum) = (in_handlers(&run.recording), BTreeMap::<String, u64>::new());
        let (rows, _) = requests(&run.recording, &Query::default()).expect("requests");
        let mut routes_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.direction == Direction::Served) {
            let mut reduced = run.recording.clone();
            let filter = RequestFilter { routes: vec![Glob::new(&row.route)], ..RequestFilter::default() };
            keep_requests(&mut reduced, &filter).expect("requests");
            for (place, count) in in_handlers(&reduced) {
                *sum.entry(place.clone()).or_default() += count;
                routes_of.entry(place).or_default().insert(row.route.to_string());
            }
        }
        let is_of_handler = |place: &&String| place.contains("Program::Add");
        let handlers: Vec<&String> = all.keys().filter(is_of_handler).collect();
        assert!(handlers.len() > 10, "{all:#?}");
        for place in handlers {
            // A handler awaits for its own route alone.
            assert_eq!(sum.get(place), all.get(place), "{place} on {}", runtime.version);
            let routes = &routes_of[place];
            assert!(
                routes.len() == 1 || routes.iter().all(|route| route.starts_with("GET /locals")),
                "{place}: {routes:?}"
            );
        }
    });
}

/// Nanoseconds of the program's burns by route, as samples have them, and those of a sample in the
/// mean.
fn sampled(recording: &Recording) -> (BTreeMap<String, u64>, f64) {
    let process = &recording.processes[0];
    let work = WorkOfThreads::new(process);
    let is_burn = |frame| match frame {
        StackFrame::Method { function, .. } => {
            process.functions.get(function as usize).is_some_and(|function| function.name == "Whose.Program::Burn")
        }
        _ => false,
    };
    let (mut sums, mut count) = (BTreeMap::new(), 0);
    for chunk in process.arenas(instrument::CPU).flat_map(|arena| &arena.chunks) {
        for sample in Sample::all(&chunk.bytes.load()).filter(|sample| process.stacks.frames(sample.stack).any(is_burn))
        {
            *sums.entry(work.route(sample.thread, sample.time_ns).to_owned()).or_default() += sample.weight_ns;
            count += u64::from(sample.count);
        }
    }
    let step_ns = sums.values().sum::<u64>() as f64 / count as f64;
    (sums, step_ns)
}

/// By shares of the whole, since not each engine has the time that threads waited for a processor.
/// Each sample may fall on the other side of a burn's edge, as chance has it: the bound is four
/// standard deviations.
#[test]
fn cpu_time_by_request_is_what_the_program_clocks() {
    each_web_runtime(|runtime| {
        let check = || {
            let run = record_with(runtime, "Whose", "requests;cpu:rate=2000", &["10", "3"]);
            let output = run.finished.expect_success().stdout_text();
            let (sampled, step_ns) = sampled(&run.recording);
            let clocked = printed(&output, "CPU");
            let unknown = sampled.keys().find(|route| !clocked.contains_key(*route));
            assert_eq!(unknown, None, "{sampled:#?} of {clocked:#?}");
            let [whole, whole_clocked] = [&sampled, &clocked].map(|sums| sums.values().sum::<u64>() as f64);
            let wrong = clocked.iter().filter_map(|(route, known)| {
                // Where ticks are few, a route may have had none.
                let found = sampled.get(route).copied().unwrap_or(0) as f64;
                let known = *known as f64 * whole / whole_clocked;
                let bound = 4.0 * (known * step_ns).sqrt() + 3.0 * step_ns;
                ((found - known).abs() > bound).then(|| format!("{route}: {found} of {known} ns, bound {bound}"))
            });
            let wrong: Vec<String> = wrong.collect();
            let is_whole = (0.85..1.15).contains(&(whole / whole_clocked));
            let place = format!("{wrong:#?}, {whole} of {whole_clocked} ns, {step_ns} ns each");
            if wrong.is_empty() && is_whole { Ok(()) } else { Err(place) }
        };
        attempted(check).unwrap_or_else(|wrong| panic!("{wrong} on {}", runtime.version));
    });
}

/// Who serves nothing has the runtime's own code, and who serves has four methods of it changed.
#[test]
fn methods_of_the_runtimes_library_change_only_where_requests_are_served() {
    each_runtime(|runtime| {
        let run = record_with(runtime, "Asks", "requests;events:jit", &["2"]);
        let process = &run.recording.processes[0];
        assert_eq!(recompiled(process, CORE_LIBRARY), BTreeSet::new(), "on {}", runtime.version);
        assert_eq!(WorkOfThreads::new(process).switches(), 0, "on {}", runtime.version);
    });
    each_web_runtime(|runtime| {
        let run = record_with(runtime, "Whose", "requests;events:jit", &["2", "0.2"]);
        let found = recompiled(&run.recording.processes[0], CORE_LIBRARY);
        assert_eq!(found, BTreeSet::from(SWITCHING_METHODS), "on {}", runtime.version);
    });
}

/// The log is full after some requests: what comes later is counted as lost, and the program goes
/// on.
#[test]
fn what_finds_no_room_is_counted() {
    each_web_runtime(|runtime| {
        let run = record_with(runtime, "Whose", "requests:max=64k", &["60", "0"]);
        run.finished.expect_success();
        let process = &run.recording.processes[0];
        let lost = process.losses.iter().find(|loss| loss.reason == LossReason::EventDropped).expect("a loss");
        assert!(lost.count > 1_000, "{lost:?} on {}", runtime.version);
    });
}
