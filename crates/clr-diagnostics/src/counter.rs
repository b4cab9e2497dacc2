//! Counters that programs and the runtime publish as events (`EventCounter` and its relatives).

use crate::nettrace::{Event, Value};

/// Relation of the values of a counter to one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CounterKind {
    /// Each value is the mean of what was measured in the interval.
    Mean,
    /// Each value is what was added in the interval.
    Sum,
}

/// One value of a counter.
///
/// To get them, [collect](crate::Port::collect_events) from a provider with the argument
/// `EventCounterIntervalSec=1`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Counter {
    /// The provider, such as `System.Runtime`.
    pub provider: String,
    /// Name, such as `cpu-usage`.
    pub name: String,
    /// Name for people, such as `CPU Usage`.
    pub display_name: String,
    /// Unit for people, such as `%`; empty where the counter has none.
    pub unit: String,
    /// Relation of the values to one another.
    pub kind: CounterKind,
    /// Mean or sum, by kind.
    pub value: f64,
    /// Length of the interval in seconds.
    pub interval_s: f64,
}

impl Counter {
    /// Returns the counter that an event tells of; `None` for other events and for odd ones.
    #[must_use]
    pub fn from_event(event: &Event) -> Option<Self> {
        if event.description.name != "EventCounters" {
            return None;
        }
        let fields = match event.fields().ok()?.into_iter().next()?.1 {
            Value::Object(fields) => fields,
            _ => return None,
        };
        // Some runtimes put one object more around it.
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
