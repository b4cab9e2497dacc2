//! The instruments, one module each.

pub(crate) mod calls;
pub(crate) mod events;
pub(crate) mod exceptions;
pub(crate) mod flow;

use std::sync::Arc;

use clrscope_recording::request::InstrumentRequest;

use crate::instrument::Instrument;
use crate::startup::Context;

/// Makes the instrument that was asked for.
///
/// # Errors
/// In words, when there is none of that name, an option is not understood, or it can't start.
pub(crate) fn make(request: &InstrumentRequest, context: &Context) -> Result<(Arc<dyn Instrument>, String), String> {
    match request.name.as_str() {
        "calls" => {
            let options = calls::Options::parse(request)?;
            let filled = options.to_string();
            Ok((Arc::new(calls::Calls::start(&options, context)?), filled))
        }
        "flow" => {
            let options = flow::Options::parse(request)?;
            let filled = options.to_string();
            Ok((Arc::new(flow::Flow::start(&options, context)?), filled))
        }
        "events" => {
            let options = events::Options::parse(request)?;
            let filled = options.to_string();
            Ok((Arc::new(events::Events::start(&options, context)?), filled))
        }
        "exceptions" => {
            let options = exceptions::Options::parse(request)?;
            let filled = options.to_string();
            Ok((Arc::new(exceptions::Exceptions::start(&options, context)?), filled))
        }
        name => Err(format!("there is no instrument '{name}'; known: calls, flow, events, exceptions")),
    }
}
