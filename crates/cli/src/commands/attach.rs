//! `clrscope attach`: records a running program, and detaches from it.

use std::path::PathBuf;

use clrscope_contract::request::Request;

use crate::attach::{AttachPlan, Target, Until, record};
use crate::errors::Failure;
use crate::periods::PeriodOptions;
use crate::push::{self, PushPlan};
use crate::summary;
use crate::terminal::messages_on_terminal;

/// Options of `attach`.
#[derive(Debug)]
pub(crate) struct AttachOptions {
    /// The process.
    pub(crate) pid: u32,
    /// Request, without a place.
    pub(crate) request: Request,
    /// Periods, if each becomes a recording; `None` for one recording.
    pub(crate) periods: Option<PeriodOptions>,
    /// The instruments as given.
    pub(crate) instruments_given: String,
    /// Path of the recording; named after the program when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Whether to overwrite existing files.
    pub(crate) force: bool,
    /// Whether to print nothing but errors.
    pub(crate) quiet: bool,
    /// Serve the page of the recording while it grows.
    pub(crate) view: bool,
    /// Where to push the recording to at its end.
    pub(crate) push: Option<PushPlan>,
}

/// Attaches, records until the end, and prints a summary.
///
/// # Errors
/// When the process can't be attached to.
pub(crate) fn perform(options: AttachOptions) -> Result<(), Failure> {
    options.push.as_ref().map_or(Ok(()), PushPlan::check)?;
    let target = Target::find(options.pid)?;
    let attached = record(AttachPlan {
        target: &target,
        request: options.request,
        periods: options.periods.as_ref(),
        instruments_given: &options.instruments_given,
        output: options.output,
        force: options.force,
        progress: !options.quiet && messages_on_terminal(),
        quiet: options.quiet,
        until: Until::End,
        view: options.view,
    })?;
    summary::say_periods(attached.of_periods, options.periods.as_ref(), options.quiet);
    summary::print_summary(&attached.path, false, options.quiet);
    if let Some(plan) = &options.push {
        push::recording(&attached.path, plan, options.quiet);
    }
    attached.keep_page();
    Ok(())
}
