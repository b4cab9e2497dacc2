//! All instruments. Each is declared once, and all other code takes its options from here.
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

/// Every instrument, in the order of the help.
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

/// The default instrument, both for programs that clrscope starts and for programs that run
/// already. The usual question is where a program spends its time, and CPU samples do not change
/// its speed.
pub const DEFAULT: &Spec = cpu::SPEC;

/// Minimum memory limit: the size of an empty store.
const LEAST_LIMIT: u64 = 64 << 10;
/// Default memory limit.
const LIMIT: u64 = 1 << 30;

/// The instrument with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Spec> {
    ALL.iter().copied().find(|spec| spec.name == name)
}

/// The first view of a report about these instruments, which is the first view of the first
/// instrument. `None` if one of them contributes to the view `summary`, because reports then begin
/// with that view, or if no instrument is known.
#[must_use]
pub fn first_view(recorded: &[InstrumentRequest]) -> Option<&'static str> {
    let known = || recorded.iter().filter_map(|request| find(&request.name));
    if known().any(|spec| spec.views.contains(&"summary")) {
        return None;
    }
    known().find_map(|spec| spec.views.first().copied())
}
