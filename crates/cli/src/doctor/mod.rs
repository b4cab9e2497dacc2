//! Checks what works on this machine and what does not, each with a fix. The checks change nothing.

mod as_user;
mod machine;
mod place;
mod process;
mod runtimes;
mod trial;
mod variables;

pub(crate) use as_user::doctor_as;
pub(crate) use machine::little_address_space;
pub(crate) use process::checks_of;

/// Outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// The checked thing works.
    Ok,
    /// Worth knowing; nothing is wrong.
    Note,
    /// Some features fail or work badly.
    Warning,
    /// Nothing can be recorded.
    Failed,
}

impl Status {
    /// The status as a word, for JSON and text.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    /// Subject of the check, one word or two.
    pub(crate) name: &'static str,
    /// Outcome of the check.
    pub(crate) status: Status,
    /// Finding, in a sentence without a full stop.
    pub(crate) found: String,
    /// Fix for the finding.
    pub(crate) cure: Option<String>,
}

impl Check {
    /// A check that found nothing wrong.
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, found: found.into(), cure: None }
    }

    /// A check with a finding, a note or worse, and its fix.
    fn bad(status: Status, name: &'static str, found: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { name, status, found: found.into(), cure: Some(cure.into()) }
    }
}

/// All checks, in the order in which a recording needs what they check.
pub(crate) fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    let agent = place::agent();
    checks.push(agent.check);
    checks.extend(process::own_library());
    let named = variables::agent();
    // Programs load the agent that the environment names; without one, this tries the agent that
    // 'run' would name.
    let tried = named.as_ref().map_or(agent.path, |named| named.path.clone());
    checks.extend(runtimes::checks(tried.as_deref()));
    checks.push(runtimes::libicu());
    checks.extend(runtimes::environment());
    checks.extend(variables::check());
    checks.extend(named.map(|named| named.check));
    checks.extend(place::output(variables::recording_folder()));
    checks.extend(machine::limits());
    checks.extend(machine::clock());
    checks.push(machine::perf_events());
    checks.push(machine::running());
    checks.extend(machine::container());
    checks
}
