//! `clrscope probe`.

use clap::{Args, ValueEnum};
use clrscope_contract::request::{PATTERN_HELP, Pattern};
use clrscope_recording::writer::Command;

use super::TextOrJson;
use super::recording::source_line;
use crate::commands::probe::{ProbeOptions, Wish};
use crate::errors::{Failure, quoted};
use crate::process_name::process_named;

const EXAMPLES: &str = "\
Examples:
  clrscope attach 4711 --probe 'Shop.Cart::*'        in another terminal, until Ctrl-C
  clrscope probe 4711 list                           calls and times so far
  clrscope probe 4711 add 'Shop.Till::Pay'           count and time these, too
  clrscope probe 4711 remove Shop.Cart::Clear        stop counting these
  clrscope probe 4711 add --at Cart.cs:42            how often this line is reached
  clrscope probe 4711 list --format json
  clrscope probe 4711 list --watch                   each second, with that second's times

Several users may change the probes of a process at once: the last command about a method counts,
also for modules loaded later. What was counted stays in the recording. All probes are removed when
the recording ends, even if its launcher is killed.";

/// Add and remove probes in a program recorded with -i probes, and list what they have counted
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Probe {
    /// The process, as 'clrscope ps' lists it
    #[arg(value_name = "PID|NAME")]
    process: String,

    /// Command for its probes
    #[arg(value_enum, value_name = "COMMAND")]
    command: CommandName,

    /// For add and remove: methods, as [assembly]Namespace.Type::Method with * and ?, each part
    /// optional
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,

    /// For add and remove: a source line, in each method with code there; can be repeated
    #[arg(long, value_name = "FILE:LINE")]
    at: Vec<String>,

    /// For list: text for people, or one JSON document
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<TextOrJson>,

    /// Show the list each second, with times of the last second's calls, until Ctrl-C or the end of
    /// the recording
    #[arg(long, conflicts_with = "format")]
    watch: bool,
}

/// The commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CommandName {
    /// Add probes to methods and lines
    Add,
    /// Remove probes from methods and lines
    Remove,
    /// Show what the probes have counted so far
    List,
}

impl Probe {
    pub(super) fn into_options(self) -> Result<ProbeOptions, Failure> {
        let patterns = self.patterns.iter().map(|text| checked(text)).collect::<Result<Vec<_>, _>>()?;
        let lines = self.at.iter().map(|text| checked_line(text)).collect::<Result<Vec<_>, _>>()?;
        let names_none = patterns.is_empty() && lines.is_empty();
        let (is_list, name) = match self.command {
            CommandName::Add => (false, "add"),
            CommandName::Remove => (false, "remove"),
            CommandName::List => (true, "list"),
        };
        if is_list && !names_none {
            let why = "the list has all methods and lines that have or had probes";
            return Err(Failure::usage("'probe PID list' takes no pattern and no --at", why, "leave it out"));
        }
        if !is_list && names_none {
            let what = format!("'probe PID {name}' is missing an argument");
            let hint = format!("write clrscope probe {} {name} 'Shop.Cart::*'", self.process);
            return Err(Failure::usage(what, "PATTERN or --at FILE:LINE is required", hint));
        }
        if !is_list && self.format.is_some() {
            let what = format!("'probe PID {name}' takes no --format");
            return Err(Failure::usage(what, "only the list has formats", "leave --format out"));
        }
        if !is_list && self.watch {
            let what = format!("'probe PID {name}' takes no --watch");
            return Err(Failure::usage(what, "only the list can be watched", "leave --watch out"));
        }
        let wish = match self.command {
            CommandName::List if self.watch => Wish::Watch,
            CommandName::List => Wish::List { json: self.format == Some(TextOrJson::Json) },
            CommandName::Add => changes(patterns, Command::Probe, lines, Command::ProbeLine),
            CommandName::Remove => changes(patterns, Command::Unprobe, lines, Command::UnprobeLine),
        };
        Ok(ProbeOptions { pid: process_named(&self.process)?, wish })
    }
}

/// Commands about methods, then those about lines.
fn changes(
    patterns: Vec<String>,
    of_methods: fn(String) -> Command,
    lines: Vec<String>,
    of_lines: fn(String) -> Command,
) -> Wish {
    Wish::Change(patterns.into_iter().map(of_methods).chain(lines.into_iter().map(of_lines)).collect())
}

/// A line that the agent will understand.
fn checked_line(text: &str) -> Result<String, Failure> {
    let line = source_line("--at", text)?.to_string();
    if line.len() > Command::LONGEST_PATTERN {
        let why = format!("it is longer than {} bytes", Command::LONGEST_PATTERN);
        return Err(Failure::usage(format!("'--at' does not take {}", quoted(text)), why, "name fewer folders"));
    }
    Ok(line)
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
