//! Records requests in the current recording.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clrscope_agent_base::clock::ticks;
use clrscope_agent_base::hooks::is_stopped;
use clrscope_agent_base::memory::PublishedState;
use clrscope_agent_base::tick_scale::TickScale;
use clrscope_recording::events::{Encoder, Kind, Tag};
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use super::names::{Direction, Names, Subject};
use super::traces::TraceNumbers;
use super::under_way::{self, PendingRequest, RequestStart, Requests};
use crate::services::event_log::EventLog;
use crate::services::request_work::{self, put_request};
use crate::services::triggers::Triggers;

/// Status of a request that switches to another protocol.
const SWITCHING_PROTOCOLS: u32 = 101;

static CURRENT: PublishedState<Recorder> = PublishedState::nothing();
/// Recordings of requests so far.
static RECORDINGS: AtomicU32 = AtomicU32::new(0);

/// Outcome of a request. The numbers are those in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The request got a response, with any status.
    Answer = 0,
    /// An exception left the handlers, or the program got no response.
    Failure = 1,
    /// The client disconnected.
    Abortion = 2,
}

/// Records requests in the current recording.
pub(super) struct Recorder {
    pub(super) log: &'static EventLog,
    writer: &'static ProcessWriter,
    /// Converts ticks to nanoseconds.
    pub(super) scale: TickScale,
    names: Names,
    triggers: &'static Triggers,
    /// Names by number, for triggers.
    texts: Mutex<HashMap<u32, String>>,
    /// Whether names contain whole URLs.
    pub(super) has_urls: bool,
    /// Distinguishes the recording from others of the process.
    number: u32,
    /// Last number given to a pending request in copies of the recording.
    copied: AtomicU32,
}

