//! `clrscope stacks`: shows what the threads of a running or hanging program do and wait for, from
//! a temporary recording.

mod system_threads;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clr_diagnostics::Process;
use clrscope_analysis::Query;
use clrscope_contract::instruments::wall::SPEC as WALL;
use clrscope_contract::request::{InstrumentRequest, Request};
use clrscope_report::{Format, Request as ReportRequest, STACKS};

use super::heap::by_command;
use super::report::print;
use crate::attach::{AttachPlan, Target, Until, moment_folder, record};
use crate::errors::Failure;
use crate::recording_file::{open_for, query_failure};

/// Options of `stacks`.
#[derive(Debug)]
pub(crate) struct StacksOptions {
    /// The process to look at.
    pub(crate) pid: u32,
    /// Whether to print one JSON document instead of text.
    pub(crate) json: bool,
    /// Whether to search the heap for async operations.
    pub(crate) reads_heap: bool,
    /// Whether to read a heap of any size.
    pub(crate) force: bool,
    /// Maximum number of rows about async operations.
    pub(crate) limit: Option<usize>,
}

/// Time in which threads are sampled: several times the interval of `wall`, so that each thread is
/// seen.
const LOOK_FOR: Duration = Duration::from_millis(250);
/// Longest time that a program may be suspended without `--force`.
const LONGEST_STOP: Duration = Duration::from_secs(5);
/// Bytes of private memory whose objects are collected and read per second.
const BYTES_PER_SECOND: u64 = 400 << 20;

/// Shows the stacks.
///
/// # Errors
/// When the process can't be attached to. The system's data about its threads is shown first, where
/// it is accessible.
pub(crate) fn perform(options: &StacksOptions) -> Result<(), Failure> {
    let target = Target::find(options.pid).inspect_err(|_| system_threads::show(options))?;
    if options.reads_heap && !options.force {
        check_size(&target.process)?;
    }
    let folder = moment_folder("stacks")?;
    let recorded = record_moment(options, &target, &folder.path().join("stacks.clrs")).inspect_err(|_| {
        if target.process.is_alive() {
            system_threads::show(options);
        }
    })?;
    let query = Query { limit: options.limit, ..Query::default() };
    let recording = open_for(&recorded, &query)?;
    let format = if options.json { Format::Json } else { Format::Text };
    let asked = ReportRequest { query, ..ReportRequest::default() };
    let request = if options.json { asked } else { STACKS.for_people(&asked) };
    let report = STACKS.open(&recording, &request).map_err(|problem| query_failure(&problem))?;
    print(&report, format)
}

/// Records threads and heap. Returns the file.
fn record_moment(options: &StacksOptions, target: &Target, output: &Path) -> Result<PathBuf, Failure> {
    let mut instruments = vec![InstrumentRequest::named(WALL.name)];
    instruments.extend(options.reads_heap.then(|| by_command(true)));
    let request = Request { instruments, ..Request::default() };
    let until = Until::Moment { look_for: LOOK_FOR, reads_heap: options.reads_heap };
    let attached = record(AttachPlan::for_moment(target, request, output.to_owned(), until))?;
    match attached.no_snapshot {
        None => Ok(attached.path),
        Some(why) => {
            let what = format!("cannot read the heap of process {}", options.pid);
            Err(Failure::new(what, why, "--no-heap shows the threads alone"))
        }
    }
}

/// Refuses to suspend a program for long.
fn check_size(process: &Process) -> Result<(), Failure> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap_or_default();
    let private =
        status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.split_whitespace().next()?.parse().ok());
    let bytes = private.map_or(0, |kilobytes: u64| kilobytes << 10);
    let stop = Duration::from_millis(bytes.saturating_mul(1_000) / BYTES_PER_SECOND);
    if stop <= LONGEST_STOP {
        return Ok(());
    }
    let (pid, seconds) = (process.pid(), stop.as_secs());
    let what = format!("cannot read the heap of process {pid} without --force");
    let why = format!("it has {} MB of private memory, and may be stopped for about {seconds} s", bytes >> 20);
    Err(Failure::new(what, why, "add --force, or --no-heap for the threads alone"))
}
