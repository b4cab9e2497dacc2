//! The program `Recent`: it throws numbered exceptions all the time, and prints each of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The program does as much as there are processors for, so tests with it run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Number and clock of a throw, as its message and its line have them.
pub fn throw(text: &str) -> (u64, u64) {
    let (number, at) = text.split_once(' ').expect("two numbers");
    (number.parse().expect("a number"), at.parse().expect("a time"))
}

/// What the program says that it threw: the clock by number.
pub fn thrown(text: &str) -> BTreeMap<u64, u64> {
    text.lines().filter_map(|line| Some(throw(line.strip_prefix("THROWN ")?))).collect()
}
