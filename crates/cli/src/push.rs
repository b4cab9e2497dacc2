//! Pushing recordings: what `clrscope push` and `--push` have in common.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clrscope_analysis::numbers::{bytes, number};
use clrscope_contract::labels::Label;
use clrscope_push::{
    HEADERS_VARIABLE, HeaderError, Headers, Outcome, Patience, PushError, Pusher, Report, Spool, Tally, Target,
};

use crate::errors::{Failure, one_line, quoted, reason, shell_word, shown};
use crate::recording_file::open;
use crate::terminal::say;

/// Where to push to, and how.
#[derive(Debug, Clone)]
pub(crate) struct PushPlan {
    /// The targets, without duplicates.
    pub(crate) targets: Vec<Target>,
    /// File with HTTP headers for the requests.
    pub(crate) header_file: Option<PathBuf>,
    /// Folder of the spool; `None` for this user's default folder.
    pub(crate) spool: Option<PathBuf>,
    /// Maximum bytes in the spool.
    pub(crate) bound: u64,
    /// How long to keep trying.
    pub(crate) patience: Patience,
}

impl PushPlan {
    /// Checks the headers and the spool before anything is recorded.
    ///
    /// # Errors
    /// When headers or the spool can't be used.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.headers()?;
        if self.has_servers() { self.open_spool().map(|_| ()) } else { Ok(()) }
    }

    fn has_servers(&self) -> bool {
        self.targets.iter().any(|target| target.server().is_some())
    }

    /// HTTP headers from the file or the environment. They are read again for each push, because
    /// tokens change.
    ///
    /// # Errors
    /// When they can't be used, without their values.
    pub(crate) fn headers(&self) -> Result<Headers, Failure> {
        let headers = match (&self.header_file, env::var(HEADERS_VARIABLE)) {
            (Some(file), _) => Headers::from_file(file).map_err(refused("--push-header-file"))?,
            (None, Ok(text)) => Headers::parse(&text).map_err(refused(HEADERS_VARIABLE))?,
            (None, Err(env::VarError::NotPresent)) => Headers::default(),
            (None, Err(_)) => {
                let hint = "write 'Name: value', or 'Name: file:PATH'";
                return Err(Failure::usage(format!("cannot use {HEADERS_VARIABLE}"), "it is not UTF-8", hint));
            }
        };
        let servers = self.targets.iter().filter(|target| target.server().is_some()).count();
        if servers > 1 && headers.have_any_for_all() {
            return Err(Failure::usage(
                "cannot use these headers for several receivers",
                "each of them would get what is meant for the others",
                "write the line [URL] above the headers of each",
            ));
        }
        Ok(headers)
    }

    fn open_spool(&self) -> Result<Spool, Failure> {
        let folder = match &self.spool {
            Some(folder) => folder.clone(),
            None => state_folder().ok_or_else(|| {
                let why = "neither HOME nor XDG_STATE_HOME says where";
                Failure::new("there is no place for the spool", why, "name a folder with --push-spool")
            })?,
        };
        Spool::open(&folder, self.bound).map_err(|error| spool_failure(&folder, &error))
    }

    fn pusher(&self) -> Result<Pusher, Failure> {
        let spool = self.open_spool()?;
        let folder = spool.folder().to_owned();
        let pusher = Pusher::new(spool, self.headers()?, self.patience, &self.targets);
        pusher.map_err(|error| spool_failure(&folder, &error))
    }
}

fn refused(of: &'static str) -> impl FnOnce(HeaderError) -> Failure {
    move |HeaderError { why, hint }| Failure::usage(format!("cannot use the headers of {of}"), why, hint)
}

fn spool_failure(folder: &Path, error: &io::Error) -> Failure {
    let what = format!("cannot use the spool {}", shown(folder));
    Failure::new(what, reason(error), "name another folder with --push-spool")
}

/// The folder of the default spool.
fn state_folder() -> Option<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // A relative XDG_STATE_HOME is invalid by the specification and must be ignored.
    let base = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let base = base.or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(base.join("clrscope/spool"))
}

/// Pushes recordings, and sends the profiles that wait in the spool.
///
/// # Errors
/// When a recording can't be opened or exported, or the spool can't be used.
pub(crate) fn push(recordings: &[PathBuf], labels: &[Label], plan: &PushPlan) -> Result<Report, Failure> {
    let mut pusher = plan.pusher()?;
    let mut failed = None;
    for path in recordings {
        let recording = match open(path) {
            Ok(recording) => recording.labelled(labels),
            // The others are pushed all the same.
            Err(failure) => {
                failed = Some(failure);
                continue;
            }
        };
        for target in &plan.targets {
            pusher.add(&recording, target).map_err(|error| failure(path, &error))?;
        }
    }
    let folder = plan.open_spool()?.folder().to_owned();
    for target in &plan.targets {
        pusher.send(target).map_err(|error| spool_failure(&folder, &error))?;
    }
    let report = pusher.finish().map_err(|error| spool_failure(&folder, &error))?;
    match failed {
        Some(failure) => Err(failure),
        None => Ok(report),
    }
}

