//! `clrscope attach`: records a running program, and detaches from it.

use std::path::PathBuf;

use clr_diagnostics::Process;
use clrscope_contract::request::Request;

use crate::attach::{AttachPlan, AttachedRecording, Target, Until, record};
use crate::errors::Failure;
use crate::periods::{Event, PeriodOptions, Watched};
use crate::push::{self, PushPlan};
use crate::summary;
use crate::terminal::messages_on_terminal;

/// Options of `attach`.
#[derive(Debug)]
pub(crate) struct AttachOptions {
    /// The process to attach to.
    pub(crate) pid: u32,
    /// The recording request, without a path.
    pub(crate) request: Request,
    /// Periods, if each becomes a separate recording; `None` for a single recording.
    pub(crate) periods: Option<PeriodOptions>,
    /// The instruments as the user gave them.
    pub(crate) instruments_given: String,
    /// Path of the recording; named after the program when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Whether to overwrite existing files.
    pub(crate) force: bool,
    /// Whether to print nothing but errors.
    pub(crate) quiet: bool,
    /// Whether to serve the page of the recording while it grows.
    pub(crate) view: bool,
    /// Where to push the recording to at its end; `None` to push nothing.
    pub(crate) push: Option<PushPlan>,
}

/// Attaches, records until the end, and prints a summary.
///
/// # Errors
/// When the process can't be attached to.
pub(crate) fn perform(options: AttachOptions) -> Result<(), Failure> {
    if let Some(watched) = options.periods.as_ref().and_then(|periods| periods.watched) {
        return record_for_watch(options, watched);
    }
    options.push.as_ref().map_or(Ok(()), PushPlan::check)?;
    let target = Target::find(options.pid)?;
    let attached = record_target(&target, &options)?;
    summary::say_periods(attached.of_periods, options.periods.as_ref(), options.quiet);
    summary::print_summary(&attached.path, false, options.quiet);
    if let Some(plan) = &options.push {
        push::recording(&attached.path, plan, options.quiet);
    }
    attached.keep_page();
    Ok(())
}

fn record_target(target: &Target, options: &AttachOptions) -> Result<AttachedRecording, Failure> {
    record(AttachPlan {
        target,
        request: options.request.clone(),
        periods: options.periods.as_ref(),
        instruments_given: &options.instruments_given,
        output: options.output.clone(),
        force: options.force,
        progress: !options.quiet && messages_on_terminal(),
        quiet: options.quiet,
        until: Until::End,
        view: options.view,
    })
}

/// Records a program for `clrscope watch`, and tells that watch what keeps the agent out.
fn record_for_watch(options: AttachOptions, watched: Watched) -> Result<(), Failure> {
    watched.end_with_it()?;
    let is_alive = {
        let process = Process::open(options.pid);
        move || process.as_ref().is_ok_and(Process::is_alive)
    };
    let recorded = Target::find(options.pid).and_then(|target| record_target(&target, &options));
    if let Err(failure) = recorded {
        if is_alive() { Event::Refused(failure.why().to_owned()) } else { Event::Gone }.tell();
    }
    Ok(())
}
