//! Records the values of counters.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clrscope_recording::events::{Kind, Tag};
use clrscope_recording::model::{CounterReading, LossReason, full_counter_name};
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use super::values::{CounterValue, MeterInterval};
use crate::services::context::Context;
use crate::services::event_log::EventLog;
use crate::services::triggers::Triggers;

/// Most counters of a recording; each set of labels is a counter.
const MOST: usize = 10_000;

/// A counter: provider, name and labels.
type Counter = (String, String, String);

/// Number of a counter, if its value is to be recorded.
enum Number {
    Known(u64),
    /// The value of this interval was already recorded.
    SaidBefore,
    TooMany,
}

/// Records values of counters. They come once a second, on threads of the runtime's own.
pub(super) struct Recorder {
    pub(super) log: &'static EventLog,
    writer: &'static ProcessWriter,
    triggers: &'static Triggers,
    /// Counters by name: the number, and the begin of the interval whose value was recorded last.
    numbers: Mutex<HashMap<Counter, (u64, Option<u64>)>>,
    /// Reasons for missing values that were noted already.
    said: Mutex<HashSet<String>>,
}

impl Recorder {
    pub(super) fn new(log: &'static EventLog, context: &Context) -> Self {
        let (writer, triggers) = (context.writer, context.triggers);
        Self { log, writer, triggers, numbers: Mutex::default(), said: Mutex::default() }
    }

    /// Records a value of a provider's counter. `interval` is given for meters only: each session
    /// delivers the same value per interval, and only one is recorded.
    pub(super) fn record(&self, provider: &str, value: &CounterValue, interval: Option<MeterInterval>) {
        let number = match self.number(provider, value, interval.map(|interval| interval.start)) {
            Number::Known(number) => number,
            Number::SaidBefore => return,
            Number::TooMany => return self.writer.state().lose(LossReason::EventDropped, 1, monotonic_ns()),
        };
        let own_ns = value.interval_s.map(|seconds| (seconds * 1e9) as u64);
        let interval_ns = own_ns.or(interval.map(|interval| interval.length_ns)).unwrap_or(0);
        let mut fields = vec![(Tag::COUNTER, number.into()), (Tag::DURATION, interval_ns.into())];
        fields.extend(value.value.map(|value| (Tag::VALUE, value.to_bits().into())));
        fields.extend(value.total.map(|total| (Tag::TOTAL, total.to_bits().into())));
        fields.extend(value.count.map(|count| (Tag::COUNT, count.into())));
        fields.push((Tag::QUANTILES, (&*value.quantiles).into()));
        self.log.write(Kind::COUNTER_VALUE, &fields);
        if self.triggers.has_counters() {
            let CounterValue { value: told, total, count, .. } = *value;
            let reading = CounterReading { value: told, total, count, interval_ns };
            self.trigger(provider, value, reading);
        }
    }

    fn trigger(&self, provider: &str, value: &CounterValue, reading: CounterReading) {
        let Some(shown) = reading.shown(value.kind) else { return };
        let full_name = full_counter_name(provider, &value.name, &value.labels);
        if let Some(trigger) = self.triggers.on_counter(&value.name, &full_name, shown) {
            self.triggers.happened(trigger, || format!("{full_name} was {}", (shown * 1e3).round() / 1e3));
        }
    }

    /// The number of a counter for the value of an interval.
    fn number(&self, provider: &str, value: &CounterValue, start: Option<u64>) -> Number {
        let counter = (provider.to_owned(), value.name.clone(), value.labels.clone());
        let mut numbers = lock(&self.numbers);
        if let Some((number, last)) = numbers.get_mut(&counter) {
            let is_same = start.is_some() && *last == start;
            *last = start;
            return if is_same { Number::SaidBefore } else { Number::Known(*number) };
        }
        if numbers.len() >= MOST {
            return Number::TooMany;
        }
        let number = numbers.len() as u64 + 1;
        self.name(number, provider, value);
        numbers.insert(counter, (number, start));
        Number::Known(number)
    }

    fn name(&self, number: u64, provider: &str, value: &CounterValue) {
        let CounterValue { name, unit, labels, kind, .. } = value;
        self.log.write(
            Kind::COUNTER_NAME,
            &[
                (Tag::COUNTER, number.into()),
                (Tag::COUNTER_KIND, kind.number().into()),
                (Tag::SOURCE, provider.into()),
                (Tag::NAME, (&**name).into()),
                (Tag::UNIT, (&**unit).into()),
                (Tag::LABELS, (&**labels).into()),
            ],
        );
    }

    /// Notes once in the recording why values are missing.
    pub(super) fn missing(&self, why: &str) {
        if lock(&self.said).insert(why.to_owned()) {
            self.writer.note(monotonic_ns(), &format!("counters: values of meters are missing: {why}"));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
