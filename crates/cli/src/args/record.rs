//! `clrscope record`.

use clap::{Args, ValueEnum};
use clrscope_recording::writer::Command;

use crate::commands::record::{RecordOptions, RecordTask};
use crate::errors::Failure;
use crate::process_name::process_named;
use crate::recorded_process::part_name;

const EXAMPLES: &str = "\
Examples:
  clrscope record 4711 mark warm           begins the part 'warm'
  clrscope record 4711 stop                records nothing from here on
  clrscope record 4711 start load          records again, as part 'load'
  clrscope record 4711 write               writes a copy of the recording so far to NAME-1.clrs
  clrscope report app.clrs --part load     only what was recorded in that part

The program's own code can begin and end parts, too: by the events Start(name) and Stop(name) of an
event source named 'clrscope'.";

/// Stop and start the recording of a running program, mark its parts, and write a copy of it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Record {
    /// The process, as 'clrscope ps' lists it
    #[arg(value_name = "PID|NAME")]
    process: String,

    /// Command for its recording
    #[arg(value_enum, value_name = "COMMAND")]
    command: CommandName,

    /// For start and mark: name of the part that begins; parts without a name are numbered
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// The commands.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum CommandName {
    /// Record again
    Start,
    /// Record nothing for now
    Stop,
    /// Keep recording, in a new part
    Mark,
    /// Keep recording, and write a copy of the recording so far (with --last: of its last part)
    Write,
}

impl Record {
    pub(super) fn into_options(self) -> Result<RecordOptions, Failure> {
        if let Some(name) = self.name.as_ref().filter(|_| !matches!(self.command, CommandName::Write)) {
            part_name(name, Command::LONGEST_NAME)?;
        }
        let command = match (self.command, self.name) {
            (CommandName::Start, name) => Command::Start(name.unwrap_or_default()),
            (CommandName::Mark, Some(name)) => Command::Mark(name),
            (CommandName::Stop, None) => Command::Stop,
            (CommandName::Mark, None) => {
                let what = "'record PID mark' is missing an argument";
                return Err(Failure::usage(what, "NAME is required", "write clrscope record PID mark warm"));
            }
            (CommandName::Write, None) => {
                return Ok(RecordOptions { pid: process_named(&self.process)?, task: RecordTask::Write });
            }
            (CommandName::Write, Some(_)) => {
                let why = "the copy lies in the current folder, with the recording's name and a number";
                return Err(Failure::usage("'record PID write' takes no name", why, "leave the name out"));
            }
            (CommandName::Stop, Some(_)) => {
                let why = "a stop ends a part, and the part has its name from its beginning";
                return Err(Failure::usage("'record PID stop' takes no name", why, "leave the name out"));
            }
        };
        Ok(RecordOptions { pid: process_named(&self.process)?, task: RecordTask::Command(command) })
    }
}
