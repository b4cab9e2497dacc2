//! The runtime's own events, delivered inside the process through EventPipe sessions that all
//! instruments share. One session has the events that instruments ask for when they start. Further
//! sessions have the events that they [ask for later](EventPipe::want_more).
//!
//! An instrument [asks](EventPipe::want) for a provider when it starts, and lets the session
//! [begin](EventPipe::begin). It gets its events from the callback `event_pipe_event_delivered`:
//! [`of_runtime`](EventPipe::of_runtime) recognises events of the runtime's provider and gives
//! their number, version and [`Fields`]. The callback runs on the thread that raises the event,
//! also during collections. So it must not wait, and may ask the runtime only for information that
//! is safe to request there.
//!
//! A session delivers the events that any instrument wants, so an instrument also gets events that
//! it did not ask for, and has to check the provider and number of each. An event that several
//! sessions ask for is delivered once for each of them.
//!
//! Sessions are started and stopped on a short-lived thread of the agent: the runtime refuses
//! sessions in `Initialize`, and no session may be open when an attached agent leaves.

mod fields;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use clr_profiler::callback_args::EventPipeEvent;
use clr_profiler::{EventPipeProviderId, EventPipeSessionId, Events, OwnThread, ProfilerInfo, ProviderConfig};
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use super::developer_log::{Level, log};
use super::helper::Task;
use super::recording_lifetime::keep;

pub use fields::Fields;

/// The provider of the runtime itself.
pub const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// The provider of events for the runtime's own developers.
pub const RUNTIME_PRIVATE: &str = "Microsoft-Windows-DotNETRuntimePrivate";

/// The event source through which a program marks parts of its recording.
pub const MARKS: &str = "clrscope";
/// The event source of xUnit, which reports when a test begins and ends (`TestEventSource` of xUnit
/// 2 and 3).
pub const XUNIT: &str = "xUnit.TestEventSource";

/// Providers of the events that instruments look for.
const KNOWN: [&str; 4] = [RUNTIME, RUNTIME_PRIVATE, MARKS, XUNIT];

/// Keyword of allocations that the runtime samples at random (.NET 10 and later).
pub const SAMPLED_ALLOCATIONS: u64 = 0x800_0000_0000;
/// Keyword of collections; at the level [`level::VERBOSE`] also of the allocation tick for each 100
/// KiB.
pub const COLLECTIONS: u64 = 1;

/// Levels of events. A session delivers events up to its level of detail.
pub mod level {
    /// Informational events.
    pub const INFORMATIONAL: u32 = 4;
    /// All events, including verbose ones.
    pub const VERBOSE: u32 = 5;
}

/// Most providers that are remembered by their identifiers. Others are looked up again at each
/// event.
const MOST_PROVIDERS: usize = 64;

/// An event of one of the runtime's providers.
#[derive(Debug, Clone, Copy)]
pub struct RuntimeEvent<'a> {
    /// Number of the event within its provider.
    pub id: u32,
    /// Version of the event, which determines its fields.
    pub version: u32,
    /// The fields of the event, not read yet.
    pub fields: Fields<'a>,
}

