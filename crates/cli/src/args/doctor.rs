//! `clrscope doctor`.

use clap::Args;

use crate::commands::doctor::DoctorOptions;

const EXAMPLES: &str = "\
Examples:
  clrscope doctor
  clrscope doctor --json
  clrscope doctor 1234
  eval \"$(clrscope env --shell --install /usr/local/lib/clrscope)\"; clrscope doctor --user web

Where the environment names an agent and a recording directory ('clrscope env'), these are tried.
The exit code is 1 when something keeps clrscope from recording here.";

/// Check what works here, what does not, and how to fix it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Doctor {
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,

    /// Try it all as this user, who runs the programs; for root
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Look at this process: can it be attached to, which C library has it, has it loaded the agent
    #[arg(value_name = "PID")]
    pid: Option<u32>,
}

impl Doctor {
    pub(super) fn into_options(self) -> DoctorOptions {
        DoctorOptions { json: self.json, user: self.user, pid: self.pid }
    }
}
