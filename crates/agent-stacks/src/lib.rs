//! Stacks of the program: the map of its code, the step from a method to its caller, and samples of
//! threads.
//!
//! - `awaiters`: the methods that await the async method that a thread has resumed
//! - `code`: the map of code, from addresses to methods, libraries and stubs
//! - `inlined`: methods that the compiler inlined into others, recognised at calls
//! - `unwind`: the step from a place in a compiled method to its caller
//! - `stacks`: call stacks of the calling thread, as numbers in the recording's stack table
//! - `sampling`: samples of threads, by CPU time or by the clock

pub mod awaiters;
pub mod code;
pub mod inlined;
pub mod sampling;
pub mod stacks;
pub mod unwind;
