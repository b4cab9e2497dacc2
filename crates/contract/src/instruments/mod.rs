//! The instruments there are, each declared once: what its options are follows from here
//! everywhere.
//!
//! A new instrument is a module with a [`Spec`] and a line in [`ALL`].

pub mod alloc;
pub mod awaits;
pub mod calls;
mod check;
mod checked;
pub mod counters;
pub mod coverage;
pub mod cpu;
pub mod events;
pub mod exceptions;
pub mod flow;
pub mod gc;
pub mod heap;
mod help;
mod limits;
pub mod locks;
pub mod memory;
pub mod probes;
pub mod requests;
pub mod samples;
pub mod spec;
pub mod wall;

pub use check::{Refusal, check, check_all, is_type_name};
pub use checked::CheckedInstrument;
pub use limits::{check_for_attach, check_for_notification_only, of_notification_only};
pub use spec::Spec;

use crate::request::InstrumentRequest;

/// Every instrument, in the order of help.
pub const ALL: &[&Spec] = &[
    calls::SPEC,
    flow::SPEC,
    events::SPEC,
    exceptions::SPEC,
    cpu::SPEC,
    wall::SPEC,
    gc::SPEC,
    locks::SPEC,
    awaits::SPEC,
    requests::SPEC,
    counters::SPEC,
    memory::SPEC,
    heap::SPEC,
    alloc::SPEC,
    coverage::SPEC,
    probes::SPEC,
];

/// Instrument that records where none is asked for, of programs that are started and of those that
/// run already: where a program spends its time is what people come with, and samples of that leave
/// its speed as it is.
pub const DEFAULT: &Spec = cpu::SPEC;

/// The least that can be set as a limit of memory: what a store takes before anything is in it.
const LEAST_LIMIT: u64 = 64 << 10;
/// The limit of memory where none is set.
const LIMIT: u64 = 1 << 30;

/// The instrument of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Spec> {
    ALL.iter().copied().find(|spec| spec.name == name)
}

/// The view to begin with in a report of what these instruments recorded: that of the first
/// instrument, unless one of them has something for the view `summary`, which reports begin with
/// anyway. `None` as well where none is known.
#[must_use]
pub fn first_view(recorded: &[InstrumentRequest]) -> Option<&'static str> {
    let known = || recorded.iter().filter_map(|request| find(&request.name));
    if known().any(|spec| spec.views.contains(&"summary")) {
        return None;
    }
    known().find_map(|spec| spec.views.first().copied())
}
