//! The profiler that the runtime sees: starts the recording and dispatches callbacks to the instruments.

use std::num::NonZeroUsize;
use std::sync::Arc;

use clr_profiler::{
    Error, Events, FunctionId, HResult, Hooks, Mapped, Profiler, ProfilerInfo, RawHooks, Result, Setup,
};
use clrscope_contract::request::AGENT_VARIABLE;
use clrscope_recording::writer::monotonic_ns;

use crate::services::context::Beginning;
use crate::services::developer_log::{Level, log};
use crate::startup::{self, Running};

/// The agent.
pub struct Agent {
    pub(crate) running: &'static Running,
    beginning: Beginning,
}

clr_profiler::compose_callbacks! { Agent { running } }

impl Agent {
    pub(crate) fn start(info: &ProfilerInfo, given: &str, beginning: Beginning) -> Result<(Self, Setup)> {
        let running = startup::start(info, given, beginning).map_err(|why| {
            let refused = Error::refused("clrscope", why);
            match beginning == Beginning::Attach && startup::needs_launch(given) {
                true => refused.with_hresult(HResult::UNSUPPORTED_FOR_ATTACH),
                false => refused,
            }
        })?;
        let running: &'static Running = Box::leak(Box::new(running));
        crate::process::fork::prepare(|| running.detach_in_child());
        running.instruments.begin(beginning);
        Ok((Self { running, beginning }, setup(running, beginning)))
    }

    /// Stops recording; whether nothing is recorded any more when this returns, within ten seconds. Callbacks are
    /// still followed, so that names and identifiers stay right, and hooks stay where they are.
    pub fn stop(&self) -> bool {
        self.running.helper.stop_recording()
    }

    /// Starts recording again after [`stop`](Self::stop); whether that came into effect, within ten seconds. Calls that were
    /// entered meanwhile are not known: what they call stands at the root of their threads.
    pub fn start_again(&self) -> bool {
        self.running.helper.start_again()
    }
}

/// Events that the runtime does not report to an attached profiler, and of which an instrument can do without.
const NOT_AFTER_ATTACH: [(Events, &str); 3] = [
    (Events::CLR_EXCEPTIONS, "which exceptions it catches itself"),
    (Events::CACHE_SEARCHES, "searches for precompiled code"),
    (Events::PINNED_OBJECT_ALLOCATED, "allocations of pinned objects"),
];

/// The events without those that the runtime does not report to an attached profiler, which the recording says.
fn allowed_after_attach(running: &Running, events: Events) -> Events {
    NOT_AFTER_ATTACH.iter().filter(|(event, _)| events.contains(*event)).fold(events, |events, (event, what)| {
        let text =
            format!("attached: the runtime does not report {what} to a profiler that was not there when it started");
        running.writer.note(monotonic_ns(), &text);
        events - *event
    })
}

fn setup(running: &'static Running, beginning: Beginning) -> Setup {
    // Names are looked up and forgotten by these whatever the instruments want.
    let names = Events::MODULE_LOADS | Events::DYNAMIC_FUNCTION_UNLOADS | Events::THREADS;
    let events = Events::of_parts([running.instruments.events(), names]);
    let setup = Setup::new(match beginning {
        Beginning::Launch => events,
        Beginning::Attach => allowed_after_attach(running, events),
    });
    let slow = running.instruments.slow_hooks();
    let (events, has_hooks) = (setup.events(), running.hooks.is_some() || slow.is_some());
    log(Level::Info, || format!("events {events:?}, {}", if has_hooks { "hooks" } else { "no hooks" }));
    let mapper = Arc::new(move |function| map(running, function));
    let hooks = match (slow, running.hooks) {
        (Some(slow), _) => Hooks::with_info(slow, mapper),
        (None, Some(hooks)) => {
            let points = (hooks.entry_points)();
            // SAFETY: the entry points follow the runtime's convention (see `hooks`), and the library is
            // linked so that it is never unloaded.
            Hooks::raw(unsafe { RawHooks::new(points.enter, points.leave, points.tailcall) }, mapper)
        }
        (None, None) => return setup,
    };
    let setup = setup.with_hooks(hooks);
    if running.functions.names_functions() { setup.with_inlining_decisions() } else { setup }
}

/// Decision whether a function gets hooks, and under which index.
fn map(running: &Running, function: FunctionId) -> Mapped {
    let known = running.functions.get(function);
    let client = match known.wanted {
        true => running.instruments.mapped(function, known.index),
        false => running.instruments.needs(function, known.index).unwrap_or(0),
    };
    NonZeroUsize::new(client).map_or(Mapped::Skip, |client| Mapped::Hook(client.into()))
}

impl Profiler for Agent {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let given = std::env::var(AGENT_VARIABLE).unwrap_or_default();
        Self::start(info, &given, Beginning::Launch)
    }

    /// The client data is the request, as the environment variable has it otherwise. Instruments with hooks are refused: the
    /// runtime takes hooks at its start only.
    fn initialize_for_attach(info: &ProfilerInfo, client_data: &[u8]) -> Result<(Self, Setup)> {
        let given = std::str::from_utf8(client_data).map_err(|error| {
            Error::refused("clrscope", format!("the request is not UTF-8: {error}"))
                .with_hresult(HResult::INVALID_ARGUMENT)
        })?;
        Self::start(info, given, Beginning::Attach)
    }

    fn setup_refused(&self, error: &Error) {
        log(Level::Error, || format!("the runtime refused the setup: {error}"));
        self.running.writer.note(monotonic_ns(), &format!("the runtime refused the setup: {error}"));
        if self.beginning == Beginning::Attach {
            self.running.refused();
        }
    }
}
