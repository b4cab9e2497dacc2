//! Numbers for people: three digits and a unit. Formats that sentences of the analysis also use are
//! defined in the analysis crate.

pub(crate) use clrscope_analysis::numbers::{bytes, number as count, percent as share, time};
use clrscope_analysis::numbers::{bytes_parts, time_parts};

/// A time for a column of a table, with aligned units.
pub(crate) fn time_cell(ns: u64) -> String {
    let (number, unit) = time_parts(ns);
    format!("{number} {unit:<2}")
}

/// A size for a column of a table, with aligned units.
pub(crate) fn bytes_cell(bytes: u64) -> String {
    let (number, unit) = bytes_parts(bytes);
    format!("{number} {unit:<2}")
}

/// A difference with its sign: `+1,234`.
pub(crate) fn signed(number: i64, of: fn(u64) -> String) -> String {
    let sign = match number {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", of(number.unsigned_abs()))
}
