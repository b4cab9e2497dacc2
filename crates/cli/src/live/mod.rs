//! What a program does now: screens over a recording that grows and is not kept.
//!
//! | module | what it holds |
//! |---|---|
//! | [`source`] | the recording, and looks at it |
//! | [`vitals`] | the counters that matter, above every screen |
//! | [`rates`] | what is allocated in a second, by type |
//! | [`page`] | a page: a view, or a table of our own |
//! | [`screen`] | the screen on a terminal, and lines where there is none |

pub(crate) mod page;
pub(crate) mod rates;
pub(crate) mod screen;
pub(crate) mod source;
pub(crate) mod vitals;
