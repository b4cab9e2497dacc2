//! Times in requests and options.

use std::ops::RangeInclusive;

use super::error::RequestError;

/// Reads a time such as `500ms`, `10s`, `2m` or `1h`; a bare number means seconds. Returns
/// milliseconds.
///
/// # Errors
/// A sentence, when the text is not a time.
pub fn parse_duration(value: &str) -> Result<u64, RequestError> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &value[digits.len()..] {
        "ms" => Some(1),
        "" | "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    scale
        .and_then(|scale| digits.parse::<u64>().ok()?.checked_mul(scale))
        .filter(|&ms| ms > 0)
        .ok_or_else(|| RequestError(format!("'{value}' is not a time such as 500ms, 10s, 2m or 1h")))
}

/// The shortest and the longest period of kept events, in milliseconds.
const LAST_MS: RangeInclusive<u64> = 1_000..=24 * 60 * 60 * 1_000;

/// Reads the length of the period whose events are kept: a [time](parse_duration) from one second
/// to a day. Returns milliseconds.
///
/// # Errors
/// A sentence, when the text is not such a time.
pub fn parse_last(value: &str) -> Result<u64, RequestError> {
    match parse_duration(value)? {
        ms if LAST_MS.contains(&ms) => Ok(ms),
        _ => Err(RequestError(format!("'{value}' is not between 1s and 24h"))),
    }
}
