//! The views, each in its own module.

pub(crate) mod allocations;
pub(crate) mod conditions;
pub(crate) mod functions;
pub(crate) mod lines;
pub(crate) mod losses;
pub(crate) mod modules;
pub(crate) mod neighbours;
pub(crate) mod process;
pub(crate) mod rows;
pub(crate) mod spans;
pub(crate) mod summary;
pub(crate) mod threads;
pub(crate) mod timeline;
pub(crate) mod triage;
