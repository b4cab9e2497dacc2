//! `clrscope probe`.

use clap::{Args, ValueEnum};
use clrscope_contract::request::{PATTERN_HELP, Pattern};
use clrscope_recording::writer::Command;

use super::TextOrJson;
use super::filters::whole;
use crate::commands::probe::{ProbeOptions, Wish};
use crate::errors::{Failure, quoted};

const EXAMPLES: &str = "\
Examples:
  clrscope attach 4711 --probe 'Shop.Cart::*'        in another terminal, until it is ended
  clrscope probe 4711 list                           calls and times so far
  clrscope probe 4711 add 'Shop.Till::Pay'           count and time these, too
  clrscope probe 4711 remove Shop.Cart::Clear        and these no more
  clrscope probe 4711 list --format json

Several may add and remove probes of one process at a time: the last word about a method counts, for
modules that are loaded later as well. What was counted stays in the recording. All probes go when
the recording ends, also when its launcher is killed.";

/// Add and remove probes of a program that is recorded with them, and list what they have counted
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Probe {
    /// The process, as 'clrscope ps' lists it
    #[arg(value_name = "PID", value_parser = whole::<u32>)]
    pid: u32,

    /// Command for its probes
    #[arg(value_enum, value_name = "COMMAND")]
    command: CommandName,

    /// Methods, of add and remove: [assembly]Namespace.Type::Method with * and ?, each part optional
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,

    /// Text for people, or one JSON document, of list
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<TextOrJson>,
}

/// The commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CommandName {
    /// Give methods probes
    Add,
    /// Take the probes of methods away
    Remove,
    /// Show what the probes have counted so far
    List,
}

impl Probe {
    pub(super) fn into_options(self) -> Result<ProbeOptions, Failure> {
        let patterns = self.patterns.iter().map(|text| checked(text)).collect::<Result<Vec<_>, _>>()?;
        let (is_list, name) = match self.command {
            CommandName::Add => (false, "add"),
            CommandName::Remove => (false, "remove"),
            CommandName::List => (true, "list"),
        };
        if is_list && !patterns.is_empty() {
            let why = "the list has all methods that have or had probes";
            return Err(Failure::usage("'probe PID list' takes no pattern", why, "leave the pattern out"));
        }
        if !is_list && patterns.is_empty() {
            let what = format!("'probe PID {name}' is missing an argument");
            let hint = format!("write clrscope probe {} {name} 'Shop.Cart::*'", self.pid);
            return Err(Failure::usage(what, "PATTERN is required", hint));
        }
        if !is_list && self.format.is_some() {
            let what = format!("'probe PID {name}' takes no --format");
            return Err(Failure::usage(what, "the formats are of the list", "leave --format out"));
        }
        let wish = match self.command {
            CommandName::List => Wish::List { json: self.format == Some(TextOrJson::Json) },
            CommandName::Add => Wish::Change(patterns.into_iter().map(Command::Probe).collect()),
            CommandName::Remove => Wish::Change(patterns.into_iter().map(Command::Unprobe).collect()),
        };
        Ok(ProbeOptions { pid: self.pid, wish })
    }
}

/// A pattern that the agent will understand.
fn checked(text: &str) -> Result<String, Failure> {
    let what = format!("{} is not a pattern", quoted(text));
    if text.len() > Command::LONGEST_PATTERN {
        let why = format!("it is longer than {} bytes", Command::LONGEST_PATTERN);
        return Err(Failure::usage(what, why, "name fewer parts, or give several patterns"));
    }
    match Pattern::parse(text) {
        Ok(pattern) => Ok(pattern.as_str().to_owned()),
        Err(error) => Err(Failure::usage(what, error.why, format!("patterns are {PATTERN_HELP}"))),
    }
}
