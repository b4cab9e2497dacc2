//! The views, a module each.

mod allocated;
mod allocations;
mod awaits;
mod conditions;
mod counted;
mod counters;
mod coverage;
mod events;
mod exceptions;
mod flame;
mod flow;
mod functions;
mod gc;
mod heap;
mod lines;
mod load;
mod located_path;
mod locks;
mod losses;
mod memory;
mod modules;
mod neighbours;
mod pending_frame;
mod probe_callers;
mod probe_calls;
mod probes;
mod request;
mod request_work;
mod requests;
mod sampled;
mod sources;
mod stack_frame;
mod stacks;
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
pub(crate) use crate::request::REQUESTS;
use crate::view::View;

pub use counted::first_counted;
pub use coverage::first_coverage;
pub(crate) use heap::{HEAP_DIFF, heap_changes_of, heap_query_of};
pub(crate) use probes::place_in_words;
pub use stacks::STACKS;
pub(crate) use summary::LocatedFinding;
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
    &locks::VIEW,
    &awaits::VIEW,
    &requests::VIEW,
    &request::VIEW,
    &load::VIEW,
    &memory::VIEW,
    &counters::VIEW,
    &survivors::VIEW,
    &heap::HEAP,
    &heap::ROOTS,
    &heap::DOMINATORS,
    &heap::WASTE,
    &heap::PENDING,
    &HEAP_DIFF,
    &coverage::VIEW,
    &probes::VIEW,
];

/// The view with this name.
#[must_use]
pub fn view(name: &str) -> Option<&'static View> {
    VIEWS.iter().find(|view| view.name == name).copied()
}

/// Options that select threads, functions, and a part of the time.
pub(crate) const SELECTION: &[Flag] =
    &[Flag::Thread, Flag::Function, Flag::Module, Flag::Part, Flag::Since, Flag::Until];
/// Options that change how frames of samples are shown.
pub(crate) const FOLDING: &[Flag] = &[Flag::JustMyCode, Flag::NativeCode, Flag::Symbols, Flag::NoInlined, Flag::Paths];

/// Note below times that may exceed the duration of the run, because they sum over all threads.
fn thread_time(recording: &Recording, conditions: &Conditions<'_>) -> Option<String> {
    let (all, run) = (conditions.totals.functions_ns, recording.run.duration_ns);
    let is_longer = conditions.metric.is_of_calls() && all > run && run > 0;
    let [all, run] = [all, run].map(time);
    is_longer.then(|| format!("Times are thread time, all threads added up: {all} in a run of {run}."))
}

/// Text for a view without rows.
fn nothing(what: &str) -> String {
    format!("No {what} to show: there was none while recording, or the filters leave none.")
}

/// Text of a table without functions, with a hint for recordings that have none.
fn no_functions(conditions: &Conditions<'_>) -> String {
    if conditions.metric.instrument == instrument::CPU {
        return "No function to show: threads used no CPU time, so no sample was taken, or the filters leave nothing. \
                -i wall records what threads wait for."
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
