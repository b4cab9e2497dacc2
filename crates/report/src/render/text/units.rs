//! Numbers for people: three digits and a unit. Those that sentences of the analysis have too are made there.

pub(crate) use clrscope_analysis::numbers::{bytes, number as count, percent as share};
use clrscope_analysis::numbers::{bytes_parts, three_digits};

/// The units of time, each with the nanoseconds in it.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("\u{b5}s", 1e3), ("ms", 1e6), ("s", 1e9)];

/// A time: `12.3 ms`.
pub(crate) fn time(ns: u64) -> String {
    let (number, unit) = time_parts(ns);
    format!("{number} {unit}")
}

/// A time for a column: the units stand under each other.
pub(crate) fn time_cell(ns: u64) -> String {
    let (number, unit) = time_parts(ns);
    format!("{number} {unit:<2}")
}

fn time_parts(ns: u64) -> (String, &'static str) {
    if ns < 1000 {
        return (ns.to_string(), "ns");
    }
    let last = TIMES.len() - 1;
    for (unit, scale) in &TIMES[1..last] {
        let text = three_digits(ns as f64 / scale);
        // A number that rounds up to a thousand belongs to the next unit.
        if !text.starts_with("1000") && ns as f64 / scale < 1000.0 {
            return (text, unit);
        }
    }
    let seconds = ns as f64 / TIMES[last].1;
    let text = if seconds < 999.5 { three_digits(seconds) } else { count(seconds.round() as u64) };
    (text, "s")
}

/// A size for a column: the units stand under each other.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_the_unit_that_fits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 \u{b5}s"),
            (9_994, "9.99 \u{b5}s"),
            (9_996, "10.0 \u{b5}s"),
            (99_960, "100 \u{b5}s"),
            (999_499, "999 \u{b5}s"),
            (999_600, "1.00 ms"),
            (12_345_678, "12.3 ms"),
            (999_999_999, "1.00 s"),
            (61_000_000_000, "61.0 s"),
            (4_000_000_000_000, "4,000 s"),
        ];
        for (ns, text) in cases {
            assert_eq!(time(ns), text);
        }
        assert!(time(u64::MAX).ends_with(" s"));
    }
}
