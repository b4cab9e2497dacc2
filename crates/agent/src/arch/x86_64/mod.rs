//! x86-64, by the System V convention.

pub(crate) mod stubs;
