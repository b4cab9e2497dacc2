//! `clrscope run`: runs a program under the agent, with the program's own output and exit code.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use clrscope_contract::request::Request;

use crate::doctor::little_address_space;
use crate::errors::{Failure, one_line};
use crate::launch::{Debugger, Obstacle, OtherProfiler, Slot, Stdout, obstacles, resolve};
use crate::periods::PeriodOptions;
use crate::push::PushPlan;
use crate::session::{Plan, record};
use crate::terminal::{messages_on_terminal, results_on_terminal, say};
use crate::{programs, push, runtime, summary};

/// Options of `run`.
#[derive(Debug)]
pub(crate) struct RunOptions {
    /// The recording request, without a path.
    pub(crate) request: Request,
    /// Periods, if each becomes a separate recording; `None` for a single recording.
    pub(crate) periods: Option<PeriodOptions>,
    /// The instruments as the user gave them.
    pub(crate) instruments_given: String,
    /// Name of the recording; taken from the program when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Whether to overwrite existing files.
    pub(crate) force: bool,
    /// Whether to print nothing but errors.
    pub(crate) quiet: bool,
    /// Whether to show a line about the recording while the program runs.
    pub(crate) live: bool,
    /// Debugger to start the program under.
    pub(crate) debugger: Option<Debugger>,
    /// Whether to serve the page of the recording while it grows.
    pub(crate) view: bool,
    /// Where to push the recording to at its end; `None` to push nothing.
    pub(crate) push: Option<PushPlan>,
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
}

/// Runs the program. Returns its exit code.
///
/// # Errors
/// Only when the program did not start or its end was not seen.
pub(crate) fn perform(options: RunOptions) -> Result<u8, Failure> {
    let program = resolve(&options.command, runtime::host)?;
    options.push.as_ref().map_or(Ok(()), PushPlan::check)?;
    programs::check(&options.request.programs, options.request.trust_writable)?;
    let (slot, other) = Slot::choose(&options.request)?;
    if !options.quiet {
        say_slot(other.as_ref());
        // The runtime may fail to start, and its message then names neither clrscope nor the limit.
        if let Some(little) = little_address_space() {
            say(&format!("clrscope: {little}; if it does not start: ulimit -v unlimited, or -i calls:max=256MiB"));
        }
    }
    let recorded = record(Plan {
        program: &program,
        command: &options.command,
        request: options.request,
        slot,
        periods: options.periods.as_ref(),
        instruments_given: &options.instruments_given,
        output: options.output,
        force: options.force,
        progress: !options.quiet && messages_on_terminal(),
        // The program writes to the same terminal, unless its output is redirected.
        live: options.live || (!options.quiet && messages_on_terminal() && !results_on_terminal()),
        announce: !options.quiet && messages_on_terminal(),
        stdout: Stdout::Ours,
        debugger: options.debugger,
        view: options.view,
    })?;
    summary::say_periods(recorded.of_periods, options.periods.as_ref(), options.quiet);
    summary::after_run(&recorded, options.quiet);
    if let (Some(path), Some(plan)) = (&recorded.path, &options.push) {
        push::recording(path, plan, options.quiet);
    }
    recorded.keep_page();
    Ok(recorded.ended.code())
}

/// Warns if another profiler has the main slot, and if the environment switches profiling off.
pub(crate) fn say_slot(other: Option<&OtherProfiler>) {
    if let Some(other) = other {
        say(&one_line(format!(
            "clrscope: {} keeps the runtime's main slot; the agent runs as a notification-only profiler",
            other.in_words()
        )));
    }
    say_disabled("clrscope");
}

fn say_disabled(ours: &str) {
    for obstacle in obstacles(|name| env::var_os(name)) {
        if let Obstacle::Disabled(name) = obstacle {
            say(&format!("clrscope: {name}=0 disables every profiler, {ours} too, unless it is unset"));
        }
    }
}

/// Warns about another profiler in the environment, which is not loaded in this run, and about
/// variables that switch profiling off. Call it before the program's own output begins. `ours`
/// names the profiler to be loaded.
pub(super) fn warn_of_obstacles(ours: &str) {
    if let Some(OtherProfiler { variable, value, .. }) = OtherProfiler::find(|name| env::var_os(name)) {
        say(&one_line(format!(
            "clrscope: the profiler named by {variable} ({value}) is not loaded in this run; {ours} is"
        )));
    }
    say_disabled(ours);
}
