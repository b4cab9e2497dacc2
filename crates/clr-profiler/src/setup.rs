//! Setup of a profiler: events, hooks and compilation flags, and checks for combinations that the
//! runtime does not support.

use std::sync::Arc;

use crate::boundary::guard;
use crate::call_stacks::FollowExceptions;
use crate::hooks::{FunctionMapper, Hooks};
use crate::{CallObserver, CallStacks, Callbacks, Error, Events, HResult, ProfilerInfo, Result};

/// Setup that [`Profiler::initialize`](crate::Profiler::initialize) returns: events, hooks and
/// compilation flags.
///
/// ```
/// use clr_profiler::{Events, Setup};
/// let setup = Setup::new(Events::MODULE_LOADS | Events::EXCEPTIONS).without_tiered_compilation();
/// assert!(setup.check().is_ok());
/// ```
#[derive(Default)]
#[must_use = "the framework learns of it where initialize returns it"]
pub struct Setup {
    events: Events,
    hooks: Option<Hooks>,
    stacks: Option<Arc<dyn FollowExceptions>>,
    /// Number of times that hooks were set; more than once is refused.
    hooks_given: u32,
}

impl Setup {
    /// Setup with `events` and nothing else.
    pub fn new(events: Events) -> Self {
        Self { events, ..Self::default() }
    }