impl Recorder {
    /// Makes this recording the current one for the code of methods.
    ///
    /// # Errors
    /// When the process has no thread key left.
    pub(super) fn publish(
        log: &'static EventLog,
        writer: &'static ProcessWriter,
        triggers: &'static Triggers,
        has_urls: bool,
    ) -> std::io::Result<&'static Self> {
        let number = RECORDINGS.fetch_add(1, Ordering::Relaxed) + 1;
        request_work::open()?;
        let (scale, names) = (TickScale::new(), Names::new());
        let (texts, copied) = Default::default();
        Ok(CURRENT.publish(Self { log, writer, scale, names, triggers, texts, has_urls, number, copied }))
    }

    /// Notes that the calling thread works for the request with this id from now on; 0 for none.
    /// The time comes from the clock of all instruments' events, so that no event of the thread
    /// falls on the wrong side of the switch.
    pub(super) fn works_for(&self, id: u64) {
        request_work::switch(id, || {
            self.log.write_with(Some(monotonic_ns()), Kind::REQUEST_ON_THREAD, |encoder| put_request(encoder, id))
        });
    }

    /// Call it when the calling thread gets another context while recording is stopped. As further
    /// changes are not seen, the thread counts as working for no request until it gets a context
    /// while recording runs.
    pub(super) fn works_unseen(&self) {
        request_work::switch(0, || self.log.write_while_stopped(monotonic_ns(), Kind::REQUEST_ON_THREAD, |_| ()));
    }

    /// The current recording, for inserted code. `None` if there is none. Valid until the next stop
    /// of all threads.
    #[inline]
    pub(super) fn current() -> Option<&'static Self> {
        CURRENT.get()
    }

    /// Ends the current recording for the code of methods.
    pub(super) fn withdraw() {
        CURRENT.withdraw();
        request_work::withdraw();
    }

    /// The number of a request's name.
    pub(super) fn name(&self, direction: Direction, method: &[u16], subject: Subject<'_>) -> u32 {
        self.names.number(direction, method, subject, |number, name| {
            let fields =
                [(Tag::ROUTE, number.into()), (Tag::DIRECTION, (direction as u32).into()), (Tag::NAME, name.into())];
            self.log.write(Kind::REQUEST_NAME, &fields);
            if self.triggers.request_ns() != u64::MAX {
                self.texts().insert(number, name.to_owned());
            }
        })
    }

    fn texts(&self) -> MutexGuard<'_, HashMap<u32, String>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a pending request. Returns its number; `None` if no number is left.
    pub(super) fn begin(&self, requests: &Requests, start: RequestStart) -> Option<u32> {
        let number = requests.take_number();
        match number.and_then(|number| requests.known(number)) {
            Some(request) => request.begin(self.number, start),
            None => self.writer.state().lose(LossReason::EventDropped, 1, monotonic_ns()),
        }
        number
    }

    /// The data of a request that ends. Only the first call returns them; later calls return
    /// `None`.
    pub(super) fn claim(&self, request: &PendingRequest) -> Option<RequestStart> {
        request.claim(self.number)
    }

    /// Call it when a request that the program makes ends. `number` is the request's number plus
    /// one; 0 for none. Records the status and outcome that `said` returns, if the request began in
    /// the current recording.
    pub(super) fn end_numbered(number: u32, said: impl FnOnce() -> (u32, Outcome)) {
        let Some((number, requests)) = number.checked_sub(1).zip(under_way::of_process()) else { return };
        if let Some(recorder) = Self::current().filter(|_| !is_stopped())
            && let Some(start) = requests.known(number).and_then(|request| recorder.claim(request))
        {
            let (status, outcome) = said();
            recorder.ended(start, status, outcome);
        }
        requests.give_back(number);
    }

    /// Records a request that has ended.
    pub(super) fn ended(&self, start: RequestStart, status: u32, outcome: Outcome) {
        let now = ticks();
        let (ended_ns, lasted_ns) = self.scale.moment(now, start.ticks.unwrap_or(now));
        self.log.write_with(Some(ended_ns), Kind::REQUEST_ENDED, |encoder| {
            encoder.number(Tag::ROUTE, start.name.into());
            if start.ticks.is_some() {
                encoder.number(Tag::DURATION, lasted_ns);
            }
            if status != 0 {
                encoder.number(Tag::STATUS, status.into());
            }
            if outcome != Outcome::Answer {
                encoder.number(Tag::OUTCOME, outcome as u64);
            }
            put_ids(encoder, start);
        });
        // A request that switches the protocol lasts as long as its connection.
        if lasted_ns > self.triggers.request_ns() && status != SWITCHING_PROTOCOLS {
            self.trigger(start.name, lasted_ns);
        }
    }

    #[cold]
    fn trigger(&self, name: u32, lasted_ns: u64) {
        self.triggers.request_happened(|| {
            let texts = self.texts();
            let name = texts.get(&name).map_or("a request", String::as_str);
            format!("{name} took {:.3} s", lasted_ns as f64 / 1e9)
        });
    }

    /// Records all requests that have not ended. To be called at the end of the recording.
    pub(super) fn pending(&self, requests: &Requests) {
        requests.all().filter_map(|request| self.claim(request)).for_each(|start| self.under_way(start));
    }

    /// Records all requests that have not ended in a copy of the recording. In the recording itself
    /// they continue.
    pub(super) fn copied(&self, requests: &Requests) {
        let number = || self.copied.fetch_add(1, Ordering::Relaxed) + 1;
        requests.all().filter_map(|request| request.copy(self.number, number)).for_each(|start| self.under_way(start));
    }

    fn under_way(&self, start: RequestStart) {
        let now = ticks();
        let (now_ns, lasted_ns) = self.scale.moment(now, start.ticks.unwrap_or(now));
        self.log.write_with(Some(now_ns), Kind::REQUEST_PENDING, |encoder| {
            encoder.number(Tag::ROUTE, start.name.into());
            if start.ticks.is_some() {
                encoder.number(Tag::DURATION, lasted_ns);
            }
            put_ids(encoder, start);
        });
    }
}

/// Writes the ids that distinguish a request from others.
fn put_ids(encoder: &mut Encoder<'_>, start: RequestStart) {
    put_request(encoder, start.id);
    if start.copied != 0 {
        encoder.number(Tag::COPIED, start.copied.into());
    }
    put_trace(encoder, start.trace);
}

fn put_trace(encoder: &mut Encoder<'_>, trace: TraceNumbers) {
    if trace != TraceNumbers::default() {
        let mut bytes = [0; size_of::<TraceNumbers>()];
        let places = bytes.as_chunks_mut::<{ size_of::<u64>() }>().0;
        places.iter_mut().zip(trace).for_each(|(place, number)| *place = number.to_be_bytes());
        encoder.opaque(Tag::TRACE, &bytes);
    }
}
