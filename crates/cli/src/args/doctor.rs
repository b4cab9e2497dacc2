//! `clrscope doctor`.

use clap::Args;

use crate::commands::doctor::DoctorOptions;

const EXAMPLES: &str = "\
Examples:
  clrscope doctor
  clrscope doctor --json
  clrscope doctor 1234
  eval \"$(clrscope env --shell --install /usr/local/lib/clrscope)\"; clrscope doctor --user web

If the environment names an agent and a recording directory ('clrscope env'), doctor tries these.
The exit code is 1 if something prevents recording here.";

/// Check what works here, what does not, and how to fix it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Doctor {
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,

    /// Run all checks as this user, who runs the programs; only for root
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Check this process: whether attach works, which C library it uses, whether it loaded the
    /// agent
    #[arg(value_name = "PID")]
    pid: Option<u32>,
}

impl Doctor {
    pub(super) fn into_options(self) -> DoctorOptions {
        DoctorOptions { json: self.json, user: self.user, pid: self.pid }
    }
}
