//! `clrscope push`, and the options of `--push`.

use std::ffi::OsString;
use std::path::{self, PathBuf};
use std::time::Duration;

use clap::Args;
use clrscope_contract::request::{parse_duration, parse_size};
use clrscope_push::{Patience, Target};

use super::TextOrJson;
use super::recording::{labels, not_taken};
use crate::commands::push::PushOptions;
use crate::errors::Failure;
use crate::push::{AT_THE_END, FOR_A_REQUEST, PushPlan, USUAL_BOUND, target};

const EXAMPLES: &str = "\
Examples:
  clrscope push app.clrs --to pyroscope=http://localhost:4040
  clrscope push app.clrs --to otlp=grpc://localhost:4317 --service shop --environment prod
  clrscope push app.clrs --to otlp=https://collector:4318 --push-header-file headers.txt
  clrscope push app.clrs --to /mnt/profiles --dry-run
  clrscope push --to pyroscope=http://localhost:4040      what waits in the spool

Targets: pyroscope=URL (its push API, or with a URL that ends in /ingest its older one), otlp=URL (http
and https, or grpc and grpcs), and a folder, which gets the recording itself.

Headers come from --push-header-file, or from the variable CLRSCOPE_PUSH_HEADERS: 'Name: value' lines.
'Authorization: Bearer file:/run/secrets/token' reads the rest of the value from a file. Headers are
never stored.

The exit code is 0 if everything was accepted, 4 if profiles wait in the spool for the next push, 5
if some were refused or lost, 1 if nothing could be pushed, 2 for a wrong command line.";

/// Options of `--push`.
#[derive(Debug, Args)]
pub(super) struct PushArgs {
    /// At the end push the recording to pyroscope=URL, otlp=URL or a folder, as 'clrscope push'
    /// does; can be repeated
    #[arg(long, value_name = "TARGET")]
    push: Vec<String>,

    #[command(flatten)]
    way: WayArgs,
}

/// Options of how to push.
#[derive(Debug, Args)]
struct WayArgs {
    /// File with headers for the receivers, such as 'Authorization: Bearer ...'; for several
    /// receivers, put each one's headers below a line '[URL]'
    #[arg(long, value_name = "FILE")]
    push_header_file: Option<PathBuf>,

    /// A header itself, which is refused: other users can see it
    #[arg(long, hide = true, value_name = "HEADER")]
    push_header: Vec<String>,

    /// Folder in which profiles wait for receivers [default: clrscope/spool in XDG_STATE_HOME or
    /// ~/.local/state]
    #[arg(long, value_name = "FOLDER")]
    push_spool: Option<PathBuf>,
}

impl WayArgs {
    /// Refuses headers on the command line, without repeating them.
    fn check(&self) -> Result<(), Failure> {
        if self.push_header.is_empty() {
            return Ok(());
        }
        let why = "other users can see what is on a command line";
        let hint = "put it into a file that only you can read, and name that with --push-header-file";
        Err(Failure::usage("'--push-header' takes no header", why, hint))
    }
}

impl PushArgs {
    /// The options again, for another command. Paths are absolute.
    pub(super) fn words(&self) -> Vec<OsString> {
        let targets = self.push.iter().flat_map(|target| ["--push".into(), target.into()]);
        let path = |name: &str, path: &Option<PathBuf>| {
            let absolute = |path: &PathBuf| path::absolute(path).unwrap_or_else(|_| path.clone()).into_os_string();
            path.as_ref().map(|path| [name.into(), absolute(path)]).into_iter().flatten().collect::<Vec<OsString>>()
        };
        let header_file = path("--push-header-file", &self.way.push_header_file);
        targets.chain(header_file).chain(path("--push-spool", &self.way.push_spool)).collect()
    }

    /// The plan, if there is something to push to.
    pub(super) fn into_plan(self) -> Result<Option<PushPlan>, Failure> {
        let Self { push, way } = self;
        way.check()?;
        if push.is_empty() {
            let unused = match (&way.push_header_file, &way.push_spool) {
                (Some(_), _) => "--push-header-file",
                (None, Some(_)) => "--push-spool",
                (None, None) => return Ok(None),
            };
            let why = "there is no receiver";
            return Err(Failure::usage(format!("'{unused}' can't be used alone"), why, "add --push TARGET"));
        }
        let patience = Patience { request: FOR_A_REQUEST, retry: AT_THE_END };
        let plan = PushPlan {
            targets: targets("--push", &push)?,
            header_file: way.push_header_file,
            spool: way.push_spool,
            bound: USUAL_BOUND,
            patience,
        };
        Ok(Some(plan))
    }
}

/// Send recordings to Pyroscope, an OpenTelemetry receiver or a folder
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Push {
    /// The recordings: NAME.clrs or NAME.clrs.d; without one only what waits in the spool is sent
    #[arg(value_name = "REC")]
    recordings: Vec<PathBuf>,

    /// Where to: pyroscope=URL, otlp=URL or a folder; can be repeated
    #[arg(long, value_name = "TARGET", required = true)]
    to: Vec<String>,

    /// Name of the service, as --label service.name=NAME
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// Version of the service, as --label service.version=VERSION
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,

    /// Environment, as --label deployment.environment.name=NAME
    #[arg(long, value_name = "NAME")]
    environment: Option<String>,

    /// Host, as --label host.name=NAME
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// A label in place of the recording's own, or in addition; can be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,

    #[command(flatten)]
    way: WayArgs,

    /// Maximum size of the spool; beyond it the oldest profiles are deleted, and counted as lost
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    spool_size: u64,

    /// How long to retry while a receiver accepts nothing (0: try once); then profiles wait in the
    /// spool
    #[arg(long, value_name = "TIME", default_value = "1m")]
    retry_for: String,

    /// Time limit for one request and its answer
    #[arg(long, value_name = "TIME", default_value = "30s")]
    timeout: String,

    /// Say what would be sent, but send and write nothing
    #[arg(long)]
    dry_run: bool,

    /// Text for people, or one JSON document
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    format: TextOrJson,
}

impl Push {
    pub(super) fn into_options(self) -> Result<PushOptions, Failure> {
        self.way.check()?;
        let of_options = [
            ("service.name", self.service),
            ("service.version", self.version),
            ("deployment.environment.name", self.environment),
            ("host.name", self.host),
        ];
        let of_options = of_options.into_iter().filter_map(|(key, value)| Some(format!("{key}={}", value?)));
        let texts: Vec<String> = of_options.chain(self.labels).collect();
        let retry = if self.retry_for == "0" { Duration::ZERO } else { time("--retry-for", &self.retry_for)? };
        let patience = Patience { request: time("--timeout", &self.timeout)?, retry };
        Ok(PushOptions {
            recordings: self.recordings,
            labels: labels(&texts)?,
            plan: PushPlan {
                targets: targets("--to", &self.to)?,
                header_file: self.way.push_header_file,
                spool: self.way.push_spool,
                bound: self.spool_size,
                patience,
            },
            dry_run: self.dry_run,
            json: self.format == TextOrJson::Json,
        })
    }
}

/// The targets, without duplicates.
fn targets(option: &str, texts: &[String]) -> Result<Vec<Target>, Failure> {
    let mut targets = Vec::new();
    for text in texts {
        let target = target(option, text)?;
        if !targets.contains(&target) {
            targets.push(target);
        }
    }
    Ok(targets)
}

fn time(option: &str, text: &str) -> Result<Duration, Failure> {
    let time = parse_duration(text).map_err(not_taken(option, text, "30s"))?;
    Ok(Duration::from_millis(time))
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.0)
}