/// The shared sessions; empty until an instrument asks for them.
#[derive(Default)]
pub struct SharedEventPipe(OnceLock<&'static EventPipe>);

impl SharedEventPipe {
    /// The sessions, if an instrument asked for them.
    pub fn in_use(&self) -> Option<&'static EventPipe> {
        self.0.get().copied()
    }

    /// The sessions. They are created when the first instrument asks for them.
    pub fn open(&self, info: &ProfilerInfo, writer: &'static ProcessWriter) -> &'static EventPipe {
        self.0.get_or_init(|| keep(EventPipe::new(info, writer)))
    }
}

/// The sessions of all instruments.
pub struct EventPipe {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    wanted: Mutex<Vec<ProviderConfig>>,
    /// Requests since the first session began. Each list gets a session of its own.
    more: Mutex<Vec<Vec<ProviderConfig>>>,
    sessions: Mutex<Sessions>,
    /// Whether there should be a session.
    is_wanted: AtomicBool,
    /// Whether there is a session.
    is_open: AtomicBool,
    /// Whether a thread is about to make `is_open` equal to `is_wanted`.
    is_changing: AtomicBool,
    /// Time until which the first session waits for the first event source; 0 if it does not wait.
    waits_until_ns: AtomicU64,
    /// The providers of all events so far, each with its name if it is one of [`KNOWN`].
    providers: RwLock<Vec<(EventPipeProviderId, Option<&'static str>)>>,
}

impl EventPipe {
    /// Creates sessions separate from those that instruments [share](SharedEventPipe).
    pub fn new(info: &ProfilerInfo, writer: &'static ProcessWriter) -> Self {
        Self {
            info: info.clone(),
            writer,
            wanted: Mutex::default(),
            more: Mutex::default(),
            sessions: Mutex::default(),
            is_wanted: AtomicBool::new(false),
            is_open: AtomicBool::new(false),
            is_changing: AtomicBool::new(false),
            waits_until_ns: AtomicU64::new(0),
            providers: RwLock::default(),
        }
    }

    /// Requests those events of a provider that have any of these keywords, up to this level of
    /// detail. Call it before [`begin`](Self::begin). Requests of several instruments for one
    /// provider are combined: all keywords, and the highest level.
    pub fn want(&self, provider: &str, keywords: u64, level: u32) {
        self.want_with(ProviderConfig { name: provider.to_owned(), keywords, level, filter: None });
    }

    /// Like [`want`](Self::want), for a provider that takes arguments. Only the arguments of the
    /// first request for a provider are used.
    pub fn want_with(&self, wanted: ProviderConfig) {
        let mut all = lock(&self.wanted);
        match all.iter_mut().find(|config| config.name == wanted.name) {
            Some(config) => {
                config.keywords |= wanted.keywords;
                config.level = config.level.max(wanted.level);
            }
            None => all.push(wanted),
        }
    }

    /// Requests events of a provider that does not exist yet. The provider learns of the request
    /// when it is created. `false` if the request may come too late, as the session is about to
    /// begin.
    pub fn want_next(&self, provider: &ProviderConfig) -> bool {
        let Ok(sessions) = self.sessions.try_lock() else { return false };
        match sessions.first {
            Some(session) => {
                let added = self.info.event_pipe_add_provider(session, provider);
                log(Level::Info, || format!("the session of events has one more provider: {provider:?}, {added:?}"));
                added.is_ok()
            }
            None => {
                self.want_with(provider.clone());
                true
            }
        }
    }

    /// Requests a further session with events of these providers, each named once. The session
    /// starts as soon as the first session exists. A process can have only 64 sessions, so callers
    /// ask seldom, and for many providers at once.
    ///
    /// Each session passes its arguments to its providers. All sessions end together and begin
    /// again together.
    pub fn want_more(&'static self, wanted: Vec<ProviderConfig>) {
        lock(&self.more).push(wanted);
        self.settle();
    }

    /// The profiler events that the sessions need.
    pub fn events(&self) -> Events {
        Events::EVENT_PIPE
    }

    /// Begins the session as soon as the runtime is up, with all requests made by then. To be
    /// called by instruments in `begins`; may be called repeatedly.
    pub fn begin(&'static self) {
        self.is_wanted.store(true, Ordering::Release);
        if self.waits_until_ns.load(Ordering::Acquire) == 0 {
            self.settle();
        }
    }

    /// Makes the first session wait for [`first_source_created`](Self::first_source_created), but
    /// not for long, as a program may have switched event sources off. To be called by an
    /// instrument whose event sources must be enabled before the program's own code runs, if the
    /// program is started with the agent.
    pub fn wait_for_source(&self) {
        /// Longest wait, in nanoseconds.
        const LONGEST_NS: u64 = 1_000_000_000;
        self.waits_until_ns.store(monotonic_ns() + LONGEST_NS, Ordering::Release);
    }

    /// Call it when the first event source of managed code is being created, on the thread that
    /// creates it. When this returns, a session that [waits](Self::wait_for_source) for this moment
    /// exists.
    pub fn first_source_created(&self) {
        if self.waits_until_ns.swap(0, Ordering::AcqRel) != 0 && self.is_wanted.load(Ordering::Acquire) {
            self.begin_here();
        }
    }

    fn waited_too_long(&'static self, now_ns: u64) {
        let until = self.waits_until_ns.load(Ordering::Acquire);
        if until != 0 && now_ns >= until && self.waits_until_ns.swap(0, Ordering::AcqRel) != 0 {
            self.settle();
        }
    }

    /// Like [`begin`](Self::begin), but the session exists when this returns. Call it in the
    /// callback `event_pipe_provider_created`, on the thread that creates the provider and may
    /// raise an event next. Does nothing if another thread is about to start or stop sessions.
    /// Waiting for that thread would be a deadlock: it may need the lock of event sources, which
    /// the calling thread holds.
    pub fn begin_here(&self) {
        let Ok(mut sessions) = self.sessions.try_lock() else { return };
        if sessions.first.is_none() {
            self.is_wanted.store(true, Ordering::Release);
            sessions.first = self.start_first();
        }
    }

    /// Makes all sessions end soon; does not wait for that.
    pub fn end_soon(&'static self) {
        self.is_wanted.store(false, Ordering::Release);
        self.settle();
    }

    /// Whether a session is open.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Decodes an event of the runtime's provider; `None` for events of other providers.
    pub fn of_runtime<'e>(&self, event: &EventPipeEvent<'e>) -> Option<RuntimeEvent<'e>> {
        self.of_provider(RUNTIME, event)
    }

    /// Decodes an event of the provider `name`, which must be listed in `KNOWN`; `None` for events
    /// of other providers.
    pub fn of_provider<'e>(&self, name: &str, event: &EventPipeEvent<'e>) -> Option<RuntimeEvent<'e>> {
        let is_of_it = self.provider(event.provider) == Some(name);
        is_of_it.then(|| RuntimeEvent {
            id: event.event_id,
            version: event.event_version,
            fields: Fields::new(event.data),
        })
    }

    fn provider(&self, provider: EventPipeProviderId) -> Option<&'static str> {
        let find = |known: &[(EventPipeProviderId, Option<&'static str>)]| {
            known.iter().find(|(id, _)| *id == provider).map(|(_, name)| *name)
        };
        if let Some(known) = find(&self.providers.read().unwrap_or_else(PoisonError::into_inner)) {
            return known;
        }
        // The name is a copy in the runtime, and reading it waits for no lock.
        let name = self.info.event_pipe_provider_name(provider).ok()?;
        let name = KNOWN.into_iter().find(|known| *known == name);
        let mut known = self.providers.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST_PROVIDERS && find(&known).is_none() {
            known.push((provider, name));
        }
        name
    }

    /// The task of the helper thread that handles the sessions.
    pub fn task(&'static self) -> Box<dyn Task> {
        Box::new(Switch(self))
    }

    /// Starts or stops the session on another thread, as wanted. Returns whether nothing was to be
    /// done.
    fn settle(&'static self) -> bool {
        if self.is_settled() {
            return !self.is_changing.load(Ordering::Acquire);
        }
        if !self.is_changing.swap(true, Ordering::AcqRel) {
            let started = OwnThread::start(&self.info, "clrscope-events", move |_| self.change_until_settled());
            if let Err(error) = started {
                log(Level::Warn, || format!("no thread for a session of events: {error}"));
                self.is_changing.store(false, Ordering::Release);
                // The program is about to end, and the session ends with it.
                return true;
            }
        }
        false
    }

    fn change_until_settled(&self) {
        loop {
            let changed = ChangeGuard(&self.is_changing);
            while !self.is_settled() {
                self.change();
            }
            drop(changed);
            // A caller that wanted something else in the meantime relied on this thread.
            if self.is_settled() || self.is_changing.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }

    fn is_settled(&self) -> bool {
        let is_open = self.is_open.load(Ordering::Acquire);
        is_open == self.is_wanted.load(Ordering::Acquire) && (!is_open || lock(&self.more).is_empty())
    }

    /// Starts or stops sessions. Runs on a thread of the agent, as both may wait.
    fn change(&self) {
        let mut sessions = lock(&self.sessions);
        match (self.is_wanted.load(Ordering::Acquire), sessions.first.take()) {
            (true, None) => sessions.first = self.start_first(),
            (true, open) => {
                sessions.first = open;
                let more = std::mem::take(&mut *lock(&self.more));
                for wanted in more {
                    sessions.further.extend(self.start(&wanted).map(|started| (started, wanted)));
                }
            }
            (false, Some(open)) => {
                for (further, wanted) in std::mem::take(&mut sessions.further) {
                    self.end(further);
                    // Further sessions begin again when the first one does.
                    lock(&self.more).push(wanted);
                }
                self.end(open);
                self.bring_ticks_back();
                self.is_open.store(false, Ordering::Release);
            }
            (false, None) => {}
        }
    }

    fn start_first(&self) -> Option<EventPipeSessionId> {
        let wanted = lock(&self.wanted).clone();
        let started = self.start(&wanted);
        match started {
            Some(_) => {
                self.bring_ticks_back();
                self.is_open.store(true, Ordering::Release);
            }
            None => self.is_wanted.store(false, Ordering::Release),
        }
        started
    }

    fn start(&self, wanted: &[ProviderConfig]) -> Option<EventPipeSessionId> {
        let started = self.info.event_pipe_start_session(wanted, false);
        log(Level::Info, || format!("a session of events begins: {wanted:?}"));
        if let Err(error) = &started {
            let text = format!("the runtime delivers no events of its own: {error}");
            self.writer.note(monotonic_ns(), &text);
        }
        started.ok()
    }

    fn end(&self, session: EventPipeSessionId) {
        // A session that can't be stopped has ended with the program.
        let stopped = self.info.event_pipe_stop_session(session);
        log(Level::Info, || format!("a session of events is over: {stopped:?}"));
    }

    /// A session with sampled allocations silences the allocation ticks of all other sessions,
    /// including the program's own listeners, and also after it has ended (.NET 10; measured). Any
    /// session that starts after it brings the ticks back.
    fn bring_ticks_back(&self) {
        let silences = |config: &ProviderConfig| config.name == RUNTIME && config.keywords & SAMPLED_ALLOCATIONS != 0;
        if !lock(&self.wanted).iter().any(silences) {
            return;
        }
        let short = ProviderConfig {
            name: RUNTIME.to_owned(),
            keywords: COLLECTIONS,
            level: level::INFORMATIONAL,
            filter: None,
        };
        let ended = self.info.event_pipe_start_session(&[short], false).map(|id| self.info.event_pipe_stop_session(id));
        log(Level::Info, || format!("a short session of events brings ticks back: {ended:?}"));
    }
}

/// The sessions that are open.
#[derive(Default)]
struct Sessions {
    /// The session for the requests that instruments made when they started.
    first: Option<EventPipeSessionId>,
    /// The sessions for later requests.
    further: Vec<(EventPipeSessionId, Vec<ProviderConfig>)>,
}

/// Marks a change as finished, also after a panic.
struct ChangeGuard<'a>(&'a AtomicBool);

impl Drop for ChangeGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Stops the session and starts it again with the recording.
struct Switch(&'static EventPipe);

impl Task for Switch {
    fn slow_tick(&mut self, now_ns: u64) {
        self.0.waited_too_long(now_ns);
    }

    fn stop(&mut self) -> bool {
        self.0.is_wanted.store(false, Ordering::Release);
        self.0.settle()
    }

    fn start_again(&mut self, _now_ns: u64) {
        self.0.begin();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
