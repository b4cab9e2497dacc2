//! Times on the command line.

use clrscope_contract::request::{RequestError, parse_duration};

use crate::errors::{Failure, quoted};

const NANOSECONDS_PER_MILLISECOND: u64 = 1_000_000;

/// The nanoseconds that the text of an option says.
pub(super) fn time(option: &str, text: &str) -> Result<u64, Failure> {
    let refuse =
        |why: String| Failure::usage(format!("'{option}' does not take {}", quoted(text)), why, "write 500ms or 10s");
    if text == "0" {
        return Ok(0);
    }
    let milliseconds = parse_duration(text).map_err(|RequestError(why)| refuse(why))?;
    milliseconds.checked_mul(NANOSECONDS_PER_MILLISECOND).ok_or_else(|| refuse("it is too long".to_owned()))
}
