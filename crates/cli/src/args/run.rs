//! `clrscope run`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clrscope_contract::developer_log;
use clrscope_contract::instruments::ALL;

use super::push::PushArgs;
use super::recording::{RecordingArgs, ResultArgs, refuse_view};
use crate::commands::Task;
use crate::commands::run::RunOptions;
use crate::commands::run_profiler;
use crate::errors::{Failure, quoted};
use crate::launch::{Debugger, parse_class_id};

const EXAMPLES: &str = "\
Examples:
  clrscope run -- dotnet app.dll --port 8080
  clrscope run app.dll                           the same as: clrscope run -- dotnet app.dll
  clrscope run -i calls:clock=tsc,noinline -o slow.clrs -- ./app
  clrscope run --include '[Shop]*' --exclude '*::get_*' -- ./app
  clrscope run --only 'Shop.*' -- ./start-all.sh
  clrscope run --profiler target/release/libmine.so --clsid '{6F0E8E6B-...}' -- ./app

The exit code is the program's (128+n when signal n ended it); 125 when clrscope itself failed,
126 when the program can't be executed, 127 when it is not found.";

/// Start a program under the agent and record it
#[derive(Debug, Args)]
#[command(
    override_usage = "clrscope run [OPTIONS] [--] PROGRAM [ARGS]...",
    after_help = EXAMPLES,
    after_long_help = long_help()
)]
pub(super) struct Run {
    #[command(flatten)]
    recording: RecordingArgs,

    #[command(flatten)]
    result: ResultArgs,

    #[command(flatten)]
    push: PushArgs,

    /// Show time, samples and losses in a line on the terminal while the program runs; the
    /// program's own output may come in between
    #[arg(long, conflicts_with = "quiet")]
    live: bool,

    /// Start the program under gdb or lldb, or make it wait until a debugger attaches
    #[arg(long, value_enum, value_name = "DEBUGGER")]
    debugger: Option<DebuggerName>,

    /// Serve the recording's page while it grows, until Ctrl-C, and open it in a browser
    #[arg(long)]
    view: bool,

    /// Load this profiler library, your own or any other, instead of recording; needs --clsid
    #[arg(long, value_name = "LIB", requires = "clsid", conflicts_with_all = OF_RECORDINGS)]
    profiler: Option<PathBuf>,

    /// The class identifier of --profiler, such as '{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}'
    #[arg(long, value_name = "GUID", requires = "profiler")]
    clsid: Option<String>,

    /// The program and its arguments; 'app.dll' means 'dotnet app.dll'
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Options without meaning where nothing is recorded.
const OF_RECORDINGS: [&str; 30] = [
    "instruments",
    "include",
    "exclude",
    "probe",
    "probe_at",
    "redact",
    "just_my_code",
    "inlined",
    "delay",
    "duration",
    "last",
    "every",
    "keep",
    "triggers",
    "max_size",
    "rate",
    "no_children",
    "only",
    "only_from",
    "trust_writable",
    "labels",
    "no_command_line",
    "output",
    "force",
    "view",
    "live",
    "push",
    "push_header",
    "push_header_file",
    "push_spool",
];

/// The names of `--debugger`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum DebuggerName {
    Gdb,
    Lldb,
    Wait,
}

impl From<DebuggerName> for Debugger {
    fn from(name: DebuggerName) -> Self {
        match name {
            DebuggerName::Gdb => Self::Gdb,
            DebuggerName::Lldb => Self::Lldb,
            DebuggerName::Wait => Self::Wait,
        }
    }
}

impl Run {
    pub(super) fn into_task(self) -> Result<Task, Failure> {
        match (self.profiler, self.clsid) {
            (Some(library), Some(clsid)) => Ok(Task::RunProfiler(run_profiler::RunProfilerOptions {
                library,
                class_id: class_id(&clsid)?,
                debugger: self.debugger.map(Debugger::from),
                quiet: self.result.quiet,
                command: self.command,
            })),
            _ => {
                Self { profiler: None, clsid: None, ..self }.into_options().map(|options| Task::Run(Box::new(options)))
            }
        }
    }

    fn into_options(self) -> Result<RunOptions, Failure> {
        let instruments_given = self.recording.instruments_given();
        let mut push = self.push.into_plan()?;
        let periods = self.recording.periods(&self.result, &mut push)?;
        refuse_view(periods.as_ref(), self.view)?;
        Ok(RunOptions {
            periods,
            request: self.recording.into_request()?,
            instruments_given,
            output: self.result.output,
            force: self.result.force,
            quiet: self.result.quiet,
            live: self.live,
            debugger: self.debugger.map(Debugger::from),
            view: self.view,
            push,
            command: self.command,
        })
    }
}

fn class_id(text: &str) -> Result<String, Failure> {
    parse_class_id(text).ok_or_else(|| {
        Failure::usage(
            format!("'--clsid' does not take {}", quoted(text)),
            "a class id has 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12",
            "take it from the profiler's documentation, or from its export_profiler!",
        )
    })
}

/// Variables that the agent obeys besides, for the end of help.
fn environment() -> String {
    let levels = developer_log::LEVELS.join(", ");
    format!(
        "Environment:\n  {}={levels}\n      The agent in each process writes a log for its developers, which is kept \
         next to the recording\n      as NAME.clrs.agent-PID.log\n\n",
        developer_log::VARIABLE
    )
}

fn long_help() -> String {
    let mut text = String::from("Instruments (-i NAME[:OPTION[=VALUE],...]):\n");
    for instrument in ALL {
        text.push_str(&format!("  {}: {}\n", instrument.name, instrument.about));
        for (option, about) in instrument.option_lines() {
            text.push_str(&format!("      {option:<18} {about}\n"));
        }
    }
    text.push('\n');
    text.push_str(&environment());
    text.push_str(EXAMPLES);
    text
}
