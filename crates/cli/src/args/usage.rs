//! clap's complaints in the three lines of every failure.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use clrscope_contract::words::nearest;

use super::description;
use crate::errors::Failure;

/// The text that was asked for (`--help`, `--version`), or what is wrong with the command line.
/// `command` is the word after the program's name, for the hint.
pub(super) fn explain(error: &Error, command: Option<&str>) -> Result<String, Failure> {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return Ok(error.render().ansi().to_string());
    }
    let command = command_of(error, command);
    let (what, why) = words(error, &command);
    Err(Failure::usage(what, why, hint(error, &command)))
}

fn words(error: &Error, command: &str) -> (String, String) {
    let argument = first(error, ContextKind::InvalidArg).map_or_else(|| "an argument".to_owned(), |a| bare(&a));
    let value = first(error, ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            let missing: Vec<String> = all(error, ContextKind::InvalidArg).iter().map(|a| bare(a)).collect();
            let missing = missing.join(" and ");
            (format!("'{command}' is missing an argument"), format!("{missing} is required"))
        }
        ErrorKind::UnknownArgument => {
            (format!("unknown argument '{argument}'"), format!("'{command}' does not know it"))
        }
        ErrorKind::InvalidSubcommand => {
            let name = first(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            (format!("unknown command '{name}'"), "clrscope has no such command".to_owned())
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            (format!("'{command}' needs a command"), "none was given".to_owned())
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            (format!("'{argument}' needs a value"), "none was given".to_owned())
        }
        ErrorKind::InvalidValue => (format!("'{argument}' does not take '{value}'"), possible(error)),
        ErrorKind::ValueValidation => (format!("'{argument}' does not take '{value}'"), source(error)),
        ErrorKind::ArgumentConflict => {
            let mut given: Vec<String> = all(error, ContextKind::PriorArg).iter().map(|a| bare(a)).collect();
            given.retain(|other| *other != argument);
            match given.is_empty() {
                true => (format!("'{argument}' is given twice"), "it can be given once".to_owned()),
                false => (format!("'{argument}' can't be used here"), format!("it excludes {}", given.join(" and "))),
            }
        }
        _ => (format!("'{command}' was not understood"), first_line(error)),
    }
}

/// Hint with the word that was most likely meant, by the same measure everywhere, else where help
/// is.
fn hint(error: &Error, command: &str) -> String {
    let near = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let known: Vec<String> = description().get_subcommands().map(|one| one.get_name().to_owned()).collect();
            near_of(first(error, ContextKind::InvalidSubcommand), &known)
        }
        ErrorKind::UnknownArgument => {
            let given = first(error, ContextKind::InvalidArg).map(|argument| bare(&argument));
            let known = options_of(command.trim_start_matches("clrscope").trim());
            given.filter(|given| given.starts_with("--")).and_then(|given| near_of(Some(given), &known))
        }
        _ => near_of(first(error, ContextKind::InvalidValue), &all(error, ContextKind::ValidValue)),
    };
    near.map_or_else(|| format!("see '{command} --help'"), |near| format!("did you mean '{near}'?"))
}

fn near_of(word: Option<String>, known: &[String]) -> Option<String> {
    nearest(&word?, known.iter().map(String::as_str)).map(str::to_owned)
}

/// The long options of a command.
fn options_of(command: &str) -> Vec<String> {
    let description = description();
    let command = description.find_subcommand(command).unwrap_or(&description);
    let longs =
        command.get_arguments().flat_map(|argument| argument.get_long_and_visible_aliases().unwrap_or_default());
    longs.map(|long| format!("--{long}")).collect()
}

fn possible(error: &Error) -> String {
    match all(error, ContextKind::ValidValue) {
        known if known.is_empty() => first_line(error),
        known => format!("it takes one of: {}", known.join(", ")),
    }
}

/// Message of the value's parser, else clap's own words.
fn source(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(|| first_line(error), ToString::to_string)
}

fn first_line(error: &Error) -> String {
    let text = error.render().to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The command whose usage clap shows: its words before the first argument.
fn command_of(error: &Error, given: Option<&str>) -> String {
    let usage = match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => usage.to_string(),
        _ => String::new(),
    };
    let words = usage.trim_start_matches("Usage:").split_whitespace();
    let command: Vec<&str> = words.take_while(|w| w.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    match (command.is_empty(), given) {
        (false, _) => command.join(" "),
        (true, Some(given)) => format!("clrscope {given}"),
        (true, None) => "clrscope".to_owned(),
    }
}

/// `--rate` of `--rate <HZ>`, `REC` of `<REC>`.
fn bare(argument: &str) -> String {
    let word = argument.split_whitespace().next().unwrap_or(argument);
    word.trim_end_matches("...").trim_matches(['<', '>', '[', ']']).to_owned()
}

fn first(error: &Error, kind: ContextKind) -> Option<String> {
    all(error, kind).into_iter().next()
}

fn all(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        Some(ContextValue::StyledStr(text)) => vec![text.to_string()],
        Some(ContextValue::StyledStrs(texts)) => texts.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}
