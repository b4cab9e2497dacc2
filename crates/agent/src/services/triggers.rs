//! Conditions in the program that cause the kept events to be written out (`--on`).
//!
//! Instruments report when a condition is met. The helper thread notes it for the launcher, at most
//! once in the period for which events are kept. If a condition is met again within that period,
//! the events already include it, and it is only counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clrscope_agent_base::helper::Task;
use clrscope_contract::request::Trigger;
use clrscope_recording::model::RemarkKind;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

/// The triggers of a recording.
pub(crate) struct Triggers {
    all: Vec<Trigger>,
    /// The trigger with the shortest time of a request, and that time; the maximum number where
    /// there is no such trigger.
    request: Option<Trigger>,
    request_ns: u64,
    /// Whether the next occurrence counts.
    is_armed: AtomicBool,
    /// Description of an occurrence that the helper thread has not seen yet.
    unseen: Mutex<Option<String>>,
    /// Number of occurrences since then.
    more: AtomicU64,
    /// Nanoseconds between two occurrences that count.
    pause_ns: u64,
}

impl Triggers {
    /// Creates the triggers. `kept` is the period for which events are kept; `None` if all are
    /// kept.
    pub(crate) fn new(all: &[Trigger], kept: Option<Duration>) -> Self {
        let least_ms = all.iter().filter_map(|trigger| match trigger {
            Trigger::Request(ms) => Some(*ms),
            Trigger::Exception(_) | Trigger::Counter(..) => None,
        });
        let least_ms = least_ms.min();
        Self {
            request: least_ms.map(Trigger::Request),
            request_ns: least_ms.map_or(u64::MAX, |ms| ms.saturating_mul(1_000_000)),
            all: all.to_vec(),
            is_armed: AtomicBool::new(true),
            unseen: Mutex::new(None),
            more: AtomicU64::new(0),
            pause_ns: kept.map_or(0, |kept| kept.as_nanos() as u64),
        }
    }

    /// A request that takes longer than this many nanoseconds is a trigger.
    #[inline]
    pub(crate) fn request_ns(&self) -> u64 {
        self.request_ns
    }

    /// Whether there are triggers on types of exceptions.
    pub(crate) fn has_exceptions(&self) -> bool {
        self.all.iter().any(|trigger| matches!(trigger, Trigger::Exception(_)))
    }

    /// The trigger that matches an exception of this type, if there is one.
    pub(crate) fn on_exception(&self, type_name: &str) -> Option<&Trigger> {
        self.all.iter().find(|trigger| trigger.is_about_type(type_name))
    }

    /// Whether there are triggers on values of counters.
    pub(crate) fn has_counters(&self) -> bool {
        self.all.iter().any(|trigger| matches!(trigger, Trigger::Counter(..)))
    }

    /// The trigger that matches this value of a counter, if there is one.
    pub(crate) fn on_counter(&self, name: &str, full_name: &str, value: f64) -> Option<&Trigger> {
        self.all.iter().find(|trigger| trigger.is_about_counter(name, full_name, value))
    }

    /// Call it when a request has taken longer than the limit. `what` describes it.
    pub(crate) fn request_happened(&self, what: impl FnOnce() -> String) {
        if let Some(trigger) = &self.request {
            self.happened(trigger, what);
        }
    }

    /// Call it when a trigger has occurred. `what` describes the occurrence.
    #[cold]
    pub(crate) fn happened(&self, trigger: &Trigger, what: impl FnOnce() -> String) {
        if self.is_armed.swap(false, Ordering::AcqRel) {
            let what = format!("{} (--on {trigger})", what());
            *self.unseen.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
        } else {
            self.more.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Task of the helper thread; `None` if there are no triggers.
    pub(crate) fn task(&'static self, writer: &'static ProcessWriter) -> Option<Box<dyn Task>> {
        (!self.all.is_empty()).then(|| Box::new(Watch { triggers: self, writer, arms_ns: None }) as Box<dyn Task>)
    }
}

struct Watch {
    triggers: &'static Triggers,
    writer: &'static ProcessWriter,
    /// When the next occurrence counts, in monotonic nanoseconds; `None` if it counts now.
    arms_ns: Option<u64>,
}

impl Watch {
    fn look(&mut self, now_ns: u64) {
        let Triggers { unseen, more, is_armed, pause_ns, .. } = self.triggers;
        let what = unseen.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(what) = what {
            let before = match more.swap(0, Ordering::Relaxed) {
                0 => String::new(),
                more => format!(" ({more} more since the last time that it was written out)"),
            };
            self.writer.remark(now_ns, RemarkKind::Trigger, &format!("{what}{before}"));
            self.writer.state().triggered();
            self.arms_ns = Some(now_ns.saturating_add(*pause_ns));
        }
        if self.arms_ns.is_some_and(|arms_ns| arms_ns <= now_ns) {
            self.arms_ns = None;
            is_armed.store(true, Ordering::Release);
        }
    }
}

impl Task for Watch {
    fn slow_tick(&mut self, now_ns: u64) {
        self.look(now_ns);
    }

    fn end(&mut self) {
        self.look(monotonic_ns());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_again_within_the_time_that_is_kept_is_counted_alone() {
        let all = ["request>2s", "request>500ms", "exception:IOException"].map(|text| text.parse().expect("a trigger"));
        let triggers = Triggers::new(&all, Some(Duration::from_secs(60)));
        assert_eq!((triggers.request_ns(), triggers.has_exceptions()), (500_000_000, true));
        assert_eq!(triggers.on_exception("System.IO.IOException"), Some(&all[2]));
        triggers.request_happened(|| "first".to_owned());
        triggers.happened(&all[2], || "second".to_owned());
        let unseen = triggers.unseen.lock().expect("the lock").take();
        let first = Some("first (--on request>500ms)");
        assert_eq!((unseen.as_deref(), triggers.more.load(Ordering::Relaxed)), (first, 1));
        assert_eq!(Triggers::new(&[], None).request_ns(), u64::MAX);
    }
}
