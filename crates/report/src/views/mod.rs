//! The views, a module each.

mod allocated;
mod allocations;
mod conditions;
mod counted;
mod coverage;
mod events;
mod exceptions;
mod flame;
mod flow;
mod functions;
mod gc;
mod heap;
mod lines;
mod losses;
mod modules;
mod neighbours;
mod probe_callers;
mod probe_calls;
mod probes;
mod sampled;
mod sources;
mod summary;
mod survivors;
mod threads;
mod tiers;
mod timed;
mod timeline;
mod tree;

use clrscope_analysis::Conditions;
use clrscope_contract::instruments::first_view;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::Recording;

use crate::render::text::units::time;
use crate::request::Flag;
use crate::view::View;

pub use counted::first_counted;
pub use coverage::first_coverage;
pub(crate) use heap::{HEAP_DIFF, heap_changes_of, heap_query_of};
pub(crate) use probes::place_in_words;
pub(crate) use tree::answer_again;

/// Every view, in the order of the help text.
pub static VIEWS: &[&View] = &[
    &summary::VIEW,
    &functions::VIEW,
    &tree::VIEW,
    &flame::VIEW,
    &neighbours::CALLERS,
    &neighbours::CALLEES,
    &threads::VIEW,
    &timeline::VIEW,
    &modules::VIEW,
    &lines::VIEW,
    &losses::VIEW,
    &conditions::VIEW,
    &flow::VIEW,
    &events::VIEW,
    &exceptions::VIEW,
    &allocations::VIEW,
    &gc::VIEW,
    &survivors::VIEW,
    &heap::HEAP,
    &heap::ROOTS,
    &heap::DOMINATORS,
    &heap::WASTE,
    &HEAP_DIFF,
    &coverage::VIEW,
    &probes::VIEW,
];

/// The view with this name.
#[must_use]
pub fn view(name: &str) -> Option<&'static View> {
    VIEWS.iter().find(|view| view.name == name).copied()
}

/// Options that logs have and sums don't.
pub(crate) const LOG_FLAGS: (&[Flag], &str) = (
    &[Flag::Depth, Flag::Follow, Flag::Group, Flag::Name, Flag::Each, Flag::Interleave, Flag::Output],
    "its rows are sums, not single calls or events",
);
/// Own code alone, and native code, where rows are not made of samples.
pub(crate) const NO_FOLDING: (&[Flag], &str) =
    (&[Flag::JustMyCode, Flag::NativeCode, Flag::NoInlined], "its rows are not made of samples");
/// Native code without names, where rows are not functions.
const NO_NATIVE_CODE: (&[Flag], &str) =
    (&[Flag::NativeCode], "its rows are sums over all functions of what they are about");
/// Lines of sources, which only lines have.
pub(crate) const NO_SOURCE: (&[Flag], &str) = (&[Flag::Source, Flag::Lines], "its rows are no lines");
/// Callers of probed methods, where rows are none.
pub(crate) const NO_CALLERS: (&[Flag], &str) = (&[Flag::Callers], "its rows are no probed methods");
/// Snapshots of the heap, where rows are not of one.
pub(crate) const NO_HEAP: (&[Flag], &str) =
    (&[Flag::Snapshot, Flag::Against], "its rows are not about a snapshot of the heap");
/// Types of objects, where rows are none of objects.
const NO_TYPES: (&[Flag], &str) = (&[Flag::Type], "its rows are not about objects");
/// A second snapshot of the heap, and types, where the heap is one table among others.
const ONE_HEAP: (&[Flag], &str) = (&[Flag::Against, Flag::Type], "it shows the first types of one snapshot");
/// Parts of the time, which sums don't have.
const TIMES: (&[Flag], &str) = (&[Flag::Since, Flag::Until], "its numbers are sums over the whole run");
/// A metric, where rows are not made of paths.
pub(crate) const NO_METRIC: (&[Flag], &str) = (&[Flag::Metric], "its rows are not measured by one");
/// Threads apart, where rows are sums over threads.
pub(crate) const THREADS_APART: (&[Flag], &str) =
    (&[Flag::PerThread], "it adds up all threads; choose one with --thread");
/// Times with the profiler's share, where no times are sums.
pub(crate) const RAW: (&[Flag], &str) = (&[Flag::Raw], "its times are as measured anyway");
/// Another order, where rows have one.
const ORDERED: (&[Flag], &str) = (&[Flag::Sort], "its rows are in order of time");

/// Note below times that may be longer than the run, because they are those of all threads.
fn thread_time(recording: &Recording, conditions: &Conditions<'_>) -> Option<String> {
    let (all, run) = (conditions.totals.functions_ns, recording.run.duration_ns);
    let is_longer = conditions.metric.is_of_calls() && all > run && run > 0;
    let [all, run] = [all, run].map(time);
    is_longer.then(|| format!("Times are thread time, all threads added up: {all} in a run of {run}."))
}

/// Text where a view has no rows.
fn nothing(what: &str) -> String {
    format!("No {what} to show: nothing was recorded, or the filters leave nothing.")
}

/// Text of a table without functions, and where to look in a recording that has none.
fn no_functions(conditions: &Conditions<'_>) -> String {
    if conditions.metric.instrument == instrument::CPU {
        return "No function to show: no sample was taken, as threads that use no CPU time have none, or the filters leave \
                nothing. -i wall records what threads wait for."
            .to_owned();
    }
    match first_view(conditions.instruments) {
        Some(view) => format!("This recording has no functions; see --view {view}."),
        None => nothing("function"),
    }
}

#[cfg(test)]
mod tests {
    use clrscope_contract::instruments;

    use super::*;

    #[test]
    fn every_view_that_an_instrument_feeds_is_there() {
        for spec in instruments::ALL {
            assert!(spec.views.iter().all(|name| view(name).is_some()), "{}: {:?}", spec.name, spec.views);
        }
        let specs = || instruments::ALL.iter().copied().chain([instruments::cpu::SPEC, instruments::wall::SPEC]);
        let fed = VIEWS.iter().filter(|view| specs().any(|spec| spec.views.contains(&view.name)));
        // Losses and conditions are known of every recording.
        assert_eq!(fed.count(), VIEWS.len() - 2);
    }
}
