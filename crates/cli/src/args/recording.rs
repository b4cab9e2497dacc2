//! Options of what to record: the same for every command that makes a recording or prepares one.

use std::ffi::OsStr;
use std::path::{self, Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Command, ValueEnum};
use clrscope_contract::instruments::{
    ALL, DEFAULT, Refusal, Spec, check, check_all, find, probes, requests as of_requests, samples,
};
use clrscope_contract::labels::{Label, LabelError, check_together};
use clrscope_contract::request::{
    Filter, Glob, InstrumentRequest, MAX_SIZE, Programs, Request, RequestError, SourceLine, parse_duration, parse_last,
    parse_max_size,
};

use super::filters::patterns;
use crate::errors::{Failure, quoted, reason, shown};
use crate::periods::{Keep, PeriodOptions};
use crate::push::PushPlan;

/// Options that choose which instruments record.
#[derive(Debug, Args)]
pub(super) struct InstrumentArgs {
    /// Instrument with its options; can be repeated [default: cpu]
    #[arg(short, long = "instrument", value_name = "NAME[:OPTION,...]", value_parser = InstrumentText, hide_possible_values = true)]
    instruments: Vec<String>,
}

impl InstrumentArgs {
    /// The instruments as the user gave them.
    pub(super) fn given(&self) -> String {
        self.given_or(DEFAULT)
    }

    /// The instruments as the user gave them; `default` where there is none.
    fn given_or(&self, default: &Spec) -> String {
        match self.instruments.is_empty() {
            true => default.name.to_owned(),
            false => self.instruments.join(";"),
        }
    }

    /// The instruments, each as the user gave it; `usual` where there is none.
    pub(super) fn texts(self, usual: &[&str]) -> Vec<String> {
        match self.instruments.is_empty() {
            true => usual.iter().map(|&text| text.to_owned()).collect(),
            false => self.instruments,
        }
    }

    /// The instruments, each checked alone.
    pub(super) fn requests(&self) -> Result<Vec<InstrumentRequest>, Failure> {
        requests(&self.given())
    }
}

fn requests(given: &str) -> Result<Vec<InstrumentRequest>, Failure> {
    given.split(';').map(str::trim).filter(|text| !text.is_empty()).map(instrument).collect()
}

/// The request, unless its instruments do not go together.
pub(super) fn checked(request: Request, given: &str) -> Result<Request, Failure> {
    match check_all(&request) {
        Ok(_) => Ok(request),
        Err(refusal) => Err(refused(given, refusal)),
    }
}

/// Options of what is recorded.
#[derive(Debug, Args)]
pub(super) struct RecordingArgs {
    #[command(flatten)]
    instruments: InstrumentArgs,

    /// Only functions that match, such as '[MyApp]*', 'Shop.Cart::*', 'Cart.Add' or 'Add'; can be
    /// repeated
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,

    /// Leave out functions that match, and the nested types of types that match; wins over
    /// --include; can be repeated
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,

    #[command(flatten)]
    probes: ProbeArgs,

    /// Values to leave out of flow:args and exceptions:args, such as '*password*': by name of the
    /// parameter, field, property or method, upper or lower case alike; can be repeated
    #[arg(long, value_name = "PATTERN")]
    redact: Vec<String>,

    /// With -i requests: record the full path and query of outgoing requests, and of incoming ones
    /// without a route template; both may contain secrets
    #[arg(long, value_enum, value_name = "HOW")]
    urls: Option<UrlsName>,

    /// Leave out the framework's assemblies
    #[arg(long)]
    just_my_code: bool,

    /// Have the runtime report which inlined method each piece of JIT code comes from, so that
    /// inlined methods that call nothing get their own time; the JIT then needs more memory
    #[arg(long, value_enum, value_name = "GRADE")]
    inlined: Option<InlinedName>,

    /// Begin the recording of each process this long after its start, such as 500ms, 10s or 2m
    #[arg(long, value_name = "TIME")]
    delay: Option<String>,

    /// Stop recording, not the program, this long after the recording began
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,

    /// Keep only the last part of the run, such as 60s or 5m. It is written at the end, by
    /// 'clrscope record PID write', and by --on; for cpu, wall, exceptions, gc, alloc, locks,
    /// awaits, requests, counters, memory and events
    #[arg(long, value_name = "TIME")]
    last: Option<String>,

    /// With --last: write the kept part to NAME-1.clrs, NAME-2.clrs and so on whenever this
    /// happens: 'request>2s', 'exception:TYPE' or 'counter:NAME>NUMBER' (value as in the view
    /// counters); at most 10 copies, and one within the time of --last; can be repeated
    #[arg(long = "on", value_name = "TRIGGER")]
    triggers: Vec<String>,

