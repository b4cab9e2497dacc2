//! Setup of a recording: the events and hooks that the agent asks the runtime for.

use std::num::NonZeroUsize;
use std::sync::Arc;

use clr_profiler::{Events, FunctionId, Hooks, Mapped, RawHooks, Setup};
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_stacks::inlined::DebugEvents;
use clrscope_recording::writer::monotonic_ns;

use crate::services::context::Beginning;
use crate::startup::Running;

/// Events that the runtime does not report to an attached profiler, and that instruments can do
/// without.
const NOT_AFTER_ATTACH: [(Events, &str); 3] = [
    (Events::CLR_EXCEPTIONS, "which exceptions it catches itself"),
    (Events::CACHE_SEARCHES, "searches for precompiled code"),
    (Events::PINNED_OBJECT_ALLOCATED, "allocations of pinned objects"),
];

/// Removes the events that the runtime does not report to an attached profiler, and says so in the
/// recording.
fn allowed_after_attach(running: &Running, events: Events) -> Events {
    NOT_AFTER_ATTACH.iter().filter(|(event, _)| events.contains(*event)).fold(events, |events, (event, what)| {
        let text =
            format!("attached: the runtime does not report {what} to a profiler that was not there when it started");
        running.writer.note(monotonic_ns(), &text);
        events - *event
    })
}

/// Events that the runtime reports only to the main profiler, and that instruments can do without.
const OF_MAIN_PROFILER: [(Events, &str); 1] = [(Events::PINNED_OBJECT_ALLOCATED, "allocations of pinned objects")];

/// Removes the events that a notification-only profiler does not get. The recording names them, and
/// says that the agent was notification-only.
fn allowed_as_notification_only(running: &Running, events: Events) -> Events {
    let note = |text: &str| running.writer.note(monotonic_ns(), &format!("notification-only: {text}"));
    note(&match main_profiler() {
        Some(other) => format!("the agent left the runtime's main slot to {other}"),
        None => "the agent left the runtime's main slot to other profilers".to_owned(),
    });
    OF_MAIN_PROFILER.iter().filter(|(event, _)| events.contains(*event)).fold(events, |events, (event, what)| {
        note(&format!("the runtime reports {what} only to the main profiler"));
        events - *event
    })
}

/// The profiler that the environment variables of this process name, by its library or by its
/// class.
fn main_profiler() -> Option<String> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    variable("CORECLR_ENABLE_PROFILING").filter(|value| value == "1")?;
    ["CORECLR_PROFILER_PATH_64", "CORECLR_PROFILER_PATH", "CORECLR_PROFILER"].into_iter().find_map(variable)
}

/// The setup of a recording: the events and the hooks that it needs.
pub(crate) fn setup(running: &'static Running, beginning: Beginning) -> Setup {
    // Names are looked up and forgotten by these whatever the instruments want.
    let names = Events::MODULE_LOADS | Events::DYNAMIC_FUNCTION_UNLOADS | Events::THREADS;
    let debug = running.debug_events.as_ref().map_or(Events::NONE, DebugEvents::events);
    let events = Events::of_parts([running.instruments.events(), running.code_marks.events(), names, debug]);
    let events = match beginning {
        Beginning::Launch => events,
        Beginning::Attach => allowed_after_attach(running, events),
    };
    let setup = Setup::new(match running.is_notification_only {
        false => events,
        true => allowed_as_notification_only(running, events),
    });
    let slow = running.instruments.slow_hooks();
    let (events, has_hooks) = (setup.events(), running.hooks.is_some() || slow.is_some());
    log(Level::Info, || format!("events {events:?}, {}", if has_hooks { "hooks" } else { "no hooks" }));
    let mapper = Arc::new(move |function| map(running, function));
    let hooks = match (slow, running.hooks) {
        (Some(slow), _) => Hooks::with_info(slow, mapper),
        (None, Some(hooks)) => {
            let points = (hooks.entry_points)();
            // SAFETY: the entry points follow the runtime's convention (see `hooks`), and the
            // library is linked so that it is never unloaded.
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
