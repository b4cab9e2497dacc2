//! What becomes of values in the recording.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clrscope_recording::events::{Kind, Tag};
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use super::values::{CounterKind, CounterValue};
use crate::services::event_log::EventLog;

/// Counters of a recording; each set of labels is one.
const MOST: usize = 10_000;

/// A counter: provider, name and labels.
type Counter = (String, String, String);

/// The recording of values. Values come once a second, on threads of the runtime's own.
pub(super) struct Recorder {
    pub(super) log: &'static EventLog,
    writer: &'static ProcessWriter,
    numbers: Mutex<HashMap<Counter, u64>>,
    /// What was said about missing values.
    said: Mutex<HashSet<String>>,
}

impl Recorder {
    pub(super) fn new(log: &'static EventLog, writer: &'static ProcessWriter) -> Self {
        Self { log, writer, numbers: Mutex::default(), said: Mutex::default() }
    }

    /// Records a value of a provider's counter. `interval_ns` is that of meters.
    pub(super) fn record(&self, provider: &str, value: &CounterValue, interval_ns: u64) {
        let Some(number) = self.number(provider, value) else {
            return self.writer.state().lose(LossReason::EventDropped, 1, monotonic_ns());
        };
        let interval_ns = value.interval_s.map_or(interval_ns, |seconds| (seconds * 1e9) as u64);
        let mut fields = vec![(Tag::COUNTER, number.into()), (Tag::DURATION, interval_ns.into())];
        fields.extend(value.value.map(|value| (Tag::VALUE, value.to_bits().into())));
        fields.extend(value.total.map(|total| (Tag::TOTAL, total.to_bits().into())));
        fields.extend(value.count.map(|count| (Tag::COUNT, count.into())));
        fields.push((Tag::QUANTILES, (&*value.quantiles).into()));
        self.log.write(Kind::COUNTER_VALUE, &fields);
    }

    /// The number of a counter; `None` where there are too many.
    fn number(&self, provider: &str, value: &CounterValue) -> Option<u64> {
        let counter = (provider.to_owned(), value.name.clone(), value.labels.clone());
        let mut numbers = lock(&self.numbers);
        if let Some(number) = numbers.get(&counter) {
            return Some(*number);
        }
        let number = numbers.len() as u64 + 1;
        if numbers.len() >= MOST {
            return None;
        }
        self.name(number, provider, value);
        numbers.insert(counter, number);
        Some(number)
    }

    fn name(&self, number: u64, provider: &str, value: &CounterValue) {
        let CounterValue { name, unit, labels, kind, .. } = value;
        let kind: CounterKind = *kind;
        self.log.write(
            Kind::COUNTER_NAME,
            &[
                (Tag::COUNTER, number.into()),
                (Tag::COUNTER_KIND, (kind as u64).into()),
                (Tag::SOURCE, provider.into()),
                (Tag::NAME, (&**name).into()),
                (Tag::UNIT, (&**unit).into()),
                (Tag::LABELS, (&**labels).into()),
            ],
        );
    }

    /// Notes why values are missing, once.
    pub(super) fn missing(&self, why: &str) {
        if lock(&self.said).insert(why.to_owned()) {
            self.writer.note(monotonic_ns(), &format!("counters: values of meters are missing: {why}"));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
