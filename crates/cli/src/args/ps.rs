//! `clrscope ps`.

use clap::Args;

use super::TextOrJson;
use crate::commands::ps::PsOptions;

const EXAMPLES: &str = "\
Examples:
  clrscope ps
  clrscope ps --format json

The column 'agent' says whether clrscope's library is in the process, even from an earlier attach.
'sleeps': the runtime can't detach the agent, because it changed methods (probes, awaits, requests);
it records nothing until the next attach wakes it. JSON has this as 'agent_sleeps'.";

/// List the .NET processes of this machine
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Ps {
    /// Text for people, or one JSON document
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    format: TextOrJson,
}

impl Ps {
    pub(super) fn into_options(self) -> PsOptions {
        PsOptions { json: self.format == TextOrJson::Json }
    }
}
