//! `clrscope triage`.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use clrscope_contract::request::parse_duration;

use super::TextOrJson;
use super::recording::not_taken;
use crate::commands::triage::{TriageOptions, TriageTarget};
use crate::errors::Failure;
use crate::process_name::process_named;

const EXAMPLES: &str = "\
Examples:
  clrscope ps                              which processes there are
  clrscope triage 4711                     ten seconds, then a verdict
  clrscope triage app.clrs                 a verdict on a recording
  clrscope triage 4711 --format json

Verdicts: bound by CPU time, waiting, thread pool starved, lock convoy, allocation storm, bound by
collections, growing heap, exception storm, idle, nothing. Each comes with its evidence and a
command for a closer look. A verdict is 'certain' if its evidence excludes the others. The heap is
not walked, and the agent detaches afterwards.";

/// Watch a program for ten seconds, and say what is wrong with it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Triage {
    /// Text for people, or one JSON document
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    format: TextOrJson,

    /// How long to watch a program, such as 30s
    #[arg(long, value_name = "TIME", default_value = "10s")]
    duration: String,

    /// The process, as 'clrscope ps' lists it, or a recording
    #[arg(value_name = "PID|NAME|REC")]
    target: String,
}

impl Triage {
    pub(super) fn into_options(self) -> Result<TriageOptions, Failure> {
        let Self { format, duration, target } = self;
        let time = parse_duration(&duration).map_err(not_taken("--duration", &duration, "10s"))?;
        let is_recording = [".clrs", ".clrs.d"].iter().any(|end| target.trim_end_matches('/').ends_with(end));
        let target = match is_recording || Path::new(&target).exists() {
            true => TriageTarget::Recording(target.into()),
            false => TriageTarget::Process(process_named(&target)?, Duration::from_millis(time)),
        };
        Ok(TriageOptions { target, json: format == TextOrJson::Json })
    }
}
