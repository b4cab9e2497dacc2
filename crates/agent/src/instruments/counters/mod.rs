//! `counters`: the values that event sources (`EventCounter` and its relatives) and meters
//! (`System.Diagnostics.Metrics`) publish each second.
//!
//! Both publish events to each session that asks for them. The shared
//! [session](clrscope_agent_base::event_pipe) of the instruments asks for event sources by name,
//! and for meters through the one event source that publishes all of them. This event source
//! reports which meters exist, and the runtime reports each new event source. Sources and meters
//! that were not known when the session began are asked for in a further session.

mod intervals;
mod meter_gate;
mod options;
mod providers;
mod recorder;
mod sources;
mod values;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use clr_profiler::callback_args::EventPipeEvent;
use clr_profiler::{AssemblyId, Callbacks, EventPipeProviderId, Events, ModuleId, ProfilerInfo, ProviderConfig};
use clrscope_agent_base::event_pipe::EventPipe;
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::hooks::is_stopped;
use clrscope_contract::async_code::CORE_LIBRARY;
use clrscope_contract::instruments::counters::can_be_asked;
use clrscope_recording::layout::instrument;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};
use crate::services::event_log::EventLog;

use intervals::Intervals;
use meter_gate::MeterGate;
use providers::{METERS, OF_RUNTIME, SOURCES};
use recorder::Recorder;
use values::{CounterValue, MeterEvent, MeterInterval};

pub(crate) use options::CountersOptions;

/// Number of further sessions that begin as soon as there is something new: values counted before
/// they begin are lost. Later sessions wait for more names.
const AT_ONCE: u32 = 4;
/// Rounds of the helper thread (fifty a second) that later sessions wait.
const ROUNDS: u32 = 25;
/// Most further sessions. A process has room for 64, including those of other tools.
const MOST_SESSIONS: u32 = 16;

/// The instrument `counters` while it runs.
pub(crate) struct Counters {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    functions: Arc<Functions>,
    pipe: &'static EventPipe,
    recorder: Recorder,
    /// Providers that events came from.
    providers: RwLock<HashMap<EventPipeProviderId, Provider>>,
    found: Arc<Found>,
    gate: Arc<MeterGate>,
    /// Makes our interval give way to others. `None` after an attach, since an agent that has
    /// changed code can't detach, and where another profiler may have the main slot, which is
    /// needed to change code.
    intervals: Option<Intervals>,
    /// Interval whose values meters publish.
    meter_interval: Mutex<MeterInterval>,
}

/// Kind of a provider.
#[derive(Debug, Clone)]
enum Provider {
    /// An event source that may publish counters.
    Source(Arc<str>),
    /// The event source that publishes values of meters.
    Meters,
    /// Any other provider.
    Other,
}

/// Event sources and meters that no session has asked for yet.
#[derive(Default)]
struct Found(Mutex<NewNames>);

#[derive(Default)]
struct NewNames {
    sources: Vec<String>,
    meters: Vec<String>,
    /// Event sources that were asked for, or will be.
    known_sources: HashSet<String>,
    /// Meters that were asked for, or will be.
    known_meters: HashSet<String>,
}

impl Found {
    fn names(&self) -> MutexGuard<'_, NewNames> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a new event source, unless it was asked for before.
    fn made(&self, name: String) {
        let mut names = self.names();
        if names.known_sources.insert(name.clone()) {
            names.sources.push(name);
        }
    }

    /// Notes an event source that was asked for before it exists.
    fn asked(&self, name: String) {
        self.names().known_sources.insert(name);
    }

    /// Notes a meter; `false` if its name can't be asked for.
    fn meter(&self, name: &str) -> bool {
        let can_be_asked = can_be_asked(name);
        let mut names = self.names();
        if can_be_asked && names.known_meters.insert(name.to_owned()) {
            names.meters.push(name.to_owned());
        }
        can_be_asked
    }

    /// Returns the new names, as the providers of a session. Meters are left for later unless
    /// `with_meters`.
    fn drain(&self, with_meters: bool) -> Vec<ProviderConfig> {
        let mut names = self.names();
        let mut wanted: Vec<_> = std::mem::take(&mut names.sources).iter().map(|name| providers::source(name)).collect();
        if with_meters {
            let meters = std::mem::take(&mut names.meters);
            wanted.extend((!meters.is_empty()).then(|| providers::meters(&meters)));
        }
        wanted
    }
}

impl Counters {
    /// The program's own event sources that a module declares.
    fn declared(&self, module: ModuleId) -> Vec<String> {
        let names = self.functions.names();
        let is_own = names.assembly(&self.info, module).is_ok_and(|assembly| providers::is_own(&assembly));
        let metadata = is_own.then(|| names.metadata(&self.info, module).ok()).flatten();
        let declared = metadata.map(|metadata| sources::declared(&metadata)).unwrap_or_default();
        declared.into_iter().filter(|name| providers::is_own(name)).collect()
    }

    fn provider(&self, id: EventPipeProviderId) -> Option<Provider> {
        if let Some(known) = self.providers.read().unwrap_or_else(PoisonError::into_inner).get(&id) {
            return Some(known.clone());
        }
        // The name is a copy of the runtime's own, which waits for no lock.
        let name = self.info.event_pipe_provider_name(id).ok()?;
        let provider = match &*name {
            METERS => Provider::Meters,
            name if SOURCES.contains(&name) || providers::is_own(name) => Provider::Source(name.into()),
            _ => Provider::Other,
        };
        self.providers.write().unwrap_or_else(PoisonError::into_inner).insert(id, provider.clone());
        Some(provider)
    }

