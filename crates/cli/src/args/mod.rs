//! The command line as clap reads it. Its types stay in here: each command gets plain options.

mod attach;
mod completions;
mod counters;
mod cover;
mod demo;
mod diff;
mod doctor;
mod env;
mod export;
mod filters;
mod heap;
mod man;
mod new;
mod pack;
mod probe;
mod ps;
mod push;
mod record;
mod recording;
mod report;
mod requests;
mod run;
mod stacks;
mod times;
mod top;
mod triage;
mod unit;
mod usage;
mod view;
mod watch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use crate::commands::Task;
use crate::errors::Failure;

const OVERVIEW: &str = "\
Examples:
  clrscope run -- dotnet app.dll        profile a program
  clrscope cover -- dotnet test         see which lines tests run
  clrscope attach PID                   profile a running program
  clrscope report app.clrs              read the recording
  clrscope view app.clrs                show it in a browser
  clrscope demo                         try it on a built-in program

'clrscope COMMAND --help' explains a command and shows an example.";

/// A profiler for .NET programs: where time and memory go, by samples, exact call trees and
/// snapshots
#[derive(Debug, Parser)]
#[command(name = "clrscope", version, after_help = OVERVIEW, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Run),
    Cover(Box<cover::Cover>),
    Record(record::Record),
    Attach(Box<attach::Attach>),
    Heap(heap::Heap),
    Stacks(stacks::Stacks),
    Triage(triage::Triage),
    Counters(counters::Counters),
    Top(top::Top),
    Watch(Box<watch::Watch>),
    Probe(probe::Probe),
    Ps(ps::Ps),
    Report(Box<report::Report>),
    View(Box<view::View>),
    Diff(Box<diff::Diff>),
    Export(Box<export::Export>),
    Push(Box<push::Push>),
    Pack(pack::Pack),
    Demo(demo::Demo),
    Doctor(doctor::Doctor),
    Env(env::Env),
    New(new::New),
    Completions(completions::Completions),
    Man(man::Man),
}

/// Outcome of parsing a command line.
#[derive(Debug)]
pub(crate) enum ParseOutcome {
    /// Do this.
    Task(Task),
    /// Print this, which was asked for (`--help`, `--version`), and succeed.
    Text(String),
}

/// Format of a list: text for people, or one JSON document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TextOrJson {
    Text,
    Json,
}

/// File that a result goes to: `-` is standard output, as without the option.
fn unless_stdout(output: Option<PathBuf>) -> Option<PathBuf> {
    output.filter(|file| file != Path::new("-"))
}

/// Reads a command line, the program's own name included.
///
/// # Errors
/// In the three lines of every failure, with the exit code of usage errors: 125 under `run` and
/// `cover`, else 2.
pub(crate) fn parse(arguments: &[OsString]) -> Result<ParseOutcome, Failure> {
    let under_run = arguments.get(1).is_some_and(|word| word == "run" || word == "cover");
    if under_run {
        crate::memory::under_run();
    }
    let is_diff = arguments.get(1).is_some_and(|word| word == "diff");
    if let Some(words) = unit::words(arguments) {
        return unit::parse(&words).map(|options| ParseOutcome::Task(Task::Unit(options)));
    }
    let marked = is_diff.then(|| diff::with_marked_sides(arguments));
    let result = match CommandLine::try_parse_from(marked.as_deref().unwrap_or(arguments)) {
        Ok(line) => line.command.into_task().map(ParseOutcome::Task),
        Err(error) => usage::explain(&error, known_command(arguments.get(1))).map(ParseOutcome::Text),
    };
    result.map_err(|failure| if under_run { failure.under_run() } else { failure })
}

/// The word after the program's name, if it is a command.
fn known_command(word: Option<&OsString>) -> Option<&str> {
    let word = word?.to_str()?;
    description().get_subcommands().any(|command| command.get_name() == word).then_some(word)
}

/// The whole command line as a description, for completions and the man page.
fn description() -> clap::Command {
    CommandLine::command()
}

impl Command {
    fn into_task(self) -> Result<Task, Failure> {
        Ok(match self {
            Self::Run(args) => args.into_task()?,
            Self::Cover(args) => Task::Cover(Box::new(args.into_options()?)),
            Self::Record(args) => Task::Record(args.into_options()?),
            Self::Attach(args) => Task::Attach(Box::new(args.into_options()?)),
            Self::Heap(args) => Task::Heap(args.into_options()?),
            Self::Stacks(args) => Task::Stacks(args.into_options()?),
            Self::Triage(args) => Task::Triage(args.into_options()?),
            Self::Counters(args) => Task::Counters(args.into_options()?),
            Self::Top(args) => Task::Top(args.into_options()?),
            Self::Watch(args) => Task::Watch(Box::new(args.into_plan()?)),
            Self::Probe(args) => Task::Probe(args.into_options()?),
            Self::Ps(args) => Task::Ps(args.into_options()),
            Self::Report(args) => args.into_task()?,
            Self::View(args) => Task::View(Box::new(args.into_options()?)),
            Self::Diff(args) => Task::Diff(Box::new(args.into_options()?)),
            Self::Export(args) => Task::Export(Box::new(args.into_options()?)),
            Self::Push(args) => Task::Push(Box::new(args.into_options()?)),
            Self::Pack(args) => Task::Pack(args.into_options()),
            Self::Demo(args) => Task::Demo(Box::new(args.into_options()?)),
            Self::Doctor(args) => Task::Doctor(args.into_options()),
            Self::Env(args) => Task::Env(Box::new(args.into_options()?)),
            Self::New(args) => Task::New(args.into_options()?),
            Self::Completions(args) => Task::Completions(Box::new(args.into_options(description()))),
            Self::Man(args) => Task::Man(Box::new(args.into_options(description()))),
        })
    }
}

