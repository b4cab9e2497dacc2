//! Values of counters, as event sources and meters publish them.

use clrscope_agent_base::event_pipe::Fields;
use clrscope_recording::model::CounterKind;

/// Value of a counter at the end of an interval.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CounterValue {
    pub(super) name: String,
    pub(super) unit: String,
    /// Labels of the value, in the form `name=value,name=value`.
    pub(super) labels: String,
    pub(super) kind: CounterKind,
    /// The counter's current state, or its sum in the interval, depending on its kind; `None` if
    /// only the total is known.
    pub(super) value: Option<f64>,
    /// For meters: the sum since the program began.
    pub(super) total: Option<f64>,
    /// Number of measurements in the interval.
    pub(super) count: Option<u64>,
    /// Quantiles of the measurements, as text.
    pub(super) quantiles: String,
    /// Length of the interval in seconds; `None` for meters, whose intervals have events of their
    /// own.
    pub(super) interval_s: Option<f64>,
}

/// The name by which event sources publish their counters.
const PUBLISHED: &str = "EventCounters";

/// Whether an event holds a value of a counter. `metadata` describes the event: its number, then
/// its name.
pub(super) fn is_counter(metadata: &[u8]) -> bool {
    let mut fields = Fields::new(metadata);
    fields.u32().is_some() && fields.text().is_some_and(|name| name.eq(PUBLISHED.encode_utf16()))
}

fn text(fields: &mut Fields<'_>) -> Option<String> {
    fields.text().map(|units| char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

impl CounterValue {
    /// A counter without a value.
    fn new(name: String, kind: CounterKind) -> Self {
        let (unit, labels, quantiles) = Default::default();
        Self { name, unit, labels, kind, value: None, total: None, count: None, quantiles, interval_s: None }
    }

    /// Reads the value in an event of an event source. There are two forms, for states and for sums
    /// (`CounterPayload` and `IncrementingCounterPayload` of System.Private.CoreLib). If an event
    /// of one form is read as the other, it does not end where it should, so the forms can't be
    /// confused.
    pub(super) fn of_event_source(data: &[u8]) -> Option<Self> {
        state(Fields::new(data)).or_else(|| sum(Fields::new(data)))
    }
}

fn state(mut fields: Fields<'_>) -> Option<CounterValue> {
    let (name, _display_name) = (text(&mut fields)?, text(&mut fields)?);
    let (mean, _deviation) = (fields.f64()?, fields.f64()?);
    let count = fields.u32()?;
    let (_min, _max, interval_s) = (fields.f64()?, fields.f64()?, fields.f32()?);
    let (_series, kind, _metadata) = (text(&mut fields)?, text(&mut fields)?, text(&mut fields)?);
    let unit = text(&mut fields)?;
    let value = CounterValue {
        unit,
        value: Some(mean),
        count: Some(count.into()),
        interval_s: Some(interval_s.into()),
        ..CounterValue::new(name, CounterKind::Gauge)
    };
    (kind == "Mean" && fields.is_at_end()).then_some(value)
}

fn sum(mut fields: Fields<'_>) -> Option<CounterValue> {
    let (name, _display_name, _scale) = (text(&mut fields)?, text(&mut fields)?, text(&mut fields)?);
    let (increment, interval_s) = (fields.f64()?, fields.f32()?);
    let (_metadata, _series, kind) = (text(&mut fields)?, text(&mut fields)?, text(&mut fields)?);
    let unit = text(&mut fields)?;
    let value = CounterValue {
        unit,
        value: Some(increment),
        interval_s: Some(interval_s.into()),
        ..CounterValue::new(name, CounterKind::Counter)
    };
    (kind == "Sum" && fields.is_at_end()).then_some(value)
}

/// The interval that the values of meters belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MeterInterval {
    /// Start of the interval, in units of 100 ns.
    pub(super) start: u64,
    pub(super) length_ns: u64,
}

/// An event of `System.Diagnostics.Metrics`, which reports meters.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MeterEvent {
    /// The values of this interval follow.
    Interval(MeterInterval),
    /// A value of a meter's instrument.
    Value { meter: String, value: CounterValue },
    /// A meter has published an instrument. Its values come only if the meter is requested.
    Published { meter: String },
    /// Values are missing, for this reason.
    Failed(String),
}

impl MeterEvent {
    /// Reads the event with this number; `None` for events that are not used (`MetricsEventSource`
    /// of System.Diagnostics.DiagnosticSource).
    pub(super) fn read(id: u32, data: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(data);
        let _session = text(&mut fields)?;
        match id {
            2 => {
                let (start, end) = (fields.u64()?, fields.u64()?);
                Some(Self::Interval(MeterInterval { start, length_ns: end.checked_sub(start)?.saturating_mul(100) }))
            }
            4..=6 | 16 => meter_value(id, fields),
            9 | 14 => Some(Self::Failed(text(&mut fields)?.lines().next().unwrap_or_default().to_owned())),
            11 => Some(Self::Published { meter: text(&mut fields)? }),
            12 => Some(Self::Failed("there are more than 1,000 meters with different labels".to_owned())),
            13 => Some(Self::Failed("there are more than 20 histograms with different labels".to_owned())),
            15 | 17 => Some(Self::Failed("another tool listens to them in its own way".to_owned())),
            _ => None,
        }
    }
}

