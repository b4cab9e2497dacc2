//! How samples were taken, in words.

use clrscope_analysis::{InliningKnowledge, SamplingConditions};
use clrscope_contract::request::InstrumentRequest;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::SamplingEngine;

use super::names::columns;
use super::units::{count, share, time};

/// Multiple of the requested sampling interval beyond which the actual interval is mentioned.
const LATE: f64 = 1.2;

/// Minimum share of samples with unknown awaiters for which another engine is recommended.
const WORTH_ANOTHER_ENGINE: f64 = 0.05;

/// Line about inlined methods; `None` if nothing is known about them.
pub(super) fn inlined(of: &SamplingConditions<'_>) -> Option<String> {
    let InliningKnowledge { none, named, unknown, older_methods } = of.inlining;
    let all = of.inlining.samples();
    if all == 0 {
        return None;
    }
    let part = |samples: u64| share(samples as f64 / all as f64);
    let mut text = format!(
        "{} samples in the program's code ({}): {} have inlined methods, {} have none, {} are not known",
        count(all),
        of.instrument,
        part(named),
        part(none),
        part(unknown)
    );
    if older_methods > 0 {
        let older = count(older_methods);
        text.push_str(&format!("; nothing is known of {older} methods that were compiled before the recording began"));
    }
    Some(text)
}

/// Line about methods that resumed after an `await`; `None` if every method is shown below its
/// awaiter.
pub(super) fn awaiters(of: &SamplingConditions<'_>) -> Option<String> {
    let part = of.unknown_awaiter as f64 / of.samples.max(1) as f64;
    let mut text = format!(
        "not known in {} of {} samples ({}), in methods that resumed after an await; trees show these methods below \
         [unknown awaiter]; --paths physical shows the stacks of the threads",
        share(part),
        count(of.samples),
        of.instrument
    );
    // Samples of perf events are looked at when the method may have ended.
    let is_perf = of.sampler.is_some_and(|sampler| sampler.engine == SamplingEngine::Perf);
    if is_perf && of.instrument == instrument::CPU && part >= WORTH_ANOTHER_ENGINE {
        text.push_str("; cpu:engine=timer finds nearly all of them");
    }
    (of.unknown_awaiter > 0).then_some(text)
}

/// What was recorded, for the head of a report: samples, how many of their stacks are complete, how
/// many are in the profiler itself, and as many of the other instruments as fit into `width`
/// columns.
pub(super) fn recorded(given: &[InstrumentRequest], sampling: &[SamplingConditions<'_>], width: usize) -> String {
    let sampled: Vec<&SamplingConditions<'_>> = sampling.iter().filter(|of| of.samples > 0).collect();
    let names = given.iter().map(|of| of.name.as_str());
    let others: Vec<&str> = names.filter(|name| sampled.iter().all(|of| of.instrument != *name)).collect();
    let samples = match sampled.as_slice() {
        [] => String::new(),
        [one] => of_one(one),
        several => of_several(several),
    };
    let between = if samples.is_empty() || others.is_empty() { "" } else { "; " };
    let first = |number: usize| {
        let (first, more) = (others[..number].join(", "), others.len() - number);
        let text = format!("{samples}{between}{first}");
        if more == 0 { text } else { format!("{text} and {more} more") }
    };
    let fits = |number: &usize| columns(&first(*number)) <= width;
    (1..=others.len()).rev().find(fits).map_or_else(|| first(others.len().min(1)), first)
}

fn of_one(of: &SamplingConditions<'_>) -> String {
    let (number, complete) = (count(of.samples), share(part(of.complete, of)));
    let profiler = match of.profiler {
        0 => String::new(),
        samples => format!(", {} in the profiler", share(part(samples, of))),
    };
    format!("{} {number} samples: {complete} with a complete stack{profiler}", of.instrument)
}

/// Summary of the samples of several instruments. One line has no room for each instrument, so it
/// has the lowest share of complete stacks and the highest share of samples in the profiler.
fn of_several(all: &[&SamplingConditions<'_>]) -> String {
    let numbers: Vec<String> = all.iter().map(|of| format!("{} {}", of.instrument, count(of.samples))).collect();
    let complete = all.iter().map(|of| part(of.complete, of)).fold(1.0, f64::min);
    let profiler = all.iter().map(|of| part(of.profiler, of)).fold(0.0, f64::max);
    let [complete, ours] = [complete, profiler].map(share);
    let profiler = if profiler > 0.0 { format!(", profiler \u{2264}{ours}") } else { String::new() };
    format!("{} samples: \u{2265}{complete} complete stacks{profiler}", numbers.join(", "))
}

fn part(samples: u64, of: &SamplingConditions<'_>) -> f64 {
    samples as f64 / of.samples as f64
}

/// Line about the samples of an instrument: engine, interval, number, complete stacks, and advice.
pub(super) fn sampled(of: &SamplingConditions<'_>) -> String {
    let is_cpu = of.instrument == instrument::CPU;
    let mut text = of.instrument.to_owned();
    let engine = match of.sampler.map(|sampler| sampler.engine) {
        Some(SamplingEngine::Perf) => "perf events",
        Some(SamplingEngine::Timer) => "a timer on each thread",
        Some(SamplingEngine::Signals) => "signals to each thread",
        Some(SamplingEngine::Unknown) | None => "",
    };
    // The engine reads the stacks of waiting threads from outside, and interrupts running threads.
    match (is_cpu, engine) {
        (true, "") => {}
        (true, engine) => text.push_str(&format!(" by {engine}")),
        (false, "") => text.push_str(" by the system's state of each thread"),
        (false, engine) => {
            text.push_str(&format!(" by the system's state of each thread, and by {engine} for running threads"))
        }
    }
    let clock = if is_cpu { " of CPU time" } else { "" };
    if of.reached_ns > 0 {
        text.push_str(&format!(", every {}{clock}", time(of.reached_ns)));
    }
    let asked = of.sampler.map_or(0, |sampler| sampler.interval_ns);
    if asked > 0 && of.reached_ns as f64 > asked as f64 * LATE {
        text.push_str(&format!(" (asked for: {})", time(asked)));
    }
    let complete = of.complete as f64 / of.samples.max(1) as f64;
    match of.samples {
        0 => text.push_str(": no samples"),
        all => text.push_str(&format!(": {} samples, {} with a complete stack", count(all), share(complete))),
    }
    if of.guessed > 0 {
        let guessed = of.guessed as f64 / of.samples.max(1) as f64;
        text.push_str(&format!(", {} with a guessed frame", share(guessed)));
    }
    if of.profiler > 0 {
        text.push_str(&format!(", {} in the profiler", share(of.profiler as f64 / of.samples.max(1) as f64)));
    }
    if of.idle_ns > 0 {
        text.push_str(&format!(", {} of idle threads left out (pool, finalizer and the like)", time(of.idle_ns)));
    }
    let sampler = of.sampler;
    if is_cpu && sampler.is_some_and(|sampler| sampler.engine == SamplingEngine::Timer) {
        text.push_str("; timers fire at the kernel's ticks, and misjudge loops in step with them");
    }
    let whys = [sampler.map(|sampler| &sampler.why_engine), sampler.map(|sampler| &sampler.why_no_kernel)];
    for why in whys.into_iter().flatten().filter(|why| !why.is_empty()) {
        text.push_str("; ");
        text.push_str(why);
    }
    text
}
