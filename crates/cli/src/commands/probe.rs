//! `clrscope probe`: probes of a running process come and go, and what they have counted so far.

use std::path::Path;

use clrscope_analysis::Query;
use clrscope_recording::writer::Command;
use clrscope_report::{Format, Request, view};

use super::record;
use super::report::{self, ReportOptions};
use crate::errors::{Failure, reason};
use crate::growing::are_over;
use crate::live_probes::LiveProbes;
use crate::progress::BETWEEN;
use crate::recorded_process::process_folder;
use crate::recording_file::query_failure;
use crate::terminal::{plain, results_on_terminal};

/// Options of `probe`.
#[derive(Debug)]
pub(crate) struct ProbeOptions {
    /// The process.
    pub(crate) pid: u32,
    /// Wish of the user.
    pub(crate) wish: Wish,
}

/// Wish about the probes of a process.
#[derive(Debug)]
pub(crate) enum Wish {
    /// Show what was counted.
    List {
        /// One JSON document instead of text.
        json: bool,
    },
    /// Show each second what was counted, until the recording is over.
    Watch,
    /// Give these commands, one after another.
    Change(Vec<Command>),
}

/// Does it, and says what came of it.
///
/// # Errors
/// When the process is not recorded with probes, or a pattern matches none of its methods. What was
/// done for the patterns before that one stays.
pub(crate) fn perform(options: &ProbeOptions) -> Result<(), Failure> {
    let pid = options.pid;
    match &options.wish {
        Wish::List { json } => list(pid, *json),
        Wish::Watch => watch(pid),
        Wish::Change(commands) => commands.iter().try_for_each(|command| record::give_command(pid, command)),
    }
}

fn list(pid: u32, json: bool) -> Result<(), Failure> {
    let folder = process_folder(pid, "cannot list the probes")?;
    let query = Query { pid: Some(pid), ..Query::default() };
    report::perform(&ReportOptions {
        recording: folder.parent().map(Path::to_owned),
        view: view("probes").expect("there is such a view"),
        format: if json { Format::Json } else { Format::Text },
        request: Request { query, ..Request::default() },
        output: None,
        force: false,
    })
}

/// Shows calls so far, and times of the calls of the last second, until the recording is over, or
/// what is shown is no longer read.
fn watch(pid: u32) -> Result<(), Failure> {
    let folder = process_folder(pid, "cannot list the probes")?;
    let query = Query { pid: Some(pid), ..Query::default() };
    let mut probes = LiveProbes::default();
    loop {
        // It becomes a file when it is over.
        let Some(recording) = folder.parent().and_then(|place| clrscope_recording::open(place).ok()) else {
            return Ok(());
        };
        let lines = probes.lines(&recording, &query).map_err(|problem| query_failure(&problem))?;
        let head = if results_on_terminal() { "\x1b[H\x1b[J" } else { "" };
        let is_read = plain(|out| write!(out, "{head}{}\n\n", lines.join("\n")));
        let is_read =
            is_read.map_err(|error| Failure::new("cannot write the list", reason(&error), "see where it goes"))?;
        if !is_read || are_over(&recording.processes) {
            return Ok(());
        }
        #[expect(clippy::disallowed_methods, reason = "a growing recording is looked at each second")]
        std::thread::sleep(BETWEEN);
    }
}
