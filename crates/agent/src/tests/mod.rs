//! The agent meets the framework's fake runtime: start-up, what is passed on, names, stop and start
//! again.

mod attach;
mod code;
mod event_pipe;
mod fan_out;
mod functions;
mod lifecycle;
mod start;
mod switching;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::{Events, Result};
use clr_profiler_fake::{FakeRuntime, Running};
use clrscope_agent_base::threads;
use clrscope_recording::model::{Process, Recording};

use crate::Agent;
use crate::services::context::Beginning;

/// Agents share what hooks find without a parameter, so one runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// No other agent runs for as long as the answer lives.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder for a recording, for as long as no other agent runs.
pub(super) struct Session {
    folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Session {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder"), _alone: alone() }
    }

    pub(super) fn out(&self) -> PathBuf {
        self.folder.path().join("run.clrs.d")
    }

    /// The request with the place of the recording.
    pub(super) fn request(&self, text: &str) -> String {
        format!("{text};trust-writable;out={}", self.out().display())
    }

    /// Loads the agent with a request of the test's, and with more events than that asks for.
    pub(super) fn load(&self, runtime: FakeRuntime, request: &str, more: Events) -> Result<Running<Agent>> {
        let request = self.request(request);
        runtime.load_with(move |info| {
            let (agent, setup) = Agent::start(info, &request, Beginning::Launch)?;
            Ok((agent, setup.with_events(more)))
        })
    }

    pub(super) fn recording(&self) -> Recording {
        clrscope_recording::open(&self.out()).expect("a recording")
    }

    pub(super) fn process(&self) -> Process {
        self.recording().processes.swap_remove(0)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        threads::withdraw();
    }
}

/// Calls of a function, in all trees of a process.
pub(super) fn calls(process: &Process, name: &str) -> u64 {
    let trees = process.threads.iter().map(|thread| thread.tree.load());
    let of_tree = |tree: clrscope_recording::model::CallTree| {
        let is_it = |node: &u32| process.functions[tree.functions()[*node as usize] as usize].name == name;
        (1..tree.len() as u32).filter(is_it).map(|node| tree.calls(node)).sum::<u64>()
    };
    trees.map(of_tree).sum()
}
