//! `clrscope env --systemd --watch`: takes the options of `clrscope watch`.

use std::ffi::OsString;

use clap::Parser;

use super::{Command, CommandLine, usage};
use crate::commands::unit::UnitOptions;
use crate::errors::{Failure, quoted};

/// The words after `env`, if they ask for the unit of a watch, and not for help.
pub(super) fn words(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let words = arguments.get(2..).filter(|_| arguments.get(1).is_some_and(|word| word == "env"))?;
    let has = |name: &str| words.iter().any(|word| word == name);
    (has("--watch") && !has("--help") && !has("-h")).then(|| words.to_vec())
}

/// Reads the words: `--systemd`, `--watch` and `--user` are those of `env`, all others those of
/// `watch`.
///
/// # Errors
/// When they can't be used.
pub(super) fn parse(words: &[OsString]) -> Result<UnitOptions, Failure> {
    let (mut of_watch, mut user, mut is_systemd) = (Vec::new(), None, false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--systemd") => is_systemd = true,
            Some("--watch") => {}
            Some("--user") => user = words.next().and_then(|word| word.to_str()).map(str::to_owned),
            Some(text) => match text.strip_prefix("--user=") {
                Some(name) => user = Some(name.to_owned()),
                None => of_watch.push(text.to_owned()),
            },
            None => {
                let what = format!("a unit can't have {}", quoted(&word.to_string_lossy()));
                return Err(Failure::usage(what, "it is not UTF-8", "write it in UTF-8"));
            }
        }
    }
    if !is_systemd {
        let why = "it prints the unit of a service";
        return Err(Failure::usage("'--watch' is for --systemd", why, "write clrscope env --systemd --watch"));
    }
    let line = ["clrscope", "watch"].into_iter().chain(of_watch.iter().map(String::as_str));
    let command = match CommandLine::try_parse_from(line) {
        Ok(line) => line.command,
        // What is no error is help, and that was asked of `env`.
        Err(error) => return Err(usage::explain(&error, Some("watch")).err().unwrap_or_else(no_options)),
    };
    let Command::Watch(watch) = command else { return Err(no_options()) };
    let plan = watch.into_plan()?;
    Ok(UnitOptions { words: of_watch, folder: plan.folder, user })
}

fn no_options() -> Failure {
    let hint = "'clrscope watch --help' lists them";
    Failure::usage("'--watch' takes the options of clrscope watch", "these are others", hint)
}