fn meter_value(id: u32, mut fields: Fields<'_>) -> Option<MeterEvent> {
    let (meter, _version) = (text(&mut fields)?, text(&mut fields)?);
    let (name, unit, labels) = (text(&mut fields)?, text(&mut fields)?, text(&mut fields)?);
    let said = text(&mut fields)?;
    let number = |text: &str| text.parse::<f64>().ok();
    let mut value = CounterValue { unit, labels, ..CounterValue::new(name, CounterKind::Gauge) };
    match id {
        4 | 16 => {
            value.kind = if id == 4 { CounterKind::Counter } else { CounterKind::UpDownCounter };
            value.value = number(&said);
            value.total = number(&text(&mut fields)?);
        }
        5 => value.value = number(&said),
        _ => {
            value.kind = CounterKind::Histogram;
            value.quantiles = said;
            value.count = Some(fields.u32()?.into());
            value.value = fields.f64();
        }
    }
    let is_known = value.value.is_some() || value.total.is_some();
    is_known.then_some(MeterEvent::Value { meter, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Bytes(Vec<u8>);

    impl Bytes {
        fn text(mut self, text: &str) -> Self {
            self.0.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
            self
        }

        fn number(mut self, bytes: &[u8]) -> Self {
            self.0.extend_from_slice(bytes);
            self
        }

        fn texts(self, texts: &[&str]) -> Self {
            texts.iter().fold(self, |bytes, text| bytes.text(text))
        }
    }

    fn state_event() -> Vec<u8> {
        let bytes = Bytes::default().texts(&["cpu-usage", "CPU Usage"]);
        let bytes = bytes.number(&12.5_f64.to_le_bytes()).number(&0_f64.to_le_bytes()).number(&1_u32.to_le_bytes());
        let bytes = bytes.number(&12.5_f64.to_le_bytes()).number(&12.5_f64.to_le_bytes());
        bytes.number(&1.0_f32.to_le_bytes()).texts(&["Interval=1001", "Mean", "", "%"]).0
    }

    fn sum_event() -> Vec<u8> {
        let bytes = Bytes::default().texts(&["alloc-rate", "Allocation Rate", "00:00:01"]);
        let bytes = bytes.number(&8_192_f64.to_le_bytes()).number(&1.5_f32.to_le_bytes());
        bytes.texts(&["", "Interval=1001", "Sum", "B"]).0
    }

    #[test]
    fn both_forms_of_event_counters_are_read_and_no_part_of_one_is() {
        let read = |bytes: &[u8]| {
            CounterValue::of_event_source(bytes).map(|v| (v.name, v.unit, v.kind, v.value, v.interval_s))
        };
        let cpu = ("cpu-usage".to_owned(), "%".to_owned(), CounterKind::Gauge, Some(12.5), Some(1.0));
        let rate = ("alloc-rate".to_owned(), "B".to_owned(), CounterKind::Counter, Some(8_192.0), Some(1.5));
        assert_eq!((read(&state_event()), read(&sum_event())), (Some(cpu), Some(rate)));
        for whole in [state_event(), sum_event()] {
            for length in 0..whole.len() {
                assert_eq!(read(&whole[..length]), None, "{length} bytes");
            }
            assert_eq!(read(&[&whole[..], &[0]].concat()), None);
        }
    }

    #[test]
    fn events_of_counters_are_told_by_their_name() {
        let named = |name: &str| Bytes::default().number(&7_u32.to_le_bytes()).text(name).number(&[1, 2, 3]).0;
        assert!(is_counter(&named("EventCounters")));
        assert!(!is_counter(&named("EventCounter")) && !is_counter(&named("EventCounters2")) && !is_counter(&[1, 2]));
    }

    #[test]
    fn meters_are_read_by_the_numbers_of_their_events() {
        let head = || Bytes::default().texts(&["SHARED", "Shop", "1.0", "orders", "{order}", "kind=new"]);
        let value = |id, bytes: Bytes| match MeterEvent::read(id, &bytes.0) {
            Some(MeterEvent::Value { meter, value }) => {
                assert_eq!((&*meter, &*value.name, &*value.labels), ("Shop", "orders", "kind=new"));
                Some((value.kind, value.value, value.total, value.count))
            }
            _ => None,
        };
        assert_eq!(value(4, head().texts(&["3", "10"])), Some((CounterKind::Counter, Some(3.0), Some(10.0), None)));
        assert_eq!(value(4, head().texts(&["", "10"])), Some((CounterKind::Counter, None, Some(10.0), None)));
        assert_eq!(
            value(16, head().texts(&["-3", "7"])),
            Some((CounterKind::UpDownCounter, Some(-3.0), Some(7.0), None))
        );
        assert_eq!(value(5, head().text("0.25")), Some((CounterKind::Gauge, Some(0.25), None, None)));
        assert_eq!(value(5, head().text("")), None);
        let measured = head().text("0.5=2;0.95=3;0.99=3").number(&2_u32.to_le_bytes()).number(&5_f64.to_le_bytes());
        assert_eq!(value(6, measured), Some((CounterKind::Histogram, Some(5.0), None, Some(2))));
        let published = Bytes::default().texts(&["SHARED", "Shop", "", "orders"]);
        assert_eq!(MeterEvent::read(11, &published.0), Some(MeterEvent::Published { meter: "Shop".into() }));
        let interval = MeterInterval { start: 10, length_ns: 2_000 };
        let collected = Bytes::default().text("SHARED").number(&10_u64.to_le_bytes()).number(&30_u64.to_le_bytes());
        assert_eq!(MeterEvent::read(2, &collected.0), Some(MeterEvent::Interval(interval)));
        assert_eq!(MeterEvent::read(1, &published.0), None);
    }
}
