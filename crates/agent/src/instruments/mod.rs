//! The instruments, one module each.

pub(crate) mod calls;
pub(crate) mod events;
pub(crate) mod exceptions;
pub(crate) mod flow;

use std::sync::Arc;

use clrscope_recording::model::Clock;
use clrscope_recording::request::InstrumentRequest;

use crate::hooks::{EntryPoints, HookNeed};
use crate::instrument::{Context, Instrument};

/// Makes the instrument that was asked for.
///
/// # Errors
/// In words, when there is none of that name, an option is not understood, or it can't start.
pub(crate) fn make(request: &InstrumentRequest, context: &Context) -> Result<(Arc<dyn Instrument>, String), String> {
    match request.name.as_str() {
        "calls" => started(calls::Options::parse(request)?, |options| calls::Calls::start(options, context)),
        "flow" => started(flow::Options::parse(request)?, |options| flow::Flow::start(options, context)),
        "events" => started(events::Options::parse(request)?, |options| events::Events::start(options, context)),
        "exceptions" => {
            started(exceptions::Options::parse(request)?, |options| exceptions::Exceptions::start(options, context))
        }
        name => Err(format!("there is no instrument '{name}'; known: calls, flow, events, exceptions")),
    }
}

/// The instrument, and its options with every default filled in.
fn started<O: ToString, I: Instrument + 'static>(
    options: O,
    start: impl FnOnce(&O) -> Result<I, String>,
) -> Result<(Arc<dyn Instrument>, String), String> {
    Ok((Arc::new(start(&options)?), options.to_string()))
}

/// The entry points that do everything the instruments want.
pub(crate) fn entry_points(needs: impl IntoIterator<Item = HookNeed>) -> Option<EntryPoints> {
    let (mut clock, mut has_flow, mut has_arguments) = (None, false, false);
    for need in needs {
        match need {
            HookNeed::Calls(wanted) => clock = Some(wanted),
            HookNeed::Flow => has_flow = true,
            HookNeed::Arguments => has_arguments = true,
        }
    }
    if has_arguments {
        return Some(exceptions::hooks::entry_points(clock.is_some()));
    }
    if clock.is_some() && has_flow {
        flow::values::with_calls();
    }
    match (clock, has_flow) {
        (None, false) => None,
        (None, true) => Some(flow::hooks::alone()),
        (Some(Clock::Sampled), false) => Some(calls::hooks::sampled()),
        (Some(Clock::Sampled), true) => Some(flow::hooks::sampled()),
        (Some(Clock::Tsc), false) => Some(calls::hooks::tsc()),
        (Some(Clock::Tsc), true) => Some(flow::hooks::tsc()),
    }
}
