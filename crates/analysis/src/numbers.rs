//! Numbers in readable form, for sentences and for reports on the screen.

/// Formats a share of 0 to 1 as percent: `12.3 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Formats a number with thousands separators: `1,234,567`.
#[must_use]
pub fn number(number: u64) -> String {
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

/// Formats a number with three digits: `1.23`, `12.3`, `123`.
#[must_use]
pub fn three_digits(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// The units of time above a nanosecond, each with its length in nanoseconds.
const TIMES: [(&str, f64); 3] = [("\u{b5}s", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Formats a time in nanoseconds: `12.3 ms`.
#[must_use]
pub fn time(ns: u64) -> String {
    let (number, unit) = time_parts(ns);
    format!("{number} {unit}")
}

/// Formats a time in nanoseconds as a number and its unit.
#[must_use]
pub fn time_parts(ns: u64) -> (String, &'static str) {
    if ns < 1000 {
        return (ns.to_string(), "ns");
    }
    let (amount, unit) = scaled(ns, &TIMES);
    let text = if amount < THOUSAND { three_digits(amount) } else { number(amount.round() as u64) };
    (text, unit)
}

/// The units of size above a byte, each with its size in bytes.
const SIZES: [(&str, f64); 4] = [("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)];

/// Formats a size in bytes: `512 B`, `12.3 MB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    let (number, unit) = bytes_parts(bytes);
    format!("{number} {unit}")
}

/// Formats a size in bytes as a number and its unit.
#[must_use]
pub fn bytes_parts(bytes: u64) -> (String, &'static str) {
    if bytes < 1000 {
        return (bytes.to_string(), "B");
    }
    let (amount, unit) = scaled(bytes, &SIZES);
    (three_digits(amount), unit)
}

/// Amounts from here on would be rounded to a thousand, so they are shown in the next unit.
const THOUSAND: f64 = 999.5;

/// An amount in the first unit in which it is below a thousand, or else in the last unit.
fn scaled<const UNITS: usize>(amount: u64, units: &[(&'static str, f64); UNITS]) -> (f64, &'static str) {
    let fits = |(_, scale): &&(&str, f64)| amount as f64 / scale < THOUSAND;
    let &(unit, scale) = units.iter().find(fits).unwrap_or(&units[UNITS - 1]);
    (amount as f64 / scale, unit)
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

    #[test]
    fn sizes_have_three_digits_and_the_unit_that_fits() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.00 kB"),
            (99_960, "100 kB"),
            (999_499, "999 kB"),
            (999_600, "1.00 MB"),
            (12_345_678, "12.3 MB"),
            (4_000_000_000, "4.00 GB"),
            (61_000_000_000_000, "61.0 TB"),
            (u64::MAX, "18446744 TB"),
        ];
        for (size, text) in cases {
            assert_eq!(bytes(size), text);
        }
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_000), "1,000");
        assert_eq!(number(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(percent(0.12345), "12.3 %");
    }
}
