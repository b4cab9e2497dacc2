//! EventPipe inside the process: sessions that deliver the runtime's events to the profiler, and
//! the profiler's own events.

use clr_profiler_sys::info::{ICorProfilerInfo12, ICorProfilerInfo14};
use clr_profiler_sys::structs::{
    COR_PRF_EVENT_DATA, COR_PRF_EVENTPIPE_PARAM_DESC, COR_PRF_EVENTPIPE_PROVIDER_CONFIG, COR_PRF_FILTER_DATA,
};

use super::ProfilerInfo;
use crate::boundary::guard;
use crate::call_context::{outside_hooks, where_objects_may_move};
use crate::error::check;
use crate::text::{read_text, wide};
use crate::{EventPipeEventId, EventPipeProviderId, EventPipeSessionId, Result};

/// A provider whose events a session delivers.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by profilers, field by field; the runtime takes no more")]
pub struct ProviderConfig {
    /// Name, for instance `Microsoft-Windows-DotNETRuntime`.
    pub name: String,
    /// Kinds of events, as bits that the provider defines.
    pub keywords: u64,
    /// Level of detail: 1 critical, 2 errors, 3 warnings, 4 informational, 5 all.
    pub level: u32,
    /// A filter for the provider, as `key=value` pairs; `None` for no filter.
    pub filter: Option<String>,
}

/// Definition of one of the profiler's own events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "made by profilers, field by field; the runtime takes no more")]
pub struct EventDefinition {
    /// Name of the event.
    pub name: String,
    /// Number within the provider.
    pub id: u32,
    /// The keyword bits that select the event.
    pub keywords: u64,
    /// Version of the event.
    pub version: u32,
    /// Level of importance: 1 critical to 5 verbose.
    pub level: u32,
    /// Operation code: 0 nothing, 1 a start, 2 a stop.
    pub opcode: u8,
    /// Whether EventPipe stores the stack with the event.
    pub with_stack: bool,
    /// Fields: name and type (a `TypeCode` of .NET: 7 `short`, 9 `int`, 11 `long`, 18 `string`,
    /// ...).
    pub fields: Vec<(String, u32)>,
}

/// State of one of the profiler's own providers, when a session enables or disables it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ProviderState {
    /// Whether a session listens.
    pub is_enabled: bool,
    /// Highest level requested by a session.
    pub level: u8,
    /// Requested: events with any of these bits.
    pub any_keywords: u64,
    /// Requested: events with all of these bits.
    pub all_keywords: u64,
}

