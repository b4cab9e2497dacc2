//! The profiler as the runtime sees it: starts the recording and passes callbacks to the
//! instruments.

use clr_profiler::{Error, HResult, Profiler, ProfilerInfo, Result, Setup};
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::recording_lifetime::{self, OwnedObject};
use clrscope_contract::request::AGENT_VARIABLE;

use crate::resident::Resident;
use crate::services::context::Beginning;
use crate::setup::setup;
use crate::startup;
#[cfg(test)]
use crate::startup::Running;

/// The agent, as the framework creates it in a process.
pub struct Agent {
    resident: &'static Resident,
    /// The framework drops a detached profiler once it is no longer called.
    _owner: OwnedObject<Resident>,
    beginning: Beginning,
}

clr_profiler::compose_callbacks! { Agent { resident } }

impl Agent {
    pub(crate) fn start(info: &ProfilerInfo, given: &str, beginning: Beginning) -> Result<(Self, Setup)> {
        recording_lifetime::free_ended();
        // SAFETY: the framework drops the agent after the runtime's last call. A dormant agent is
        // used by its thread and is never detached. Parts of a recording keep the reference, but do
        // not use it once the recording is over.
        let owner = unsafe { OwnedObject::new(Resident::new(info)) };
        let resident = owner.get();
        let running = resident.begin(given, beginning).map_err(|why| {
            let refused = Error::refused("clrscope", why);
            match beginning == Beginning::Attach && startup::needs_launch(given) {
                true => refused.with_hresult(HResult::UNSUPPORTED_FOR_ATTACH),
                false => refused,
            }
        })?;
        Ok((Self { resident, _owner: owner, beginning }, setup(running, beginning)))
    }

    /// Stops recording. Waits up to ten seconds; returns whether recording has stopped by then.
    /// Callbacks are still handled, so that names and identifiers stay right, and hooks stay in
    /// place.
    pub fn stop(&self) -> bool {
        self.resident.running.get().is_some_and(|running| running.helper.stop_recording())
    }

    /// Starts recording again after [`stop`](Self::stop). Waits up to ten seconds and returns
    /// whether recording runs by then. Calls that began in the meantime are unknown: their callees
    /// appear at the root of their threads.
    pub fn start_again(&self) -> bool {
        self.resident.running.get().is_some_and(|running| running.helper.start_again())
    }

    /// The recording that runs.
    #[cfg(test)]
    pub(crate) fn running(&self) -> &'static Running {
        self.resident.running.get().expect("a recording")
    }
}

impl Profiler for Agent {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        // Only the runtime knows the settings that a diagnostics tool makes before the program
        // starts.
        let of_runtime = info.environment_variable(AGENT_VARIABLE).ok().flatten();
        let given = of_runtime.or_else(|| std::env::var(AGENT_VARIABLE).ok()).unwrap_or_default();
        Self::start(info, &given, Beginning::Launch)
    }

    /// The client data is the request, which the environment variable holds otherwise. Instruments
    /// with hooks are refused: the runtime accepts hooks only at its start.
    fn initialize_for_attach(info: &ProfilerInfo, client_data: &[u8]) -> Result<(Self, Setup)> {
        let given = std::str::from_utf8(client_data).map_err(|error| {
            Error::refused("clrscope", format!("the request is not UTF-8: {error}"))
                .with_hresult(HResult::INVALID_ARGUMENT)
        })?;
        Self::start(info, given, Beginning::Attach)
    }

    fn setup_refused(&self, error: &Error) {
        log(Level::Error, || format!("the runtime refused the setup: {error}"));
        match self.beginning {
            Beginning::Attach => self.resident.refused(error),
            Beginning::Launch => self.resident.note(error),
        }
    }
}
