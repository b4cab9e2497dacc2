//! The runtime's checks of the events and actions that a profiler requests.

use clr_profiler::{Events, HResult};

use super::code::ReJitRequest;
use super::threads::{adopt, current};
use super::world::{Phase, Thread, World};

/// Error codes of the runtime that have no constant in the framework.
const IRREVERSIBLE_INSTRUMENTATION: HResult = HResult(0x8013_1370_u32 as i32);
const IMMUTABLE_FLAGS_SET: HResult = HResult(0x8013_1372_u32 as i32);
const CALL_ONLY_FROM_INIT: HResult = HResult(0x8013_1356_u32 as i32);

impl World {
    /// Sets the requested events. Makes the same checks in the same order as the runtime.
    pub(super) fn set_events(&mut self, wanted: Events) -> Result<(), HResult> {
        let at_start = self.phase != Phase::Running && !self.is_attach;
        let (now, added) = (self.events, wanted - self.events);
        if self.is_notification_only && !(wanted - Events::ALLOWED_FOR_NOTIFICATION).is_empty() {
            return Err(HResult::INVALID_ARGUMENT);
        }
        if !at_start && wanted.intersection(Events::IMMUTABLE) != now.intersection(Events::IMMUTABLE) {
            return Err(HResult::FAIL);
        }
        if self.is_attach && !(wanted - Events::ALLOWED_AFTER_ATTACH).is_empty() {
            return Err(HResult::UNSUPPORTED_FOR_ATTACH);
        }
        let keeps_hooks =
            wanted.contains(Events::ENTER_LEAVE) && wanted.intersects(Events::SLOW_HOOKS) == self.with_info;
        if at_start && self.entries.is_some() && !keeps_hooks {
            return Err(HResult::INCONSISTENT_WITH_FLAGS);
        }
        if self.phase == Phase::Running && added.contains(Events::GC) {
            return Err(HResult::CONCURRENT_GC_NOT_PROFILABLE);
        }
        self.events = wanted;
        Ok(())
    }

    /// Handles a request to recompile methods.
    pub(super) fn request(&mut self, request: ReJitRequest) -> Result<(), HResult> {
        if !self.events.contains(Events::ENABLE_REJIT) {
            return Err(HResult::REJIT_NOT_ENABLED);
        }
        self.code.requests.push(request);
        Ok(())
    }

    /// Turns the profiler's own thread into a managed thread.
    pub(super) fn adopt(&mut self) -> Result<(), HResult> {
        if !self.events.contains(Events::ENABLE_REJIT) {
            return Err(HResult::REJIT_NOT_ENABLED);
        }
        if current().is_none() {
            let last = self.threads.last_key_value().map_or(0, |(number, _)| *number);
            self.threads.insert(last + 1, Thread::default());
            adopt(last + 1);
        }
        Ok(())
    }

    /// Handles the profiler's request to detach. After it, all calls of the profiler fail.
    pub(super) fn detach(&mut self) -> Result<(), HResult> {
        if self.entries.is_some() {
            return Err(IRREVERSIBLE_INSTRUMENTATION);
        }
        if self.events.intersects(Events::IMMUTABLE) {
            return Err(IMMUTABLE_FLAGS_SET);
        }
        self.phase = Phase::Detaching;
        Ok(())
    }

    /// Whether hooks of this kind may be registered now.
    pub(super) fn may_set_hooks(&self, with_info: bool, any: bool) -> Result<(), HResult> {
        self.only_while_initializing()?;
        if !any {
            return Err(HResult::INVALID_ARGUMENT);
        }
        if self.events.intersects(Events::SLOW_HOOKS) != with_info {
            return Err(HResult::INCONSISTENT_WITH_FLAGS);
        }
        Ok(())
    }

    pub(super) fn only_while_initializing(&self) -> Result<(), HResult> {
        if self.is_attach {
            return Err(HResult::UNSUPPORTED_FOR_ATTACH);
        }
        if self.phase == Phase::Initializing { Ok(()) } else { Err(CALL_ONLY_FROM_INIT) }
    }
}
