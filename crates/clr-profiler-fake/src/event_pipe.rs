//! EventPipe of the fake runtime: sessions and providers. The test plays the events of a session.

use clr_profiler::HResult;
use clr_profiler_sys::structs::COR_PRF_EVENTPIPE_PROVIDER_CONFIG;

use super::answer::read_text as text;

/// A session that the profiler started.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FakeSession {
    /// Names of the providers, with keywords and level.
    pub providers: Vec<(String, u64, u32)>,
    /// Whether the session is open: the profiler has not stopped it.
    pub is_open: bool,
}

/// First identifier of the profiler's own providers. Sessions count from 1.
const PROVIDERS: usize = 0x6000_0000;
/// The provider of the runtime's own events.
pub(super) const RUNTIMES: usize = 1;
/// Name of the provider of the runtime's own events.
const NAME_OF_RUNTIMES: &str = "Microsoft-Windows-DotNETRuntime";

#[derive(Default)]
pub(super) struct EventPipe {
    pub(super) sessions: Vec<FakeSession>,
    providers: Vec<String>,
}

impl EventPipe {
    pub(super) fn start(&mut self, providers: Vec<(String, u64, u32)>) -> u64 {
        self.sessions.push(FakeSession { providers, is_open: true });
        self.sessions.len() as u64
    }

    pub(super) fn session(&mut self, id: u64) -> Result<&mut FakeSession, HResult> {
        let index = (id as usize).checked_sub(1).ok_or(HResult::INVALID_ARGUMENT)?;
        self.sessions.get_mut(index).filter(|session| session.is_open).ok_or(HResult::INVALID_ARGUMENT)
    }

    pub(super) fn create_provider(&mut self, name: String) -> usize {
        self.providers.push(name);
        PROVIDERS + self.providers.len()
    }

    pub(super) fn provider(&self, id: usize) -> Result<&str, HResult> {
        if id == RUNTIMES {
            return Ok(NAME_OF_RUNTIMES);
        }
        let index = id.checked_sub(PROVIDERS + 1).ok_or(HResult::INVALID_ARGUMENT)?;
        self.providers.get(index).map(String::as_str).ok_or(HResult::INVALID_ARGUMENT)
    }
}

/// Name, keywords and level of a provider.
///
/// # Safety
/// The name must be null or a terminated text.
pub(super) unsafe fn provider(config: &COR_PRF_EVENTPIPE_PROVIDER_CONFIG) -> (String, u64, u32) {
    // SAFETY: the caller's promise.
    (unsafe { text(config.provider_name) }, config.keywords, config.logging_level)
}