/// Pushes a recording that was just made. Prints a failure as one line, because the recording
/// itself is complete.
pub(crate) fn recording(path: &Path, plan: &PushPlan, quiet: bool) {
    recordings(&[path.to_owned()], plan, quiet);
}

/// As [`recording`], for several recordings. Returns whether nothing is left to do: what was not
/// sent waits in the spool, or is lost and was reported.
pub(crate) fn recordings(paths: &[PathBuf], plan: &PushPlan, quiet: bool) -> bool {
    match push(paths, &[], plan) {
        Ok(report) => {
            for target in &report.targets {
                if !quiet || target.sent == Tally::default() || !target.reasons.is_empty() {
                    say(&one_line(format!("clrscope: {}", sentence(target, &report))));
                }
            }
            if let Some(lost) = lost(&report) {
                say(&format!("clrscope: {lost}"));
            }
            true
        }
        Err(failure) => {
            say(&one_line(format!("clrscope: not pushed: {}: {}", failure.what(), failure.why())));
            false
        }
    }
}

/// A sentence about what happened to the profiles for a target.
pub(crate) fn sentence(target: &Outcome, report: &Report) -> String {
    let is_folder = !target.to.contains("://");
    let mut parts = Vec::new();
    if target.sent.requests > 0 {
        let what = if is_folder { recordings_in_words(target.sent.requests) } else { profiles(target.sent.profiles) };
        parts.push(format!("pushed {what} ({}) to {}", bytes(target.sent.bytes), target.to));
    }
    if target.refused != Tally::default() {
        parts.push(format!("{} refused {}", target.to, profiles(target.refused.profiles)));
    }
    if target.waiting.requests > 0 {
        parts.push(match is_folder {
            true => format!("{} not written to {}", recordings_in_words(target.waiting.requests), target.to),
            false => {
                format!("{} for {} wait in {}", profiles(target.waiting.profiles), target.to, shown(&report.spool))
            }
        });
    }
    if parts.is_empty() {
        parts.push(format!("nothing to push to {}", target.to));
    }
    if !target.reasons.is_empty() {
        parts.push(target.reasons.join("; "));
    }
    if target.waiting.requests > 0 && !is_folder {
        parts.push(format!("next: clrscope push --to {}", shell_word(&target.to)));
    }
    parts.join("; ")
}

/// A sentence about profiles that were dropped because the spool is full; `None` if there are none.
pub(crate) fn lost(report: &Report) -> Option<String> {
    (report.lost.requests > 0).then(|| {
        let what = profiles(report.lost.profiles);
        format!("the spool {} is full: its oldest {what} ({}) are lost", shown(&report.spool), bytes(report.lost.bytes))
    })
}

fn profiles(count: u64) -> String {
    format!("{} profile{}", number(count), if count == 1 { "" } else { "s" })
}

fn recordings_in_words(count: u64) -> String {
    format!("{} recording{}", number(count), if count == 1 { "" } else { "s" })
}

/// The failure of a recording that can't be pushed.
pub(crate) fn failure(path: &Path, error: &PushError) -> Failure {
    let what = format!("cannot push {}", shown(path));
    match error {
        PushError::Spool(folder, error) => spool_failure(folder, error),
        other => Failure::new(what, other.to_string(), "'clrscope report' shows what the recording has"),
    }
}

/// Parses the text of a target.
///
/// # Errors
/// When it is none, without what may be a secret.
pub(crate) fn target(option: &str, text: &str) -> Result<Target, Failure> {
    Target::parse(text).map_err(|refusal| {
        let what = match &refusal.shown {
            Some(text) => format!("'{option}' does not take {}", quoted(text)),
            None => format!("'{option}' does not take such a URL"),
        };
        Failure::usage(what, refusal.why, refusal.hint)
    })
}

/// How long a receiver may accept nothing at the end of a recording. The program's exit code waits
/// for the push.
pub(crate) const AT_THE_END: Duration = Duration::from_secs(10);
/// Longest time for one request.
pub(crate) const FOR_A_REQUEST: Duration = Duration::from_secs(30);
/// Default size limit of the spool in bytes.
pub(crate) const USUAL_BOUND: u64 = 256 << 20;