    fn meter_interval(&self) -> MutexGuard<'_, MeterInterval> {
        self.meter_interval.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn meter_event(&self, event: MeterEvent) {
        match event {
            MeterEvent::Interval(interval) => *self.meter_interval() = interval,
            MeterEvent::Value { meter, value } => {
                let interval = *self.meter_interval();
                self.recorder.record(&meter, &value, Some(interval));
            }
            MeterEvent::Published { meter } => {
                if !self.found.meter(&meter) {
                    self.recorder.missing("a meter's name has characters that can't be requested");
                }
            }
            MeterEvent::Failed(why) => self.recorder.missing(&why),
        }
    }
}

impl Instrument for Counters {
    type Options = CountersOptions;

    fn start(options: &CountersOptions, context: &Context) -> std::result::Result<Self, String> {
        let log = EventLog::create(context, instrument::COUNTERS, options.max_bytes)?;
        let may_change_code = context.beginning == Beginning::Launch && !context.info.is_notification_only();
        let pipe = context.event_pipe();
        SOURCES.iter().for_each(|name| pipe.want_with(providers::source(name)));
        let found = Found::default();
        pipe.want_with(match options.meters.as_slice() {
            [] => {
                let first = OF_RUNTIME.to_owned();
                found.names().known_meters.insert(first.clone());
                providers::meters(&[first])
            }
            names => providers::only_meters(names),
        });
        if context.beginning == Beginning::Launch {
            // See `meter_gate`.
            pipe.wait_for_source();
        }
        Ok(Self {
            info: context.info.clone(),
            writer: context.writer,
            functions: Arc::clone(&context.functions),
            pipe,
            recorder: Recorder::new(log, context),
            providers: RwLock::default(),
            found: Arc::new(found),
            gate: Arc::new(MeterGate::new(context.beginning)),
            intervals: may_change_code.then(|| Intervals::new(context)),
            meter_interval: Mutex::default(),
        })
    }

    fn events(&self) -> Events {
        let changes = if self.intervals.is_some() { Events::ENABLE_REJIT } else { Events::NONE };
        changes | Events::MODULE_LOADS | self.pipe.events()
    }

    fn begins(&self, _beginning: Beginning) {
        self.pipe.begin();
    }

    /// Values come once a second, and fit into the memory that is backed already.
    fn needs_frequent_help(&self) -> bool {
        false
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        let (pipe, found, gate) = (self.pipe, Arc::clone(&self.found), Arc::clone(&self.gate));
        let ask = AskForMore { pipe, found, gate, writer: self.writer, rounds: 0, sessions: 0, is_said: false };
        let tasks: [Box<dyn Task>; 2] = [self.recorder.log.task(), Box::new(ask)];
        tasks.into_iter().chain(self.intervals.as_ref().map(Intervals::task)).collect()
    }

    fn detach_in_child(&self) {
        self.recorder.log.detach_in_child();
    }
}

impl Callbacks for Counters {
    /// Event sources that exist already are asked for in a session of their own.
    fn profiler_attach_complete(&self) {
        for module in self.info.modules().unwrap_or_default() {
            self.declared(module).into_iter().for_each(|name| self.found.made(name));
        }
    }

    /// Before this the assembly has no name, and after this its event sources are made.
    fn module_attached_to_assembly(&self, module: ModuleId, _assembly: AssemblyId) {
        let names = self.functions.names();
        if let Some(intervals) = &self.intervals
            && names.assembly(&self.info, module).is_ok_and(|name| &*name != CORE_LIBRARY)
        {
            intervals.give_way(names);
        }
        for name in self.declared(module) {
            if self.pipe.want_next(&providers::source(&name)) {
                self.found.asked(name);
            } else {
                // The session is about to begin; a further session may still begin before the
                // source exists.
                self.found.made(name);
            }
        }
    }

    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
        if is_stopped() {
            return;
        }
        match self.provider(event.provider) {
            Some(Provider::Source(name)) if values::is_counter(event.metadata) => {
                if let Some(value) = CounterValue::of_event_source(event.data) {
                    self.recorder.record(&name, &value, None);
                }
            }
            Some(Provider::Meters) => {
                if let Some(event) = MeterEvent::read(event.event_id, event.data) {
                    self.meter_event(event);
                }
            }
            _ => {}
        }
    }

    fn event_pipe_provider_created(&self, provider: EventPipeProviderId) {
        let Ok(name) = self.info.event_pipe_provider_name(provider) else { return };
        if name == OF_RUNTIME {
            self.pipe.first_source_created();
        }
        self.gate.provider_created(&name);
        if providers::is_own(&name) {
            self.found.made(name);
        }
    }
}

/// Asks, now and then, for names that were found since the session began.
struct AskForMore {
    pipe: &'static EventPipe,
    found: Arc<Found>,
    gate: Arc<MeterGate>,
    writer: &'static ProcessWriter,
    rounds: u32,
    sessions: u32,
    /// Whether the recording says already that some names are missing.
    is_said: bool,
}

impl Task for AskForMore {
    fn slow_tick(&mut self, now_ns: u64) {
        self.rounds += 1;
        let is_time = self.sessions < AT_ONCE || self.rounds.is_multiple_of(ROUNDS);
        if !is_time || !self.pipe.is_open() {
            return;
        }
        let wanted = self.found.drain(self.gate.is_open(now_ns));
        if wanted.is_empty() {
            return;
        }
        if self.sessions < MOST_SESSIONS {
            self.sessions += 1;
            self.pipe.want_more(wanted);
        } else if !std::mem::replace(&mut self.is_said, true) {
            let text =
                "counters: event sources and meters that came late are missing, as too many have come one by one";
            self.writer.note(monotonic_ns(), text);
        }
    }
}
