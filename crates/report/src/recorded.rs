//! How a recording ended, in words.

use clrscope_recording::model::Recording;

/// Whether the launcher, or without a launcher the agent, saw the end of the program.
pub(crate) fn is_complete(recording: &Recording) -> bool {
    let without_launcher = recording.run.clrscope_version.is_empty();
    recording.run.exit.is_some() || (without_launcher && recording.processes.first().is_some_and(|root| root.complete))
}
