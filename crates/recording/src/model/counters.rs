//! Meaning of the values of counters.

/// Meaning of a counter's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterKind {
    /// Each value is a state.
    Gauge,
    /// Each value is the increment in an interval.
    Counter,
    /// Each value is an increment or decrement.
    UpDownCounter,
    /// Each value summarises the measurements of an interval.
    Histogram,
}

impl CounterKind {
    /// The number in a recording.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Gauge => 0,
            Self::Counter => 1,
            Self::UpDownCounter => 2,
            Self::Histogram => 3,
        }
    }

    /// The kind with this number; a gauge for an unknown number.
    #[must_use]
    pub const fn from_number(number: u64) -> Self {
        match number {
            1 => Self::Counter,
            2 => Self::UpDownCounter,
            3 => Self::Histogram,
            _ => Self::Gauge,
        }
    }

    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gauge => "gauge",
            Self::Counter => "counter",
            Self::UpDownCounter => "updown",
            Self::Histogram => "histogram",
        }
    }
}

/// A counter's values at the end of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CounterReading {
    /// The state, the increment in the interval, or the sum of the measurements.
    pub value: Option<f64>,
    /// Sum since the program began.
    pub total: Option<f64>,
    /// Number of measurements in the interval.
    pub count: Option<u64>,
    /// Length of the interval in nanoseconds; 0 if unknown.
    pub interval_ns: u64,
}

impl CounterReading {
    /// The value, or `None` if nothing was measured; even then the runtime reports a number.
    #[must_use]
    pub fn measured(&self) -> Option<f64> {
        self.value.filter(|_| self.count != Some(0))
    }

    /// The value shown to users: the state of a gauge, the increment per second of a counter, the
    /// sum since the program's start of an up-down counter, the mean of a histogram's measurements.
    /// `None` if the interval has no such value.
    #[must_use]
    pub fn shown(&self, kind: CounterKind) -> Option<f64> {
        let value = self.measured();
        match kind {
            CounterKind::Gauge => value,
            CounterKind::Counter if self.interval_ns == 0 => None,
            CounterKind::Counter => value.map(|added| added / (self.interval_ns as f64 / 1e9)),
            CounterKind::UpDownCounter => self.total.or(value),
            CounterKind::Histogram => value.zip(self.count).map(|(sum, count)| sum / count as f64),
        }
    }
}

/// Provider, name and labels of a counter as one text: `Shop/orders{kind=new}`.
#[must_use]
pub fn full_counter_name(provider: &str, name: &str, labels: &str) -> String {
    let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    format!("{provider}/{name}{labels}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_back_from_their_numbers() {
        let all = [CounterKind::Gauge, CounterKind::Counter, CounterKind::UpDownCounter, CounterKind::Histogram];
        assert_eq!(all.map(|kind| CounterKind::from_number(kind.number())), all);
        assert_eq!(CounterKind::from_number(99), CounterKind::Gauge);
    }

    #[test]
    fn each_kind_shows_what_people_read() {
        let told = CounterReading { value: Some(30.0), total: Some(100.0), count: Some(4), interval_ns: 2_000_000_000 };
        let kinds = [CounterKind::Gauge, CounterKind::Counter, CounterKind::UpDownCounter, CounterKind::Histogram];
        assert_eq!(kinds.map(|kind| told.shown(kind)), [Some(30.0), Some(15.0), Some(100.0), Some(7.5)]);
        let nothing = CounterReading { count: Some(0), total: None, ..told };
        assert_eq!(kinds.map(|kind| nothing.shown(kind)), [None; 4]);
        assert_eq!(CounterReading { interval_ns: 0, ..told }.shown(CounterKind::Counter), None);
    }
}
