//! Days of the calendar, for the names of partitions.

/// Nanoseconds of a day.
const DAY_NS: u64 = 86_400_000_000_000;

/// The day in UTC of a time in nanoseconds since 1970: `2026-11-30`.
pub(super) fn of_unix_ns(ns: u64) -> String {
    // Howard Hinnant's algorithm: years begin in March, eras have 400 years.
    let days = ns / DAY_NS + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, more) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let of = |seconds: u64| of_unix_ns(seconds * 1_000_000_000);
        assert_eq!(of(0), "1970-01-01");
        assert_eq!([of(951_782_400), of(951_868_799), of(951_868_800)], ["2000-02-29", "2000-02-29", "2000-03-01"]);
        assert_eq!([of(1_796_083_199), of(1_796_083_200)], ["2026-11-30", "2026-12-01"]);
        assert_eq!(of(4_107_542_400), "2100-03-01");
    }
}
