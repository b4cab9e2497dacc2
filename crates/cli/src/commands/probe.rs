//! `clrscope probe`: adds and removes probes of a running process, and shows their counts.

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
    /// The process with the probes.
    pub(crate) pid: u32,
    /// The requested action.
    pub(crate) wish: Wish,
}

/// Action on the probes of a process.
#[derive(Debug)]
pub(crate) enum Wish {
    /// Show the counts.
    List {
        /// Whether to print one JSON document instead of text.
        json: bool,
    },
    /// Show the counts each second, until the recording is over.
    Watch,
    /// Send these commands, one after another.
    Change(Vec<Command>),
}

/// Performs the action and prints its result.
///
/// # Errors
/// When the process is not recorded with probes, or a pattern matches none of its methods. Changes
/// for the patterns before that one stay in effect.
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

/// Shows the calls so far and the times of the calls of the last second, until the recording is
/// over or the reader of the output is gone.
fn watch(pid: u32) -> Result<(), Failure> {
    let folder = process_folder(pid, "cannot list the probes")?;
    let query = Query { pid: Some(pid), ..Query::default() };
    let mut probes = LiveProbes::default();
    loop {
        // The recording is packed into a file when it is over.
        let Some(recording) = folder.parent().and_then(|place| clrscope_recording::open(place).ok()) else {
            return Ok(());
        };
        let lines = probes.lines(&recording, &query).map_err(|problem| query_failure(&problem))?;
        let head = if results_on_terminal() { "\x1b[H\x1b[J" } else { "" };
        let is_read = plain(|out| write!(out, "{head}{}\n\n", lines.join("\n")));
        let is_read = is_read
            .map_err(|error| Failure::new("cannot write the list", reason(&error), "check where stdout leads"))?;
        if !is_read || are_over(&recording.processes) {
            return Ok(());
        }
        #[expect(clippy::disallowed_methods, reason = "a growing recording is looked at each second")]
        std::thread::sleep(BETWEEN);
    }
}
