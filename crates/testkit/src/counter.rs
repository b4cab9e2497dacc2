//! Reads the output of the fixture `Counter`, which counts until it is killed.

use crate::program::Finished;

/// The last number that the counter printed, 0 if none. It prints a number after each `batch` of
/// calls.
///
/// # Panics
/// When the output has anything that the counter would not print without a profiler.
pub fn last_count(finished: &Finished, batch: u64) -> u64 {
    let text = finished.stdout_text();
    let lines = text.lines().count() as u64;
    let bare: String = (1..=lines).map(|line| format!("count {}\n", line * batch)).collect();
    assert!(bare.starts_with(&text), "a counter in batches of {batch} said:\n{text}");
    assert_eq!(finished.stderr_text(), "", "on stderr");
    text.matches('\n').count() as u64 * batch
}
