//! `clrscope watch`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clrscope_contract::instruments::{check_all, check_for_attach, cpu, exceptions, find, gc, samples};
use clrscope_contract::request::{InstrumentRequest, parse_duration};

use super::push::PushArgs;
use super::recording::{InstrumentArgs, keep, not_taken, of_watch, programs, rate};
use crate::errors::{Failure, quoted};
use crate::watch::{Budget, WatchPlan};

const EXAMPLES: &str = "\
Examples:
  clrscope watch --only 'Shop*' -o /var/lib/clrscope
  clrscope watch --only '*' --every 10m --keep 7d,50GiB -o recordings
  clrscope watch --only-from /etc/clrscope/programs --push otlp=grpc://collector:4317 -o recordings
  clrscope watch --only 'Shop*' -i cpu -i requests --budget 5% --for 1h -o recordings
  clrscope env --systemd --watch --only 'Shop*' -o /var/lib/clrscope     the unit of a service

Each program that matches gets its own folder in the folder of -o, with a recording for each
period. A separate process, 'clrscope attach --every', records it as soon as its runtime listens.
Root records the programs of all users, others their own. Programs with a debugger or another
profiler, and those that don't allow attach, are left alone; messages and the file watch.json say
why.

Ctrl-C and SIGTERM end all recordings; the exit code is then 0. It is 6 if another watch of this
user already runs on this host.";

/// Instruments that are cheap together.
const USUAL: [&str; 3] = [cpu::SPEC.name, gc::SPEC.name, exceptions::SPEC.name];

/// Record the .NET programs of this host, as they come and go
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    mut_arg("instruments", |arg| {
        arg.help("Instrument with its options; can be repeated [default: cpu, gc and exceptions]")
    }),
    mut_arg("push", |arg| {
        arg.help("Push each recording, once written, to pyroscope=URL, otlp=URL or a folder; can be repeated")
    })
)]
pub(super) struct Watch {
    /// Programs whose executable or entry assembly matches, by name or path, such as 'MyApp*' or
    /// '/srv/shop/*', or '*' for all; can be repeated
    #[arg(long, value_name = "PATTERN", required_unless_present = "only_from")]
    only: Vec<String>,

    /// Programs that match a line of this file, which is read again for each program; can be
    /// repeated
    #[arg(long, value_name = "FILE")]
    only_from: Vec<PathBuf>,

    #[command(flatten)]
    instruments: InstrumentArgs,

    /// Samples per second, for all sampling instruments
    #[arg(long, value_name = "HZ", default_value_t = 100, value_parser = rate)]
    rate: u32,

    /// Length of a period; each becomes a recording
    #[arg(long, value_name = "TIME", default_value = "1m")]
    every: String,

    /// Limits for the recordings to keep of all programs together, by number, age or total size,
    /// such as 24h,10GiB or 1000; beyond any limit the oldest are deleted [default: 24h,10GiB]
    #[arg(long, value_name = "LIMITS")]
    keep: Option<String>,

    /// Folder for the programs' folders, and for watch.json with the state of the watch
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// End after this time, such as 1h [default: only by a signal]
    #[arg(long = "for", value_name = "TIME")]
    ends_after: Option<String>,

    /// Limits for recording: share of one processor for each program, and memory for all of them
    /// together. To keep them, rates are lowered, then programs are left alone
    #[arg(long, value_name = "LIMITS", default_value = "2%,512MiB")]
    budget: String,

    /// Lock file of this watch; name another for a second watch, of other programs [default: one
    /// per user]
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,

    #[command(flatten)]
    push: PushArgs,

    /// A label for all recordings, such as deployment.environment.name=prod; can be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,

    /// Leave the arguments of programs out of the recordings: they may contain secrets
    #[arg(long)]
    no_command_line: bool,

    /// Accept an agent or a file of --only-from even if other users can write it or its folder
    #[arg(long)]
    trust_writable: bool,

    /// Print only warnings and errors
    #[arg(short, long)]
    quiet: bool,
}

impl Watch {
    pub(super) fn into_plan(self) -> Result<WatchPlan, Failure> {
        let time = |option: &str, text: &str| {
            let taken = parse_duration(text).map_err(not_taken(option, text, "1h"));
            taken.map(Duration::from_millis)
        };
        let instruments = self.instruments.texts(&USUAL);
        let request =
            of_watch(instruments.clone(), self.every.clone(), self.rate, self.labels.clone()).into_request()?;
        check_all(&request).and_then(|checked| check_for_attach(&checked)).map_err(|refusal| {
            let what = format!("cannot watch with {}", quoted(&instruments.join(";")));
            Failure::usage(what, refusal.why, refusal.hint)
        })?;
        let mut options: Vec<OsString> = vec!["--every".into(), self.every.into()];
        let mut add = |name: &str, values: &[String]| {
            options.extend(values.iter().flat_map(|value| [OsString::from(name), OsString::from(value)]));
        };
        add("-i", &instruments);
        add("--label", &self.labels);
        options.extend(self.push.words());
        for (name, is_given) in [("--no-command-line", self.no_command_line), ("--trust-writable", self.trust_writable)]
        {
            options.extend(is_given.then(|| OsString::from(name)));
        }
        let budget = Budget::parse(&self.budget).map_err(|why| {
            Failure::usage(
                format!("'--budget' does not take {}", quoted(&self.budget)),
                why,
                "write --budget 2%,512MiB",
            )
        })?;
        Ok(WatchPlan {
            programs: programs(&self.only, &self.only_from)?,
            trust_writable: self.trust_writable,
            options,
            rate: self.rate,
            has_rate: has_rate(&instruments),
            every: Duration::from_millis(request.every_ms.unwrap_or_default()),
            keep: keep(self.keep.as_deref())?,
            folder: self.output,
            ends_after: self.ends_after.as_deref().map(|text| time("--for", text)).transpose()?,
            budget,
            lock: self.lock,
            push: self.push.into_plan()?,
            quiet: self.quiet,
        })
    }
}

/// Whether an instrument takes samples at the rate of `--rate`, and not at one of its own.
fn has_rate(instruments: &[String]) -> bool {
    instruments.iter().flat_map(|text| InstrumentRequest::parse(text)).any(|one| {
        let takes_one = find(&one.name).is_some_and(|spec| spec.option(samples::RATE).is_some());
        takes_one && !one.options.iter().any(|(name, _)| name == samples::RATE)
    })
}
