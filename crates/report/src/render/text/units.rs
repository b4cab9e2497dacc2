//! Numbers for people: three digits and a unit.

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

/// The units of sizes, each with the bytes in it.
const SIZES: [(&str, f64); 5] = [("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)];

/// A size: `12.3 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let (number, unit) = bytes_parts(bytes);
    format!("{number} {unit}")
}

/// A size for a column: the units stand under each other.
pub(crate) fn bytes_cell(bytes: u64) -> String {
    let (number, unit) = bytes_parts(bytes);
    format!("{number} {unit:<2}")
}

fn bytes_parts(bytes: u64) -> (String, &'static str) {
    if bytes < 1000 {
        return (bytes.to_string(), "B");
    }
    let last = SIZES.len() - 1;
    for (unit, scale) in &SIZES[1..last] {
        let text = three_digits(bytes as f64 / scale);
        if !text.starts_with("1000") && bytes as f64 / scale < 1000.0 {
            return (text, unit);
        }
    }
    (three_digits(bytes as f64 / SIZES[last].1), SIZES[last].0)
}

fn three_digits(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// A share of the whole: `12.3 %`.
pub(crate) fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A number with its thousands apart: `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_and_the_unit_that_fits() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.00 kB"),
            (999_600, "1.00 MB"),
            (12_345_678, "12.3 MB"),
            (4_000_000_000, "4.00 GB"),
            (61_000_000_000_000, "61.0 TB"),
        ];
        for (number, text) in cases {
            assert_eq!(bytes(number), text);
        }
    }

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

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(share(0.12345), "12.3 %");
    }
}