impl ProfilerInfo {
    /// Starts a session. The runtime delivers its events by
    /// [`event_pipe_event_delivered`](crate::Callbacks::event_pipe_event_delivered). Needs
    /// [`Events::EVENT_PIPE`](crate::Events::EVENT_PIPE). Not in hooks, nor in `initialize`. With
    /// `rundown`, the end of the session reports everything that was loaded earlier.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn event_pipe_start_session(&self, providers: &[ProviderConfig], rundown: bool) -> Result<EventPipeSessionId> {
        let method = "EventPipeStartSession";
        where_objects_may_move(method)?;
        let runtime = self.at_level::<ICorProfilerInfo12>(method)?;
        let texts: Vec<_> = providers.iter().map(texts).collect();
        let configs: Vec<_> = providers.iter().zip(&texts).map(|(provider, texts)| config(provider, texts)).collect();
        let mut session = 0;
        // SAFETY: an array of the length said, whose texts live through the call, and a valid
        // out-parameter.
        let answer = unsafe {
            runtime.EventPipeStartSession(configs.len() as u32, configs.as_ptr(), rundown.into(), &mut session)
        };
        check(answer, method)?;
        Ok(EventPipeSessionId(session as usize))
    }

    /// Adds a provider to a session. Not in hooks. Name the profiler's own providers at the start
    /// instead: a session does not enable them if they are added later (seen on .NET 8).
    ///
    /// # Errors
    /// The runtime's error.
    pub fn event_pipe_add_provider(&self, session: EventPipeSessionId, provider: &ProviderConfig) -> Result<()> {
        let method = "EventPipeAddProviderToSession";
        where_objects_may_move(method)?;
        let runtime = self.at_level::<ICorProfilerInfo12>(method)?;
        let texts = texts(provider);
        // SAFETY: the texts live through the call.
        let answer = unsafe { runtime.EventPipeAddProviderToSession(session.0 as u64, config(provider, &texts)) };
        check(answer, method)
    }

    /// Ends a session. Do this before a detach: an open session may deliver events afterwards. Not
    /// in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn event_pipe_stop_session(&self, session: EventPipeSessionId) -> Result<()> {
        let method = "EventPipeStopSession";
        where_objects_may_move(method)?;
        // SAFETY: a plain number.
        let answer = unsafe { self.at_level::<ICorProfilerInfo12>(method)?.EventPipeStopSession(session.0 as u64) };
        check(answer, method)
    }

    /// A provider's name. Callable in `event_pipe_event_delivered`, but it is better to query it
    /// once per provider.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn event_pipe_provider_name(&self, provider: EventPipeProviderId) -> Result<String> {
        let method = "EventPipeGetProviderInfo";
        outside_hooks(method)?;
        let runtime = self.at_level::<ICorProfilerInfo12>(method)?;
        read_text(method, |capacity, needed, buffer| {
            // SAFETY: valid out-parameters.
            unsafe { runtime.EventPipeGetProviderInfo(provider.0, capacity, needed, buffer) }
        })
    }

    /// Creates one of the profiler's own providers. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn event_pipe_create_provider(&self, name: &str) -> Result<EventPipeProviderId> {
        let method = "EventPipeCreateProvider";
        where_objects_may_move(method)?;
        let runtime = self.at_level::<ICorProfilerInfo12>(method)?;
        let (name, mut provider) = (wide(name), 0);
        // SAFETY: a zero-terminated name and a valid out-parameter.
        check(unsafe { runtime.EventPipeCreateProvider(name.as_ptr(), &mut provider) }, method)?;
        Ok(EventPipeProviderId(provider))
    }

    /// As [`event_pipe_create_provider`](Self::event_pipe_create_provider). `changed` is called
    /// when a session enables or disables the provider, on any thread. From .NET 8 on. This crate
    /// supports up to eight such functions per process.
    ///
    /// # Errors
    /// The runtime's error; a refusal with a reason for the ninth function.
    pub fn event_pipe_create_provider_with(
        &self,
        name: &str,
        changed: impl Fn(ProviderState) + Send + Sync + 'static,
    ) -> Result<EventPipeProviderId> {
        let method = "EventPipeCreateProvider2";
        where_objects_may_move(method)?;
        let runtime = self.at_level::<ICorProfilerInfo14>(method)?;
        let callback = listeners::keep(Box::new(changed)).ok_or_else(|| {
            crate::Error::refused(method, "eight providers with a function of their own are there already")
        })?;
        let (name, mut provider) = (wide(name), 0);
        // SAFETY: a zero-terminated name, a function that is never unloaded, and a valid
        // out-parameter.
        check(unsafe { runtime.EventPipeCreateProvider2(name.as_ptr(), Some(callback), &mut provider) }, method)?;
        Ok(EventPipeProviderId(provider))
    }

    /// Defines an event of one of the profiler's own providers. Not in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn event_pipe_define_event(
        &self,
        provider: EventPipeProviderId,
        event: &EventDefinition,
    ) -> Result<EventPipeEventId> {
        let method = "EventPipeDefineEvent";
        where_objects_may_move(method)?;
        let runtime = self.at_level::<ICorProfilerInfo12>(method)?;
        let name = wide(&event.name);
        let names: Vec<_> = event.fields.iter().map(|(name, _)| wide(name)).collect();
        let field = |((_, kind), name): (&(String, u32), &Vec<u16>)| COR_PRF_EVENTPIPE_PARAM_DESC {
            r#type: *kind,
            element_type: 0,
            name: name.as_ptr(),
        };
        let fields: Vec<_> = event.fields.iter().zip(&names).map(field).collect();
        let mut defined = 0;
        // SAFETY: texts and an array of the length said that live through the call, and a valid
        // out-parameter.
        let answer = unsafe {
            runtime.EventPipeDefineEvent(
                provider.0,
                name.as_ptr(),
                event.id,
                event.keywords,
                event.version,
                event.level,
                event.opcode,
                event.with_stack.into(),
                fields.len() as u32,
                fields.as_ptr(),
                &mut defined,
            )
        };
        check(answer, method)?;
        Ok(EventPipeEventId(defined))
    }

    /// Writes an event: the bytes of each field in order, strings as UTF-16 with a final zero. Not
    /// in hooks.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn event_pipe_write_event(&self, event: EventPipeEventId, fields: &[&[u8]]) -> Result<()> {
        let method = "EventPipeWriteEvent";
        outside_hooks(method)?;
        let runtime = self.at_level::<ICorProfilerInfo12>(method)?;
        let piece =
            |bytes: &&[u8]| COR_PRF_EVENT_DATA { ptr: bytes.as_ptr() as u64, size: bytes.len() as u32, reserved: 0 };
        let pieces: Vec<_> = fields.iter().map(piece).collect();
        let no_activity = std::ptr::null();
        // SAFETY: an array of the length said whose bytes live through the call; no activities.
        let answer = unsafe {
            runtime.EventPipeWriteEvent(event.0, pieces.len() as u32, pieces.as_ptr(), no_activity, no_activity)
        };
        check(answer, method)
    }
}

