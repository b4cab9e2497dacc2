//! `clrscope probe`: probes of a running process come and go, and what they have counted so far.

use std::path::Path;

use clrscope_analysis::Query;
use clrscope_recording::writer::Command;
use clrscope_report::{Format, Request, view};

use super::record::{self, RecordOptions};
use super::report::{self, ReportOptions};
use crate::errors::Failure;
use crate::recorded_process::process_folder;

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
    /// Give these commands, one after another.
    Change(Vec<Command>),
}

/// Does it, and says what came of it.
///
/// # Errors
/// When the process is not recorded with probes, or a pattern matches none of its methods. What was done for the patterns before that
/// one stays.
pub(crate) fn perform(options: &ProbeOptions) -> Result<(), Failure> {
    let pid = options.pid;
    match &options.wish {
        Wish::List { json } => list(pid, *json),
        Wish::Change(commands) => {
            commands.iter().try_for_each(|command| record::perform(&RecordOptions { pid, command: command.clone() }))
        }
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
