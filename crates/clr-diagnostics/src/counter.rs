//! Counters that programs and the runtime publish as events (`EventCounter` and its relatives).

use crate::nettrace::{Event, Value};

/// Meaning of a counter's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CounterKind {
    /// Each value is the mean of the measurements in the interval.
    Mean,
    /// Each value is the increment in the interval.
    Sum,
}

/// One value of a counter.
///
/// To get counters, [collect](crate::Port::collect_events) events of a provider with the argument
/// `EventCounterIntervalSec=1`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Counter {
    /// The provider, such as `System.Runtime`.
    pub provider: String,
    /// Name, such as `cpu-usage`.
    pub name: String,
    /// Display name, such as `CPU Usage`.
    pub display_name: String,
    /// Display unit, such as `%`; empty if the counter has none.
    pub unit: String,
    /// Meaning of the value.
    pub kind: CounterKind,
    /// Mean or increment, depending on `kind`.
    pub value: f64,
    /// Length of the interval in seconds.
    pub interval_s: f64,
}

impl Counter {
    /// Returns the counter value in an event; `None` for other events and for malformed ones.
    #[must_use]
    pub fn from_event(event: &Event) -> Option<Self> {
        if event.description.name != "EventCounters" {
            return None;
        }
        let fields = match event.fields().ok()?.into_iter().next()?.1 {
            Value::Object(fields) => fields,
            _ => return None,
        };
        // Some runtimes wrap the counter in one more object.
        let fields = match fields.as_slice() {
            [(_, Value::Object(inner))] => inner,
            _ => &fields,
        };
        let find = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        let text = |name| find(name).and_then(Value::as_text).unwrap_or_default().to_owned();
        let number = |name| find(name).and_then(Value::as_number);
        let (kind, value) = match (number("Mean"), number("Increment")) {
            (Some(mean), _) => (CounterKind::Mean, mean),
            (None, Some(increment)) => (CounterKind::Sum, increment),
            (None, None) => return None,
        };
        Some(Self {
            provider: event.description.provider.clone(),
            name: text("Name"),
            display_name: text("DisplayName"),
            unit: text("DisplayUnits"),
            kind,
            value,
            interval_s: number("IntervalSec").unwrap_or_default(),
        })
    }
}