    /// While the program runs, write a separate recording for each period of this length, such as
    /// 1m or 1h, into the folder of -o; for calls, cpu, wall, exceptions, gc, alloc, locks, awaits,
    /// requests, counters, memory and events
    #[arg(long, value_name = "TIME")]
    every: Option<String>,

    /// With --every: limits for the recordings to keep, by number, age or total size, such as
    /// 24h,10GiB or 100; beyond any limit the oldest are deleted [default: 24h,10GiB]
    #[arg(long, value_name = "LIMITS", requires = "every")]
    keep: Option<String>,

    /// Stop recording, not the program, when the recording of all processes together has this size
    #[arg(long, value_name = "SIZE", default_value = "10GiB", value_parser = max_size)]
    max_size: u64,

    /// Samples per second, for 'calls' and all sampling instruments
    #[arg(long, value_name = "HZ", default_value_t = USUAL_RATE, value_parser = rate)]
    rate: u32,

    /// Record only the program itself, not the .NET programs that it starts
    #[arg(long)]
    no_children: bool,

    /// Only programs whose executable or entry assembly matches, by name or path, such as 'MyApp*'
    /// or '/srv/shop/*'; can be repeated
    #[arg(long, value_name = "PATTERN")]
    only: Vec<String>,

    /// Only programs that match a line of this file; each program reads it when it starts; can be
    /// repeated
    #[arg(long, value_name = "FILE")]
    only_from: Vec<PathBuf>,

    /// Accept an agent or a file of --only-from even if other users can write it or its folder
    #[arg(long)]
    trust_writable: bool,

    /// A label for the recording, such as service.name=shop, deployment.environment.name=prod or
    /// team=carts, for all its reports and exports; overrides the program's OTEL_SERVICE_NAME and
    /// OTEL_RESOURCE_ATTRIBUTES; can be repeated
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,

    /// Leave the arguments of programs out of the recording: they may contain secrets
    #[arg(long)]
    no_command_line: bool,
}

/// The names of `--inlined`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum InlinedName {
    Exact,
}

/// The names of `--urls`.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum UrlsName {
    Full,
}

/// Options of the commands that write a recording: its file, and what the command says.
#[derive(Debug, Args)]
pub(super) struct ResultArgs {
    /// Recording to write [default: ./PROGRAM-YYYYMMDD-HHMMSS.clrs]
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,

    /// Overwrite the recording if it exists
    #[arg(long)]
    pub(super) force: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// Refuses the page of a recording that is written in periods: it would show the whole time.
///
/// # Errors
/// Where both are asked for.
pub(super) fn refuse_view(periods: Option<&PeriodOptions>, view: bool) -> Result<(), Failure> {
    if periods.is_none() || !view {
        return Ok(());
    }
    let why = "each period becomes a separate recording, and a page shows one";
    Err(Failure::usage("'--every' and '--view' do not go together", why, "open a period later: clrscope view FILE"))
}

/// Options that give methods and lines probes.
#[derive(Debug, Args)]
pub(super) struct ProbeArgs {
    /// Count and time the calls of methods that match (instrument probes); methods of the framework
    /// only if the pattern names their assembly; can be repeated
    #[arg(long, value_name = "PATTERN")]
    probe: Vec<String>,

    /// Count how often a source line is reached (instrument probes), such as Cart.cs:42 or
    /// src/Cart.cs:42, in each method with code there; needs PDBs; can be repeated
    #[arg(long, value_name = "FILE:LINE")]
    probe_at: Vec<String>,
}

impl ProbeArgs {
    fn is_empty(&self) -> bool {
        self.probe.is_empty() && self.probe_at.is_empty()
    }
}

impl RecordingArgs {
    /// The instruments as the user gave them.
    pub(super) fn instruments_given(&self) -> String {
        match self.probes.is_empty() {
            true => self.instruments.given(),
            false => with_probes(self.instruments.given_or(probes::SPEC)),
        }
    }

    /// What `--every`, `--keep` and `-o` ask for; `None` without `--every`. Then each period is
    /// pushed by the plan, which is taken.
    pub(super) fn periods(
        &self,
        result: &ResultArgs,
        push: &mut Option<PushPlan>,
    ) -> Result<Option<PeriodOptions>, Failure> {
        let Some(length) = self.every_ms()? else { return Ok(None) };
        let keep = keep(self.keep.as_deref())?;
        let Some(folder) = result.output.clone() else {
            let why = "it writes a recording for each period";
            return Err(Failure::usage("'--every' needs a folder", why, "name it with -o, such as -o recordings"));
        };
        if result.force {
            let why = "it overwrites nothing, and deletes what --keep says";
            return Err(Failure::usage("'--every' takes no --force", why, "leave --force out"));
        }
        Ok(Some(PeriodOptions { every: Duration::from_millis(length), keep, folder, push: push.take(), watched: None }))
    }

