//! Numbers in sentences.

/// A share: `12.3 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A number with its thousands apart.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size: `512 B`, `12.3 MB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match units.into_iter().find(|(_, scale)| bytes as f64 >= 0.9995 * scale) {
        None => format!("{bytes} B"),
        Some((unit, scale)) => match bytes as f64 / scale {
            size if size < 9.995 => format!("{size:.2} {unit}"),
            size if size < 99.95 => format!("{size:.1} {unit}"),
            size => format!("{size:.0} {unit}"),
        },
    }
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
            (99_960, "100 kB"),
            (999_600, "1.00 MB"),
            (12_345_678, "12.3 MB"),
            (5_000_000_000_000, "5000 GB"),
        ];
        for (size, text) in cases {
            assert_eq!(bytes(size), text);
        }
    }
}
