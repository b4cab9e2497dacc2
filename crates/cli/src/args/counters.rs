//! `clrscope counters`.

use clap::Args;
use clrscope_contract::request::Glob;
use clrscope_report::Format;

use super::TextOrJson;
use crate::commands::counters::CountersOptions;
use crate::errors::{Failure, quoted};
use crate::process_name::process_named;

const EXAMPLES: &str = "\
Examples:
  clrscope ps                                        which processes there are
  clrscope counters 4711                             a screen, new each second
  clrscope counters 4711 --name 'System.Runtime/*'   some of them
  clrscope counters 4711 --once --format json        their values once, for scripts

Keys: q quit, p pause, s sort, / filter, arrows scroll. Event counters and meters of the runtime,
ASP.NET Core, HttpClient and the program's own. If stdout is not a terminal, a block of lines is
printed each second. The agent detaches when the screen closes, and nothing is kept.";

/// Show the event counters and meters of a running program, live
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Counters {
    /// Show the values of one second, then exit
    #[arg(long)]
    once: bool,

    /// With --once: text for people, or one JSON document
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    format: TextOrJson,

    /// Only counters that match, by name or as PROVIDER/NAME; can be repeated
    #[arg(long = "name", value_name = "PATTERN")]
    names: Vec<String>,

    /// The process, as 'clrscope ps' lists it
    #[arg(value_name = "PID|NAME")]
    process: String,
}

impl Counters {
    pub(super) fn into_options(self) -> Result<CountersOptions, Failure> {
        let Self { once, format, names, process } = self;
        needs_once(once, format)?;
        let format = if format == TextOrJson::Json { Format::Json } else { Format::Text };
        Ok(CountersOptions {
            pid: process_named(&process)?,
            once: once.then_some(format),
            names: names.iter().map(|name| Glob::new(name)).collect(),
        })
    }
}

/// Refuses a document that would have no end.
pub(super) fn needs_once(once: bool, format: TextOrJson) -> Result<(), Failure> {
    if format == TextOrJson::Json && !once {
        let what = format!("cannot show {} live", quoted("--format json"));
        return Err(Failure::usage(what, "a JSON document must end", "add --once"));
    }
    Ok(())
}
