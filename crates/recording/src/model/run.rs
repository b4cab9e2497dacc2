//! The run as seen by the launcher, and the recording as a whole.

use std::sync::Arc;

use clrscope_contract::request::RecordedRequest;

use super::{Exit, Problem, Process};
use crate::codec::{Field, record};
use crate::payload::{PayloadReader, PayloadWriter};

/// One recording: a run of a program and every .NET process that it started.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// The launcher's part; partly empty when the agent was loaded without the launcher.
    pub run: Run,
    /// The .NET processes, in the order of their start. The first is the root program if that is a
    /// .NET program.
    pub processes: Vec<Process>,
    /// Problems with unreadable data, as sentences for the user.
    pub problems: Vec<Problem>,
    /// The same recording with the threads' original call paths; `None` if the paths here are the
    /// original ones.
    pub physical: Option<Arc<Self>>,
}

impl Recording {
    /// Problems found after the recording was opened: the contents of trees and events stay on the
    /// disk until a caller reads them. The list is complete only once everything has been read.
    pub fn late_problems(&self) -> impl Iterator<Item = &Problem> {
        self.processes.iter().flat_map(|process| {
            let parts = process.parts.iter().flat_map(|part| part.trees.problems());
            let trees = process.threads.iter().filter_map(|thread| thread.tree.problem()).chain(parts);
            let chunks = process.events.iter().flat_map(|arena| &arena.chunks);
            trees.chain(chunks.filter_map(|chunk| chunk.bytes.problem()))
        })
    }
}

record! {
    /// The launcher's part of a recording.
    #[derive(Debug, Clone, Default)]
    pub struct Run {
        /// The command as given after `run --`; empty without the launcher.
        pub command: Vec<String>,
        /// Start in nanoseconds since the Unix epoch (UTC); without the launcher, the start of the
        /// first process.
        pub started_unix_ns: u64,
        /// Nanoseconds from the start to the end of the root program, or to the last sign of life
        /// of any process.
        pub duration_ns: u64,
        /// End of the root program; `None` if it is still running or its end was not seen.
        pub exit: Option<Exit>,
        /// Request as the user gave it, for instance `calls:clock=tsc`.
        pub given: RecordedRequest,
        /// Request with every default filled in by the agent; empty if no process has started.
        pub filled: RecordedRequest,
        /// Version of clrscope that made the recording.
        pub clrscope_version: String,
        /// A random identifier of the recording, written as a UUID; empty in recordings from
        /// versions without it.
        pub id: String,
    }
}

/// The text, as given.
impl Field for RecordedRequest {
    fn put(&self, payload: &mut PayloadWriter) {
        payload.text(self.text());
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        Some(payload.text().into())
    }
}
