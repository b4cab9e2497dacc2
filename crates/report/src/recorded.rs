//! End of a recording, in words.

use clrscope_recording::model::Recording;

/// Whether the program ended while it was watched: by the launcher, or without one by the agent
/// itself.
pub(crate) fn is_complete(recording: &Recording) -> bool {
    let without_launcher = recording.run.clrscope_version.is_empty();
    recording.run.exit.is_some() || (without_launcher && recording.processes.first().is_some_and(|root| root.complete))
}
