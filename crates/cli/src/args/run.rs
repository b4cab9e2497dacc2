//! `clrscope run`.

use std::ffi::OsString;
use std::path::{self, Path, PathBuf};

use clap::{Args, ValueEnum};
use clrscope_recording::request::{
    Filter, Glob, InstrumentRequest, Pattern, Programs, Request, RequestError, parse_duration,
};

use crate::commands::Task;
use crate::commands::run::Options;
use crate::commands::run_profiler;
use crate::errors::{Failure, quoted, reason, shown};
use crate::instruments;
use crate::launch::{Debugger, parse_class_id};

const EXAMPLES: &str = "\
Examples:
  clrscope run -- dotnet app.dll --port 8080
  clrscope run app.dll                           the same as: clrscope run -- dotnet app.dll
  clrscope run -i calls:clock=tsc,noinline -o slow.clrs -- ./app
  clrscope run --include '[Shop]*' --exclude '*::get_*' -- ./app
  clrscope run --only 'Shop.*' -- ./start-all.sh
  clrscope run --profiler target/release/libmine.so --clsid '{6F0E8E6B-...}' -- ./app

The exit code is the program's (128+n when signal n ended it); 125 when clrscope itself failed,
126 when the program can't be executed, 127 when it is not found.";

/// Start a program under the agent and record it
#[derive(Debug, Args)]
#[command(
    override_usage = "clrscope run [OPTIONS] [--] PROGRAM [ARGS]...",
    after_help = EXAMPLES,
    after_long_help = long_help()
)]
pub(super) struct Run {
    #[command(flatten)]
    recording: RecordingArgs,

    /// Recording to write [default: ./PROGRAM-YYYYMMDD-HHMMSS.clrs]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Overwrite the recording if it exists
    #[arg(long)]
    force: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,

    /// Start the program under gdb or lldb, or let it wait until any debugger attaches
    #[arg(long, value_enum, value_name = "DEBUGGER")]
    debugger: Option<DebuggerName>,

    /// Load this profiler, of your own or of anybody, instead of recording; needs --clsid
    #[arg(long, value_name = "LIB", requires = "clsid", conflicts_with_all = OF_RECORDINGS)]
    profiler: Option<PathBuf>,

    /// The class identifier of --profiler, such as '{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}'
    #[arg(long, value_name = "GUID", requires = "profiler")]
    clsid: Option<String>,

    /// The program and its arguments; 'app.dll' means 'dotnet app.dll'
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// What has no meaning where nothing is recorded.
const OF_RECORDINGS: [&str; 13] = [
    "instruments",
    "include",
    "exclude",
    "redact",
    "just_my_code",
    "duration",
    "rate",
    "no_children",
    "only",
    "only_from",
    "trust_writable",
    "output",
    "force",
];

/// The names of `--debugger`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum DebuggerName {
    Gdb,
    Lldb,
    Wait,
}

impl From<DebuggerName> for Debugger {
    fn from(name: DebuggerName) -> Self {
        match name {
            DebuggerName::Gdb => Self::Gdb,
            DebuggerName::Lldb => Self::Lldb,
            DebuggerName::Wait => Self::Wait,
        }
    }
}

/// What to record: the same for every command that makes a recording or prepares one.
#[derive(Debug, Args)]
pub(super) struct RecordingArgs {
    /// What to record; can be repeated [default: calls]
    #[arg(short, long = "instrument", value_name = "NAME[:OPTION,...]")]
    instruments: Vec<String>,

    /// Only functions that match, such as '[MyApp]*' or 'Shop.Cart::*'; can be repeated
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,

    /// No functions that match; wins over --include; can be repeated
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,

    /// With flow:args: parameters and fields whose values are not recorded, such as '*password*'; can be repeated
    #[arg(long, value_name = "PATTERN")]
    redact: Vec<String>,

    /// Leave out the framework's assemblies
    #[arg(long)]
    just_my_code: bool,

    /// End the recording, not the program, after this time, such as 500ms, 10s or 2m
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,

    /// Looks per second of the sampling clock
    #[arg(long, value_name = "HZ", default_value_t = 1000, value_parser = rate)]
    rate: u32,

    /// Record the program alone, not the .NET programs it starts
    #[arg(long)]
    no_children: bool,

    /// Only programs whose executable or entry assembly matches, by name or path, such as 'MyApp*' or '/srv/shop/*'; can be repeated
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,

    /// Only programs that match a line of this file; each program reads it when it starts; can be repeated
    #[arg(long, value_name = "FILE")]
    only_from: Vec<PathBuf>,

    /// Accept an agent, or a file of --only-from, that others can write, or that lies in a folder they can write
    #[arg(long)]
    trust_writable: bool,
}

impl Run {
    pub(super) fn into_task(self) -> Result<Task, Failure> {
        match (self.profiler, self.clsid) {
            (Some(library), Some(clsid)) => Ok(Task::RunProfiler(run_profiler::Options {
                library,
                class_id: class_id(&clsid)?,
                debugger: self.debugger.map(Debugger::from),
                quiet: self.quiet,
                command: self.command,
            })),
            _ => {
                Self { profiler: None, clsid: None, ..self }.into_options().map(|options| Task::Run(Box::new(options)))
            }
        }
    }

