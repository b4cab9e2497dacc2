//! Live screens: they show what a program does now, from a temporary recording that grows.
//!
//! | module | what it holds |
//! |---|---|
//! | [`source`] | the recording, read at intervals |
//! | [`vitals`] | the most important counters, above every screen |
//! | [`rates`] | allocations per second, by type |
//! | [`page`] | a page: a view, or a special table |
//! | [`screen`] | the screen on a terminal, or plain lines without one |

pub(crate) mod page;
pub(crate) mod rates;
pub(crate) mod screen;
pub(crate) mod source;
pub(crate) mod vitals;
