//! `clrscope doctor`.

use clap::Args;

use crate::commands::doctor::DoctorOptions;

const EXAMPLES: &str = "\
Examples:
  clrscope doctor
  clrscope doctor --json

The exit code is 1 when something keeps clrscope from recording here.";

/// Check what works here, what does not, and how to fix it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Doctor {
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(super) fn into_options(self) -> DoctorOptions {
        DoctorOptions { json: self.json }
    }
}