    fn into_options(self) -> Result<Options, Failure> {
        let instruments_given = self.recording.instruments_given();
        Ok(Options {
            request: self.recording.into_request()?,
            instruments_given,
            output: self.output,
            force: self.force,
            quiet: self.quiet,
            debugger: self.debugger.map(Debugger::from),
            command: self.command,
        })
    }
}

fn class_id(text: &str) -> Result<String, Failure> {
    parse_class_id(text).ok_or_else(|| {
        Failure::usage(
            format!("'--clsid' does not take {}", quoted(text)),
            "a class id has 32 hexadecimal digits in groups of 8, 4, 4, 4 and 12",
            "take it from the profiler's documentation, or from its export_profiler!",
        )
    })
}

impl RecordingArgs {
    fn instruments_given(&self) -> String {
        match self.instruments.is_empty() {
            true => instruments::DEFAULT.to_owned(),
            false => self.instruments.join(";"),
        }
    }

    /// The request without an output place.
    pub(super) fn into_request(self) -> Result<Request, Failure> {
        let given = self.instruments_given();
        let instruments = given.split(';').map(str::trim).filter(|text| !text.is_empty()).map(instrument);
        let request = Request {
            out: None,
            instruments: instruments.collect::<Result<_, _>>()?,
            filter: Filter {
                include: patterns("--include", &self.include)?,
                exclude: patterns("--exclude", &self.exclude)?,
            },
            redact: self.redact,
            just_my_code: self.just_my_code,
            rate_hz: self.rate,
            duration_ms: self.duration.as_deref().map(duration).transpose()?,
            children: !self.no_children,
            programs: programs(&self.only, &self.only_from)?,
            // The launcher sets it once it has made the directory.
            join: false,
            trust_writable: self.trust_writable,
        };
        match request.conflict() {
            None => Ok(request),
            Some((why, hint)) => Err(Failure::usage(format!("cannot record {}", quoted(&given)), why, hint)),
        }
    }
}

fn instrument(text: &str) -> Result<InstrumentRequest, Failure> {
    let refuse = |why: String, hint: String| Failure::usage(format!("cannot record {}", quoted(text)), why, hint);
    let request = InstrumentRequest::parse(text).map_err(|RequestError(why)| {
        refuse(why, "write NAME[:OPTION[=VALUE],...], such as calls:clock=tsc".to_owned())
    })?;
    instruments::check(&request).map_err(|refusal| refuse(refusal.why, refusal.known))?;
    Ok(request)
}

/// Which programs: patterns as they are, files as absolute paths, since a program may start anywhere.
fn programs(only: &[String], only_from: &[PathBuf]) -> Result<Programs, Failure> {
    if only.iter().any(|pattern| pattern.trim().is_empty()) {
        let hint = "write --only 'MyApp*', the name or the path of a program with * and ?";
        return Err(Failure::usage("'--only' does not take ''", "it is empty", hint));
    }
    let absolute = |file: &PathBuf| match path::absolute(file).map(|path| path.to_str().map(str::to_owned)) {
        Ok(Some(path)) => Ok(path),
        Ok(None) => Err(unusable_list(file, "the path is not UTF-8".to_owned())),
        Err(error) => Err(unusable_list(file, reason(&error))),
    };
    Ok(Programs {
        only: only.iter().map(|text| Glob::new(text)).collect(),
        only_from: only_from.iter().map(absolute).collect::<Result<_, _>>()?,
    })
}

fn unusable_list(file: &Path, why: String) -> Failure {
    Failure::usage(format!("'--only-from' does not take {}", shown(file)), why, "give the path of a text file")
}

fn rate(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|rate| (1..=10_000).contains(rate))
        .ok_or("it takes a whole number from 1 to 10000".to_owned())
}

fn duration(text: &str) -> Result<u64, Failure> {
    parse_duration(text).map_err(|RequestError(why)| {
        Failure::usage(format!("'--duration' does not take {}", quoted(text)), why, "write --duration 10s")
    })
}

/// Patterns of functions, for every option that takes them.
pub(super) fn patterns(option: &str, texts: &[String]) -> Result<Vec<Pattern>, Failure> {
    texts.iter().map(|text| pattern(option, text)).collect()
}

/// One pattern of functions.
pub(super) fn pattern(option: &str, text: &str) -> Result<Pattern, Failure> {
    Pattern::parse(text).map_err(|error| {
        Failure::usage(
            format!("'{option}' does not take {}", quoted(text)),
            error.why,
            "write [assembly]Namespace.Type::Method with * and ?, each part optional",
        )
    })
}

fn long_help() -> String {
    let mut text = String::from("Instruments (-i NAME[:OPTION[=VALUE],...]):\n");
    for instrument in instruments::ALL {
        text.push_str(&format!("  {}: {}\n", instrument.name, instrument.about));
        for (option, about) in instrument.option_lines() {
            text.push_str(&format!("      {option:<18} {about}\n"));
        }
    }
    text.push('\n');
    text.push_str(EXAMPLES);
    text
}