#[cfg(test)]
mod tests {
    use clrscope_contract::instruments::{ALL, DEFAULT, Spec};

    use super::*;

    fn argument(command: &str, name: &str) -> clap::Arg {
        let description = description();
        let command = description.find_subcommand(command).expect("a command");
        command.get_arguments().find(|argument| argument.get_id() == name).expect("an argument").clone()
    }

    fn values(argument: &clap::Arg) -> Vec<String> {
        argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
    }

    #[test]
    fn clap_finds_no_fault_with_the_description() {
        description().debug_assert();
    }

    #[test]
    fn the_instruments_that_keep_their_last_time_or_rotate_are_told() {
        let keeps_last: fn(&Spec) -> bool = |spec| spec.keeps_last;
        let rotates: fn(&Spec) -> bool = |spec| spec.rotates;
        for (option, can) in [("last", keeps_last), ("every", rotates)] {
            let help = argument("run", option).get_help().expect("help").to_string();
            let (_, told) = help.split_once("; for ").expect("names of instruments");
            let mut told: Vec<&str> = told.split([',', ' ']).filter(|word| !["", "and"].contains(word)).collect();
            let mut wanted: Vec<&str> = ALL.iter().filter(|spec| can(spec)).map(|spec| spec.name).collect();
            told.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(told, wanted, "--{option}");
        }
    }

    #[test]
    fn instruments_are_completed_and_their_default_is_told() {
        for command in ["run", "attach", "env", "demo"] {
            let instruments = argument(command, "instruments");
            assert_eq!(
                values(&instruments),
                ALL.iter().map(|spec| spec.name).collect::<Vec<_>>(),
                "completions take them from here"
            );
            let help = instruments.get_help().expect("help").to_string();
            assert!(help.ends_with(&format!("[default: {}]", DEFAULT.name)), "{help}");
        }
    }

    #[test]
    fn the_views_of_instruments_are_views_of_reports() {
        let views = values(&argument("report", "view"));
        for spec in ALL {
            assert!(spec.views.iter().all(|view| views.iter().any(|known| known == view)), "{}", spec.name);
        }
    }

    /// Words of a line of a shell script, without its comment.
    fn words(line: &str) -> Vec<OsString> {
        let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<String>, false);
        for c in line.chars() {
            match c {
                '\'' => {
                    is_quoted = !is_quoted;
                    word.get_or_insert_default();
                }
                '#' if !is_quoted && word.is_none() => break,
                ';' if !is_quoted => break,
                ' ' if !is_quoted => words.extend(word.take()),
                '>' | '|' | '&' if !is_quoted => return words.into_iter().map(Into::into).collect(),
                c => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words.into_iter().map(Into::into).collect()
    }

    /// The commands in a document's code for shells; lines that end in a backslash go on in the
    /// next one.
    fn commands(document: &str) -> Vec<String> {
        let code = document.split("```").skip(1).step_by(2).filter_map(|code| code.strip_prefix("sh\n"));
        let lines = code.map(|code| code.replace("\\\n", " "));
        lines
            .flat_map(|code| code.lines().map(str::to_owned).collect::<Vec<_>>())
            .filter(|line| line.contains("clrscope "))
            .collect()
    }

    #[test]
    fn the_commands_of_documents_are_commands() {
        let documents = [
            include_str!("../../../../README.md"),
            include_str!("../../../../docs/commands.md"),
            include_str!("../../../../docs/comparing.md"),
            include_str!("../../../../docs/coverage.md"),
            include_str!("../../../../docs/parquet.md"),
            include_str!("../../../../docs/probes.md"),
            include_str!("../../../../docs/watch.md"),
        ];
        let commands: Vec<String> = documents.into_iter().flat_map(commands).collect();
        assert!(commands.len() > 80, "{}", commands.len());
        let wrong: Vec<String> =
            commands.iter().filter_map(|line| Some(format!("{line}: {:?}", refusal(line)?))).collect();
        assert_eq!(wrong, [""; 0]);
    }

    /// Refusal of the command in a line: variables and other commands may stand before it.
    fn refusal(line: &str) -> Option<Failure> {
        let command = &line[line.find("clrscope ")?..];
        let command = command.replace("PID", "4711").replace("{...}", "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}");
        parse(&words(&command)).err()
    }
}
