//! The instruments, one module each.

pub(crate) mod calls;
pub(crate) mod events;
pub(crate) mod exceptions;
pub(crate) mod flow;

use std::sync::Arc;

use clrscope_contract::request::InstrumentRequest;
use clrscope_recording::model::Clock;

use crate::hooks::{EntryPoints, HookNeed};
use crate::instrument::{Context, Instrument};
use exceptions::Exceptions;

/// An instrument that has started.
pub(crate) struct Started {
    pub(crate) instrument: Arc<dyn Instrument>,
    /// The same, if it is this one.
    pub(crate) exceptions: Option<Arc<Exceptions>>,
    /// Its options with every default filled in.
    pub(crate) options: String,
}

/// Makes the instrument that was asked for.
///
/// # Errors
/// In words, when there is none of that name, an option is not understood, or it can't start.
pub(crate) fn make(request: &InstrumentRequest, context: &Context) -> Result<Started, String> {
    match request.name.as_str() {
        "calls" => {
            let options = calls::Options::parse(request)?;
            Ok(Started::new(calls::Calls::start(&options, context)?, options))
        }
        "flow" => {
            let options = flow::Options::parse(request)?;
            Ok(Started::new(flow::Flow::start(&options, context)?, options))
        }
        "events" => {
            let options = events::Options::parse(request)?;
            Ok(Started::new(events::Events::start(&options, context)?, options))
        }
        "exceptions" => {
            let options = exceptions::Options::parse(request)?;
            let exceptions = Arc::new(Exceptions::start(&options, context)?);
            let options = options.to_string();
            Ok(Started { instrument: Arc::clone(&exceptions) as _, exceptions: Some(exceptions), options })
        }
        name => Err(format!("there is no instrument '{name}'; known: calls, flow, events, exceptions")),
    }
}

impl Started {
    fn new(instrument: impl Instrument + 'static, options: impl ToString) -> Self {
        Self { instrument: Arc::new(instrument), exceptions: None, options: options.to_string() }
    }
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
