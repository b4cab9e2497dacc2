//! For which request threads work, against a program that always knows it by an `AsyncLocal` of its
//! own.

use std::collections::{BTreeMap, BTreeSet};

use clrscope_analysis::{Query, each_request};
use clrscope_recording::events::{Kind, OwnedRecord, Record, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording, Sample, StackFrame};
use clrscope_testkit::{attempted, each_web_runtime};

use crate::support::record_with;

/// What the program calls code that runs for no request.
const NONE: &str = "(none)";

/// Which thread works for which request, and when.
struct WorkOfThreads {
    /// By thread: from when on it works for which one; 0 for none.
    switches: BTreeMap<u32, Vec<(u64, u64)>>,
    routes: BTreeMap<u64, String>,
}

impl WorkOfThreads {
    fn new(recording: &Recording) -> Self {
        let mut switches: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
        records(&recording.processes[0], instrument::REQUESTS, |thread, record| {
            if record.kind == Kind::REQUEST_ON_THREAD {
                let id = record.number(Tag::REQUEST).unwrap_or(0);
                switches.entry(thread).or_default().push((record.time_ns, id));
            }
        });
        let (each, _) = each_request(recording, &Query::default()).expect("requests");
        let routes = each.iter().filter_map(|request| Some((request.id?, request.route.to_string()))).collect();
        Self { switches, routes }
    }

    /// The id of the request that a thread works for; 0 for none.
    fn request(&self, thread: u32, time_ns: u64) -> u64 {
        let switches = self.switches.get(&thread).map_or(&[][..], Vec::as_slice);
        assert!(switches.is_sorted_by_key(|(since, _)| since));
        let before = switches.partition_point(|(since, _)| *since <= time_ns);
        before.checked_sub(1).map_or(0, |last| switches[last].1)
    }

    /// The route of that request.
    fn route(&self, thread: u32, time_ns: u64) -> &str {
        match self.request(thread, time_ns) {
            0 => NONE,
            id => self.routes.get(&id).map_or("(not known)", String::as_str),
        }
    }
}

/// Calls `act` with each record of an instrument and the id of its thread.
fn records(process: &Process, instrument: &str, mut act: impl FnMut(u32, Record<'_>)) {
    for chunk in process.arenas(instrument).flat_map(|arena| &arena.chunks) {
        let thread = process.threads[chunk.thread as usize].id;
        OwnedRecord::all(&chunk.bytes.load()).iter().for_each(|record| act(thread, record.record()));
    }
}

/// Numbers by route, as the program printed them behind a word.
fn printed(output: &str, word: &str) -> BTreeMap<String, u64> {
    let parse = |line: &str| {
        let (route, number) = line.strip_prefix(word)?.strip_prefix(' ')?.split_once('|')?;
        Some((route.to_owned(), number.parse().expect("a number")))
    };
    output.lines().filter_map(parse).collect()
}

/// A mark is an exception, whose message says the request.
struct Mark {
    route: String,
    number: u64,
    thread: u32,
    time_ns: u64,
}

fn marks(process: &Process) -> Vec<Mark> {
    let mut marks = Vec::new();
    records(process, instrument::EXCEPTIONS, |thread, record| {
        let message = record.text(Tag::MESSAGE).filter(|_| record.kind == Kind::EXCEPTION_THROWN);
        if let Some((route, number)) = message.and_then(|text| text.strip_prefix("mark ")?.split_once('|')) {
            let number = number.parse().expect("a number");
            marks.push(Mark { route: route.to_owned(), number, thread, time_ns: record.time_ns });
        }
    });
    marks
}

/// Across awaits, tasks, threads, the pool, timers, loops in parallel, iterators, contexts that are
/// restored or not passed on, and any number of other locals.
#[test]
fn threads_work_for_the_requests_that_the_programs_own_local_says() {
    each_web_runtime(|runtime| {
        let run = record_with(runtime, "Whose", "requests;exceptions", &["10", "0.2"]);
        let (recording, output) = (&run.recording, run.finished.expect_success().stdout_text());
        let (work, marks) = (WorkOfThreads::new(recording), marks(&recording.processes[0]));

        let mut counted: BTreeMap<String, u64> = BTreeMap::new();
        marks.iter().for_each(|mark| *counted.entry(mark.route.clone()).or_default() += 1);
        assert_eq!(counted, printed(&output, "MARKS"), "each mark is recorded, on {}", runtime.version);

        let wrong: Vec<String> = marks
            .iter()
            .filter(|mark| work.route(mark.thread, mark.time_ns) != mark.route)
            .map(|mark| {
                let found = work.route(mark.thread, mark.time_ns);
                format!("{} {} as {found}, thread {} at {}", mark.route, mark.number, mark.thread, mark.time_ns)
            })
            .collect();
        assert!(wrong.is_empty(), "{} of {}: {wrong:#?} on {}", wrong.len(), marks.len(), runtime.version);

        // Not only the right route: each request has one id, and no id is that of two.
        let pairs: BTreeSet<(u64, u64)> =
            marks.iter().map(|mark| (mark.number, work.request(mark.thread, mark.time_ns))).collect();
        let [numbers, ids] =
            [BTreeSet::from_iter(pairs.iter().map(|pair| pair.0)), pairs.iter().map(|pair| pair.1).collect()];
        assert_eq!([numbers.len(), ids.len()], [pairs.len(); 2], "on {}", runtime.version);
        // All that were served, and none.
        assert_eq!(numbers.len(), work.routes.len() + 1, "on {}", runtime.version);
    });
}

/// Nanoseconds of the program's burns by route, as samples have them, and those of a sample in the
/// mean.
fn sampled(recording: &Recording) -> (BTreeMap<String, u64>, f64) {
    let process = &recording.processes[0];
    let work = WorkOfThreads::new(recording);
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
            assert!(sampled.keys().eq(clocked.keys()), "{sampled:#?} of {clocked:#?}");
            let [whole, whole_clocked] = [&sampled, &clocked].map(|sums| sums.values().sum::<u64>() as f64);
            let wrong = sampled.iter().zip(&clocked).filter_map(|((route, found), (_, known))| {
                let (found, known) = (*found as f64, *known as f64 * whole / whole_clocked);
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