    /// Length of a period.
    fn every_ms(&self) -> Result<Option<u64>, Failure> {
        let every = self.every.as_deref();
        every.map(|text| parse_last(text).map_err(not_taken("--every", text, "1m"))).transpose()
    }

    /// The request without an output place.
    pub(super) fn into_request(self) -> Result<Request, Failure> {
        let given = self.instruments_given();
        let last = |text: &str| parse_last(text).map_err(not_taken("--last", text, "60s"));
        let every_ms = self.every_ms()?;
        let trigger = |text: &String| text.parse().map_err(not_taken("--on", text, "'request>2s'"));
        let request = Request {
            out: None,
            instruments: with_urls(with_rate(requests(&given)?, self.rate), self.urls)?,
            filter: Filter {
                include: patterns("--include", &self.include)?,
                exclude: patterns("--exclude", &self.exclude)?,
            },
            probes: patterns("--probe", &self.probes.probe)?,
            probe_lines: self
                .probes
                .probe_at
                .iter()
                .map(|text| source_line("--probe-at", text))
                .collect::<Result<_, _>>()?,
            redact: self.redact,
            just_my_code: self.just_my_code,
            inlined_exact: self.inlined.is_some(),
            rate_hz: self.rate,
            delay_ms: self.delay.as_deref().map(|text| time("--delay", text)).transpose()?,
            duration_ms: self.duration.as_deref().map(|text| time("--duration", text)).transpose()?,
            last_ms: self.last.as_deref().map(last).transpose()?,
            every_ms,
            is_live: false,
            triggers: self.triggers.iter().map(trigger).collect::<Result<_, _>>()?,
            max_size: Some(self.max_size).filter(|&bytes| bytes != MAX_SIZE),
            children: !self.no_children,
            programs: programs(&self.only, &self.only_from)?,
            // The launcher sets it once it has made the directory.
            join: false,
            trust_writable: self.trust_writable,
            no_command_line: self.no_command_line,
            labels: labels(&self.labels)?,
            log: None,
        };
        checked(request, &given)
    }
}

/// The limits of `--keep`.
pub(super) fn keep(text: Option<&str>) -> Result<Keep, Failure> {
    let Some(text) = text else { return Ok(Keep::default()) };
    Keep::parse(text).map_err(|why| {
        Failure::usage(format!("'--keep' does not take {}", quoted(text)), why, "write --keep 24h,10GiB")
    })
}

/// What `clrscope watch` records of each program: these instruments, in periods.
pub(super) fn of_watch(instruments: Vec<String>, every: String, rate: u32, labels: Vec<String>) -> RecordingArgs {
    let usual =
        of_coverage(String::new(), Vec::new(), Vec::new(), ProbeArgs { probe: Vec::new(), probe_at: Vec::new() });
    let instruments = InstrumentArgs { instruments };
    RecordingArgs { instruments, every: Some(every), rate, labels, ..usual }
}

/// Coverage as `clrscope cover` records it: with the options of `instrument`, of the functions that
/// patterns choose, and with the probes that are asked for.
pub(super) fn of_coverage(
    instrument: String,
    include: Vec<String>,
    exclude: Vec<String>,
    probes: ProbeArgs,
) -> RecordingArgs {
    RecordingArgs {
        instruments: InstrumentArgs { instruments: vec![instrument] },
        include,
        exclude,
        probes,
        redact: Vec::new(),
        urls: None,
        just_my_code: false,
        inlined: None,
        delay: None,
        duration: None,
        last: None,
        every: None,
        keep: None,
        triggers: Vec::new(),
        max_size: MAX_SIZE,
        rate: USUAL_RATE,
        no_children: false,
        only: Vec::new(),
        only_from: Vec::new(),
        trust_writable: false,
        labels: Vec::new(),
        no_command_line: false,
    }
}

/// Characters of a refused label that are shown.
const SHOWN: usize = 60;

/// A text, or as much of it as a line has room for.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", quoted(&text[..end])),
        None => quoted(text),
    }
}

