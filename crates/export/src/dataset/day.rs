//! Days of the calendar, for the names of partitions.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The day in UTC of a time in nanoseconds since 1970: `2026-11-30`.
pub(super) fn of_unix_ns(ns: u64) -> String {
    let time = Timestamp::from_nanosecond(ns.into()).unwrap_or_default();
    time.to_zoned(TimeZone::UTC).date().to_string()
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
