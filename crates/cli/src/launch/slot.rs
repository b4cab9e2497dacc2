//! The runtime's profiler slot for the agent: the main slot, or, if another profiler has it, a slot
//! for notification-only profilers.

use std::env;
use std::ffi::OsString;
use std::path::Path;

use clrscope_contract::instruments::{Refusal, check_all, check_for_notification_only, of_notification_only};
use clrscope_contract::request::Request;

use super::environment::{OtherProfiler, agent_variables, notification_list, notification_variables};
use crate::errors::{Failure, shown};

/// A slot of the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    /// The main slot; there is only one.
    Main,
    /// A slot for notification-only profilers, which leave hooks and changed methods to the main
    /// profiler.
    NotificationOnly,
}

impl Slot {
    /// Returns the slot for a request in this process's environment, and the other profiler that
    /// has the main slot, if any.
    ///
    /// # Errors
    /// Where another profiler has the main slot, and the request needs it.
    pub(crate) fn choose(request: &Request) -> Result<(Self, Option<OtherProfiler>), Failure> {
        let Some(other) = OtherProfiler::find(|name| env::var_os(name)) else { return Ok((Self::Main, None)) };
        match refusal(request, false) {
            None => Ok((Self::NotificationOnly, Some(other))),
            Some(refusal) => Err(refused(&other, &refusal)),
        }
    }

    /// Variables that make every .NET program that has them load the agent into this slot.
    ///
    /// # Errors
    /// When the agent's path can't be passed to the runtime.
    pub(crate) fn variables(self, agent: &Path, request: &Request) -> Result<Vec<(String, OsString)>, Failure> {
        match self {
            Self::Main => Ok(agent_variables(agent, request)),
            Self::NotificationOnly => {
                let text = agent.to_str().filter(|text| !text.contains([';', '='])).ok_or_else(|| {
                    Failure::new(
                        format!("the runtime can't be given the path {}", shown(agent)),
                        "paths of notification-only profilers have neither ';' nor '=', and are UTF-8",
                        "set XDG_CACHE_HOME to a folder without them",
                    )
                })?;
                Ok(notification_variables(&notification_list(text, |name| env::var_os(name)), request))
            }
        }
    }
}

/// Reason why a request needs the main slot; `None` if it doesn't. `attached`: the agent attaches
/// to a running program.
pub(crate) fn refusal(request: &Request, attached: bool) -> Option<Refusal> {
    // Other errors were reported when the command line was parsed.
    check_all(request).and_then(|checked| check_for_notification_only(request, &checked, attached)).err()
}

/// Part of a sentence: the other profiler, which has the main slot, and the instruments that can be
/// recorded nonetheless.
pub(crate) fn left_by(other: &OtherProfiler) -> String {
    let names: Vec<_> = of_notification_only().map(|spec| spec.name).collect();
    format!(
        "another profiler for the runtime's main slot, {}; next to it, clrscope can record: {}",
        other.in_words(),
        names.join(", ")
    )
}

/// The alternative without the main slot, as the last part of a hint.
pub(crate) fn alternative(refusal: &Refusal) -> &str {
    refusal
        .hint
        .split_once(", or ")
        .filter(|(first, _)| first.starts_with("start "))
        .map_or(&refusal.hint, |(_, or)| or)
}

fn refused(other: &OtherProfiler, refusal: &Refusal) -> Failure {
    let what = format!("cannot record while the runtime's main slot is that of {}", other.in_words());
    Failure::new(what, &refusal.why, format!("unset {}, or {}", other.switch(), alternative(refusal)))
}