/// The labels, each key once.
pub(super) fn labels(texts: &[String]) -> Result<Vec<Label>, Failure> {
    let refused = |what: String, LabelError(why): LabelError| {
        Failure::usage(what, why, "write --label KEY=VALUE, such as --label service.name=shop")
    };
    let one = |text: &String| {
        Label::parse(text).map_err(|error| refused(format!("'--label' does not take {}", beginning(text)), error))
    };
    let labels = texts.iter().map(one).collect::<Result<Vec<_>, _>>()?;
    check_together(&labels).map_err(|error| refused("cannot label the recording".to_owned(), error))?;
    Ok(labels)
}

/// A line of the source that an option names.
///
/// # Errors
/// Where it is none.
pub(super) fn source_line(option: &str, text: &str) -> Result<SourceLine, Failure> {
    text.parse().map_err(not_taken(option, text, "Cart.cs:42"))
}

/// The failure of an option that does not take a text; `example` is one that it takes.
pub(super) fn not_taken(option: &str, text: &str, example: &str) -> impl FnOnce(RequestError) -> Failure {
    let (what, hint) = (format!("'{option}' does not take {}", quoted(text)), format!("write {option} {example}"));
    |RequestError(why)| Failure::usage(what, why, hint)
}

/// The instruments, and `probes` among them.
fn with_probes(given: String) -> String {
    let is_there = given.split(';').any(|one| one.trim().split(':').next() == Some(probes::SPEC.name));
    if is_there { given } else { format!("{given};{}", probes::SPEC.name) }
}

/// Samples per second unless another number is requested; instruments may have a usual rate of
/// their own.
const USUAL_RATE: u32 = 1000;

/// Gives the instruments that take samples the requested rate, unless they have one already.
fn with_rate(mut instruments: Vec<InstrumentRequest>, rate: u32) -> Vec<InstrumentRequest> {
    for instrument in instruments.iter_mut().filter(|_| rate != USUAL_RATE) {
        let takes_one = find(&instrument.name).is_some_and(|spec| spec.option(samples::RATE).is_some());
        if takes_one {
            set_unless_given(instrument, samples::RATE, rate.to_string());
        }
    }
    instruments
}

/// Gives `requests` whole addresses, where they are asked for.
fn with_urls(
    mut instruments: Vec<InstrumentRequest>,
    urls: Option<UrlsName>,
) -> Result<Vec<InstrumentRequest>, Failure> {
    let Some(UrlsName::Full) = urls else { return Ok(instruments) };
    let Some(requests) = instruments.iter_mut().find(|instrument| instrument.name == of_requests::SPEC.name) else {
        let (what, why) = ("'--urls' says how requests are named", "the instrument requests is not recorded");
        return Err(Failure::usage(what, why, "record it with -i requests"));
    };
    set_unless_given(requests, of_requests::URLS, of_requests::FULL.to_owned());
    Ok(instruments)
}

/// Sets an option of an instrument, unless the instrument is given with it.
fn set_unless_given(instrument: &mut InstrumentRequest, option: &str, value: String) {
    if !instrument.options.iter().any(|(name, _)| name == option) {
        instrument.options.push((option.to_owned(), Some(value)));
    }
}

/// Any text, with the names of the instruments for completions.
#[derive(Debug, Clone)]
struct InstrumentText;

impl TypedValueParser for InstrumentText {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(ALL.iter().map(|spec| PossibleValue::new(spec.name).help(spec.about))))
    }
}

fn instrument(text: &str) -> Result<InstrumentRequest, Failure> {
    let request = InstrumentRequest::parse(text).map_err(|RequestError(why)| {
        let several = text.split(':').next().is_some_and(|name| name.contains(','));
        let hint = match several {
            true => "give -i once for each instrument",
            false => "write NAME[:OPTION[=VALUE],...], such as calls:clock=tsc",
        };
        refused(text, Refusal { why, hint: hint.to_owned() })
    })?;
    check(&request).map_err(|refusal| refused(text, refusal))?;
    Ok(request)
}

fn refused(text: &str, refusal: Refusal) -> Failure {
    Failure::usage(format!("cannot record {}", quoted(text)), refusal.why, refusal.hint)
}

/// Programs of `--only` and `--only-from`: patterns as they are, files as absolute paths, since a
/// program may start anywhere.
pub(super) fn programs(only: &[String], only_from: &[PathBuf]) -> Result<Programs, Failure> {
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

pub(super) fn rate(text: &str) -> Result<u32, String> {
    text.parse()
        .ok()
        .filter(|rate| (1..=10_000).contains(rate))
        .ok_or("it takes a whole number from 1 to 10000".to_owned())
}

fn max_size(text: &str) -> Result<u64, String> {
    parse_max_size(text).map_err(|RequestError(why)| why)
}

fn time(option: &str, text: &str) -> Result<u64, Failure> {
    parse_duration(text).map_err(not_taken(option, text, "10s"))
}
