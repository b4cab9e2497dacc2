//! `clrscope push`: sends recordings to servers and folders.

use std::path::PathBuf;

use clrscope_contract::labels::Label;
use clrscope_push::{LIMITS, Outcome, Report, Target, parcels};
use serde_json::json;

use super::print;
use crate::errors::{EXIT_REFUSED, EXIT_WAITS, Failure, one_line};
use crate::push::{PushPlan, failure, lost, push, sentence};
use crate::recording_file::open;
use crate::terminal::say;

/// Options of `push`.
#[derive(Debug)]
pub(crate) struct PushOptions {
    /// The recordings to push. Profiles that wait in the spool are sent in any case.
    pub(crate) recordings: Vec<PathBuf>,
    /// Labels that replace the recordings' own labels with the same keys.
    pub(crate) labels: Vec<Label>,
    /// Where and how to push.
    pub(crate) plan: PushPlan,
    /// Whether to print what would be sent, without sending it.
    pub(crate) dry_run: bool,
    /// Whether to print one JSON document instead of text.
    pub(crate) json: bool,
}

/// Pushes. Returns the exit code.
///
/// # Errors
/// When a recording can't be opened, or the spool can't be used.
pub(crate) fn perform(options: &PushOptions) -> Result<u8, Failure> {
    let report = match options.dry_run {
        true => dry_run(options)?,
        false => push(&options.recordings, &options.labels, &options.plan)?,
    };
    if options.json {
        let mut report = json!(report);
        report["dry_run"] = json!(options.dry_run);
        print(&format!("{report:#}\n"))?;
    } else {
        let lines: Vec<String> = report.targets.iter().map(|target| line(target, &report, options.dry_run)).collect();
        print(&lines.concat())?;
    }
    if let Some(lost) = lost(&report) {
        say(&format!("clrscope: {lost}"));
    }
    Ok(match (report.has_lost(), report.waits()) {
        (true, _) => EXIT_REFUSED,
        (false, true) => EXIT_WAITS,
        (false, false) => 0,
    })
}

fn line(target: &Outcome, report: &Report, is_dry: bool) -> String {
    let Outcome { to, made, .. } = target;
    let text = match is_dry {
        true => format!(
            "would push {} profiles with {} samples in {} requests ({} bytes) to {to}",
            made.profiles, made.samples, made.requests, made.bytes
        ),
        false => sentence(target, report),
    };
    format!("{}\n", one_line(text))
}

/// What would be sent. Nothing is written anywhere.
fn dry_run(options: &PushOptions) -> Result<Report, Failure> {
    options.plan.headers()?;
    let mut report = Report::new(&options.plan.targets);
    for path in &options.recordings {
        let recording = open(path)?.labelled(&options.labels);
        for (target, outcome) in options.plan.targets.iter().zip(&mut report.targets) {
            match target {
                Target::Server(server) => parcels(&recording, server, &LIMITS, &mut |parcel| {
                    outcome.made += parcel.tally();
                    Ok(())
                })
                .map_err(|error| failure(path, &error))?,
                Target::Folder(_) => {
                    outcome.made.requests += 1;
                    outcome.made.profiles += recording.processes.len() as u64;
                }
            }
        }
    }
    Ok(report)
}
