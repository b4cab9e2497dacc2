//! x86-64.

pub(crate) mod hooks;
mod loops;
