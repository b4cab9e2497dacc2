//! Explains why a runtime refused the agent.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use clr_diagnostics::{Error, Process, ResultCode};
use clrscope_contract::request::Request;
use clrscope_contract::trust::Who;
use clrscope_recording::model::Process as Recorded;

use super::target::explained;
use crate::agent_file::LIBRARY;
use crate::errors::{Failure, shell_word};
use crate::launch::{OtherProfiler, alternative, listed_agent, needs_main_slot};
use crate::recorded_process::process_folder;

/// The profiler that the program was started with, according to its environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Present {
    /// No profiler: the loaded one was attached.
    None,
    /// Our agent.
    Ours,
    /// Another profiler.
    Other(OtherProfiler),
}

impl Present {
    pub(crate) fn in_process(process: &Process) -> Self {
        let variable = |name: &str| process.variable(name).ok().flatten().filter(|value| !value.is_empty());
        if listed_agent(|name| variable(name).map(OsString::from)).is_some() {
            return Self::Ours;
        }
        if variable("CORECLR_ENABLE_PROFILING").as_deref() != Some("1") {
            return Self::None;
        }
        let path = variable("CORECLR_PROFILER_PATH_64").or_else(|| variable("CORECLR_PROFILER_PATH"));
        if path.is_some_and(|path| path.ends_with(LIBRARY)) {
            return Self::Ours;
        }
        OtherProfiler::find(|name| variable(name).map(OsString::from)).map_or(Self::None, Self::Other)
    }
}

/// The hint for a reason that the agent gave.
fn hint_to(why: &str) -> &'static str {
    match why.ends_with(&Who::Others.to_string()) {
        true => "if you trust everyone who can write there, as in a pod's own volume: --trust-writable",
        false => "see 'clrscope attach --help' for what attach can record",
    }
}

/// Explains a refusal by the runtime. `folder` is the recording's; an agent that declines to load
/// writes its reason there.
pub(super) fn refused(process: &Process, error: &Error, folder: &Path, request: &Request) -> Failure {
    let cannot =
        |why: String, hint: &str| Failure::new(format!("cannot attach to process {}", process.pid()), why, hint);
    let said = clrscope_recording::open(folder)
        .ok()
        .and_then(|recording| recording.processes.iter().find_map(Recorded::refusal).map(str::to_owned));
    if let Some(why) = said {
        let hint = hint_to(&why);
        return cannot(why, hint);
    }
    match error.code() {
        Some(ResultCode::PROFILER_ALREADY_ACTIVE) => match Present::in_process(process) {
            Present::Ours => {
                let why = "it was started under clrscope, which already records it";
                cannot(why.to_owned(), &instead(process.pid()))
            }
            Present::Other(other) => match needs_main_slot(request, true) {
                Some(refusal) => cannot(
                    format!("another profiler is loaded, {}, and {}", other.in_words(), refusal.why),
                    &format!("start the program without it, or {}", alternative(&refusal)),
                ),
                None => cannot(
                    format!("another profiler is loaded, {}, and another 'clrscope attach' records", other.in_words()),
                    "stop that one, then attach again",
                ),
            },
            Present::None => cannot(
                "another 'clrscope attach' or another tool is attached, and the runtime allows one profiler at a time"
                    .to_owned(),
                "stop it, then attach again",
            ),
        },
        Some(ResultCode::WAITING_FOR_CONCURRENT_GC) => {
            cannot("a background collection did not end in time".to_owned(), "attach again")
        }
        Some(ResultCode::RUNTIME_UNINITIALIZED | ResultCode::NOT_YET_AVAILABLE) => cannot(
            "its runtime is still starting".to_owned(),
            "attach again in a moment, or record from the start: clrscope run",
        ),
        Some(ResultCode::NOT_SUPPORTED | ResultCode::UNKNOWN_COMMAND) => cannot(
            "its runtime does not support profilers (NativeAOT, for example)".to_owned(),
            "attach works only with CoreCLR",
        ),
        Some(code) => cannot(format!("its runtime could not load the agent: {code}"), "run 'clrscope doctor'"),
        None => explained(process, error),
    }
}

/// Hint for a process that was started under clrscope and has a recording already.
fn instead(pid: u32) -> String {
    let folder = process_folder(pid, "attach").ok();
    match folder.as_deref().and_then(Path::parent) {
        Some(growing) => {
            // If we see the same files, show the path that stays valid when the process is gone.
            let ours = growing.strip_prefix(format!("/proc/{pid}/root")).map(|inner| Path::new("/").join(inner));
            let same = ours.ok().filter(|ours| is_same_place(ours, growing));
            let growing = same.as_deref().unwrap_or(growing);
            format!("look at what it has so far: clrscope report {}", shell_word(&growing.to_string_lossy()))
        }
        None => "read the recording of that 'clrscope run' instead".to_owned(),
    }
}

fn is_same_place(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| std::fs::metadata(path).map(|there| (there.dev(), there.ino())).ok();
    place(a).is_some() && place(a) == place(b)
}
