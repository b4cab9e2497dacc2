//! Code for each processor, in a module of its own.
//!
//! Processor code that only one instrument needs is in the folder `arch` of that instrument.

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;
