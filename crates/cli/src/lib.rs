//! The code of the `clrscope` binary as a library, so that the tests can use it as well.

mod access;
mod agent_cache;
mod agent_file;
mod aligned;
mod args;
mod attach;
mod background;
mod c_library;
mod commands;
mod doctor;
mod embedded;
mod errors;
mod growing;
mod launch;
mod live;
mod live_probes;
mod memory;
mod output;
mod pack;
mod periods;
mod process_name;
mod programs;
mod progress;
mod push;
mod recorded_process;
mod recording_file;
mod recording_folder;
mod result_file;
mod runtime;
mod session;
mod summary;
mod terminal;
mod triggered;
mod viewer;
mod watch;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use clrscope_dotnet as dotnet;

/// The command line tool: parses the arguments of this process, performs the command and returns
/// the exit code. Results go to stdout, everything else to stderr.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    let outcome = args::parse(&arguments).and_then(|parsed| match parsed {
        args::ParseOutcome::Task(task) => task.perform(),
        args::ParseOutcome::Text(text) => commands::print(&text).map(|()| 0),
    });
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            terminal::say(failure.to_string().trim_end());
            ExitCode::from(failure.code())
        }
    }
}