    /// Adds hooks at enter, leave and tail call. The runtime then refuses precompiled code and
    /// compiles everything itself.
    pub fn with_hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = Some(hooks);
        self.hooks_given += 1;
        self
    }

    /// Adds call stacks with their observer, for the functions that `mapper` chooses. This adds
    /// hooks, and exception callbacks that keep the call stacks correct. The framework passes
    /// exception callbacks to the call stacks before it calls the profiler's own.
    pub fn with_call_stacks<O: CallObserver>(
        mut self,
        stacks: Arc<CallStacks<O>>,
        mapper: Arc<dyn FunctionMapper>,
    ) -> Self {
        self.stacks = Some(stacks.clone());
        self.with_hooks(Hooks::safe(stacks, mapper)).with_events(Events::EXCEPTIONS)
    }

    /// Adds events to the setup.
    pub fn with_events(mut self, events: Events) -> Self {
        self.events |= events;
        self
    }

    /// Disables inlining, so that each call in the source is a real call.
    pub fn without_inlining(self) -> Self {
        self.with_events(Events::DISABLE_INLINING)
    }

    /// Makes the compiler call [`jit_inlining`](crate::Callbacks::jit_inlining) before it inlines a
    /// method. The runtime does this only for a profiler that receives the compilation events.
    pub fn with_inlining_decisions(self) -> Self {
        self.with_events(Events::JIT_COMPILATION)
    }

    /// Makes the compiler generate code as for debugging.
    pub fn without_optimization(self) -> Self {
        self.with_events(Events::DISABLE_OPTIMIZATIONS)
    }

    /// Disables tiered compilation: each method is compiled once.
    pub fn without_tiered_compilation(self) -> Self {
        self.with_events(Events::DISABLE_TIERED_COMPILATION)
    }

    /// The events that the runtime will get, including those that the hooks need.
    #[must_use]
    pub fn events(&self) -> Events {
        let Some(hooks) = &self.hooks else { return self.events };
        let events = self.events | Events::ENTER_LEAVE | hooks.mapper.needs();
        if hooks.are_slow() { events | Events::SLOW_HOOKS } else { events }
    }

    /// The hooks, if the setup has any.
    #[must_use]
    pub fn hooks(&self) -> Option<&Hooks> {
        self.hooks.as_ref()
    }

    pub(crate) fn into_hooks(self) -> Option<Hooks> {
        self.hooks
    }

    pub(crate) fn stacks(&self) -> Option<Arc<dyn FollowExceptions>> {
        self.stacks.clone()
    }

    /// Checks whether the runtime supports this setup for a profiler loaded at start.
    ///
    /// # Errors
    /// A refusal with a sentence that names the unsupported combination.
    pub fn check(&self) -> Result<()> {
        let events = self.events();
        let refuse = |reason: String| Err(Error::refused("Setup", reason));
        let slow = self.hooks.as_ref().is_some_and(Hooks::are_slow);
        if events.intersects(Events::SLOW_HOOKS) && !slow {
            let flags = events.intersection(Events::SLOW_HOOKS);
            return refuse(format!(
                "{flags} needs hooks with information, Hooks::with_info: the runtime refuses others then"
            ));
        }
        if self.hooks_given > 1 {
            return refuse("hooks are given more than once, and the runtime calls one set of them".into());
        }
        if events.contains(Events::ENTER_LEAVE) && self.hooks.is_none() {
            return refuse("ENTER_LEAVE is set but there are no hooks to call".into());
        }
        if self.hooks.is_some() && events.contains(Events::USE_PROFILE_IMAGES) {
            return refuse("hooks and USE_PROFILE_IMAGES exclude each other: hooks refuse precompiled code".into());
        }
        events.check_alone("Setup")
    }

    /// Checks whether the runtime supports this setup for a profiler that attaches to a running
    /// program.
    ///
    /// # Errors
    /// A refusal with a sentence that names the part that attaching does not allow.
    pub fn check_for_attach(&self) -> Result<()> {
        self.check_allowed(Events::ALLOWED_AFTER_ATTACH, "a profiler that attaches to a running program")
            .map_err(|error| error.with_hresult(HResult::UNSUPPORTED_FOR_ATTACH))
    }

    /// Checks whether the runtime supports this setup for a notification-only profiler alongside
    /// the main profiler.
    ///
    /// # Errors
    /// A refusal with a sentence that names the part that such a profiler may not have.
    pub fn check_for_notification_only(&self) -> Result<()> {
        self.check_allowed(Events::ALLOWED_FOR_NOTIFICATION, "a notification-only profiler")
    }

    /// Reactivates a profiler that the runtime refused to [detach](ProfilerInfo::request_detach)
    /// and that has had no events since. Checks the setup as at an attach, sets its events, and
    /// calls [`profiler_attach_complete`](Callbacks::profiler_attach_complete) of `callbacks` on
    /// this thread, as a callback. Other callbacks may come as soon as the events are set, so
    /// `callbacks` must be ready to receive them. Call it on an [`OwnThread`](crate::OwnThread).
    ///
    /// # Errors
    /// A refusal if attaching does not allow a part of the setup, and the runtime's errors about
    /// events: [`Events::GC`] can be set at the first attach only. On an error nothing has changed.
    pub fn attach_again(&self, info: &ProfilerInfo, callbacks: &dyn Callbacks) -> Result<()> {
        self.check_for_attach()?;
        let _under_way = info.callback_begins();
        info.set_events(self.events())?;
        guard((), || callbacks.profiler_attach_complete());
        Ok(())
    }

    fn check_allowed(&self, allowed: Events, who: &str) -> Result<()> {
        let refused = self.events() - allowed;
        if !refused.is_empty() {
            return Err(Error::refused("Setup", format!("{who} can't have {refused}")));
        }
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallHooks, CallerSp, ClientId, Mapped};

    struct Nothing;
    impl CallHooks for Nothing {
        fn enter(&self, _id: ClientId, _sp: CallerSp) {}
        fn leave(&self, _id: ClientId, _sp: CallerSp) {}
        fn tailcall(&self, _id: ClientId, _sp: CallerSp) {}
    }

    fn hooked(events: Events) -> Setup {
        Setup::new(events).with_hooks(Hooks::safe(Arc::new(Nothing), Arc::new(|_| Mapped::Skip)))
    }

    fn refusal(checked: Result<()>) -> String {
        checked.expect_err("is refused").to_string()
    }

    #[test]
    fn hooks_bring_the_event_they_need() {
        assert!(hooked(Events::NONE).events().contains(Events::ENTER_LEAVE));
        assert!(hooked(Events::EXCEPTIONS).without_inlining().without_tiered_compilation().check().is_ok());
    }

    #[test]
    fn what_cannot_be_combined_is_refused_in_a_sentence() {
        assert!(refusal(Setup::new(Events::ENTER_LEAVE).check()).contains("no hooks"));
        assert!(refusal(hooked(Events::ENABLE_FUNCTION_ARGS).check()).contains("ENABLE_FUNCTION_ARGS"));
        assert!(refusal(Setup::new(Events::OBJECT_ALLOCATED).check()).contains("ENABLE_OBJECT_ALLOCATED"));
        let twice = hooked(Events::NONE).with_hooks(Hooks::safe(Arc::new(Nothing), Arc::new(|_| Mapped::Skip)));
        assert!(refusal(twice.check()).contains("more than once"));
        assert!(refusal(Setup::new(Events::GC | Events::BASIC_GC).check()).contains("exclude"));
    }

    #[test]
    fn attach_and_notification_only_allow_less() {
        let calls = hooked(Events::EXCEPTIONS).without_inlining();
        let refused = refusal(calls.check_for_attach());
        assert!(refused.contains("ENTER_LEAVE | DISABLE_INLINING") && !refused.contains("EXCEPTIONS"), "{refused}");
        let refused = refusal(calls.check_for_notification_only());
        assert!(refused.contains("ENTER_LEAVE") && !refused.contains("DISABLE_INLINING"), "{refused}");
        assert!(Setup::new(Events::EXCEPTIONS | Events::THREADS).check_for_attach().is_ok());
    }
}