fn texts(provider: &ProviderConfig) -> (Vec<u16>, Option<Vec<u16>>) {
    (wide(&provider.name), provider.filter.as_deref().map(wide))
}

fn config(provider: &ProviderConfig, texts: &(Vec<u16>, Option<Vec<u16>>)) -> COR_PRF_EVENTPIPE_PROVIDER_CONFIG {
    COR_PRF_EVENTPIPE_PROVIDER_CONFIG {
        provider_name: texts.0.as_ptr(),
        keywords: provider.keywords,
        logging_level: provider.level,
        filter_data: texts.1.as_ref().map_or(std::ptr::null(), Vec::as_ptr),
    }
}

/// The runtime calls a function pointer without data of the profiler, so there is one function per
/// listener.
mod listeners {
    use std::ffi::c_void;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use clr_profiler_sys::function_pointers::EventPipeProviderCallback;

    use super::{COR_PRF_FILTER_DATA, ProviderState, guard};

    type Listener = Box<dyn Fn(ProviderState) + Send + Sync>;

    static LISTENERS: [OnceLock<Listener>; 8] = [const { OnceLock::new() }; 8];
    static TAKEN: AtomicUsize = AtomicUsize::new(0);

    const FUNCTIONS: [EventPipeProviderCallback; 8] = [
        on_change::<0>,
        on_change::<1>,
        on_change::<2>,
        on_change::<3>,
        on_change::<4>,
        on_change::<5>,
        on_change::<6>,
        on_change::<7>,
    ];

    pub(super) fn keep(listener: Listener) -> Option<EventPipeProviderCallback> {
        let slot = TAKEN
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| (taken < LISTENERS.len()).then_some(taken + 1));
        let slot = slot.ok()?;
        LISTENERS[slot].set(listener).ok()?;
        Some(FUNCTIONS[slot])
    }

    unsafe extern "system" fn on_change<const SLOT: usize>(
        _source: *const u8,
        is_enabled: u32,
        level: u8,
        any_keywords: u64,
        all_keywords: u64,
        _filter: *mut COR_PRF_FILTER_DATA,
        _data: *mut c_void,
    ) {
        if let Some(listener) = LISTENERS[SLOT].get() {
            let state = ProviderState { is_enabled: is_enabled != 0, level, any_keywords, all_keywords };
            guard((), || listener(state));
        }
    }
}
