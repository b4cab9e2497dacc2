//! From the environment to a running agent, or a polite refusal.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clr_profiler::ProfilerInfo;
use clrscope_contract::request::{AGENT_VARIABLE, InstrumentRequest, Request};
use clrscope_recording::refusal;
use clrscope_recording::writer::{ProcessRecord, ProcessWriter, is_over, monotonic_ns};

use crate::hooks::HookNeed;
use crate::instrument::{Context, Instrument};
use crate::instruments::exceptions::Exceptions;
use crate::instruments::{self, calls};
use crate::process::program::ProgramNames;
use crate::process::{child_process, trust};
use crate::services::developer_log::{self, Level, log};
use crate::services::functions::{Choice, Functions};
use crate::services::helper::{HelperHandle, with_signals_blocked};
use crate::services::patterns::{Redaction, WatchedFilter};
use crate::services::stacks::table::SharedStackTable;
use crate::services::threads::names::{Names, SystemNames};
use crate::services::{clock, threads};

/// A running agent.
pub(crate) struct Running {
    pub(crate) writer: &'static ProcessWriter,
    pub(crate) functions: Arc<Functions>,
    pub(crate) helper: HelperHandle,
    pub(crate) instruments: Vec<Arc<dyn Instrument>>,
    /// Those of them that have hooks, and what for.
    pub(crate) hooked: Vec<(HookNeed, Arc<dyn Instrument>)>,
    /// One of them that is known by its type.
    pub(crate) exceptions: Option<Arc<Exceptions>>,
    pub(crate) thread_names: Names,
    pub(crate) named_only_matter: bool,
}

/// Starts everything; the error is a sentence for the recording directory.
pub(crate) fn start(info: &ProfilerInfo) -> Result<Running, String> {
    let given = std::env::var(AGENT_VARIABLE).unwrap_or_default();
    developer_log::begin();
    let version = env!("CARGO_PKG_VERSION");
    log(Level::Info, || format!("clrscope {version} in process {}: {AGENT_VARIABLE}={given}", std::process::id()));
    let mut request = match Request::parse(&given) {
        Ok(request) => request,
        Err(error) => return Err(refuse_malformed(&given, error.0)),
    };
    if request.instruments.is_empty() {
        request.instruments.push(InstrumentRequest { name: "calls".into(), options: Vec::new() });
    }
    let folder = recording_folder(&request)?;
    // Everything that touches the disk, with signals blocked: a file size limit must be an error here,
    // not the end of the program.
    with_signals_blocked(|| {
        start_in(info, &given, &request, &folder).map_err(|aside| {
            if let Aside::Forced(why) = &aside {
                leave_word(&folder, request.join, why);
            }
            let why = aside.into_words();
            log(Level::Warn, || format!("stepping aside: {why}"));
            developer_log::write_into(&folder);
            why
        })
    })
}

/// Says why in the recording directory, if the text at least names one.
fn refuse_malformed(given: &str, why: String) -> String {
    let why = format!("{AGENT_VARIABLE} is not understood: {why}");
    if let Some(folder) = Request::place(given) {
        with_signals_blocked(|| leave_word(Path::new(&folder), false, &why));
    }
    why
}

/// Where even this can't be written there is nobody to tell.
fn leave_word(folder: &Path, join: bool, why: &str) {
    if !join {
        let _ = std::fs::DirBuilder::new().mode(0o700).create(folder);
    }
    let _ = refusal::leave(folder, std::process::id(), why);
}

/// Whether this is a program to be profiled.
fn is_wanted(request: &Request) -> Result<bool, String> {
    if !request.programs.are_limited() {
        return Ok(true);
    }
    let patterns = request.programs.patterns(request.trust_writable).map_err(|error| error.0)?;
    Ok(ProgramNames::of_this_process(&command_line()).match_any(&patterns))
}

const OVER: &str = "the recording is over";

/// Why the agent steps aside.
enum Aside {
    /// It can't do its work.
    Forced(String),
    /// It is not wanted in this process, and leaves no trace.
    Asked(&'static str),
}

impl Aside {
    fn into_words(self) -> String {
        match self {
            Self::Forced(why) => why,
            Self::Asked(why) => why.to_owned(),
        }
    }
}

impl From<String> for Aside {
    fn from(why: String) -> Self {
        Self::Forced(why)
    }
}

fn start_in(info: &ProfilerInfo, given: &str, request: &Request, folder: &Path) -> Result<Running, Aside> {
    if !is_wanted(request)? {
        // With the variables set for a whole machine this is what most programs meet.
        return Err(Aside::Asked("this program is not one of those to be profiled"));
    }
    let is_over = || request.join && is_over(folder);
    if is_over() {
        return Err(Aside::Asked(OVER));
    }
    if !request.trust_writable {
        trust::check_own_file()?;
    }
    trust::check_folder(folder)?;
    if !request.children && child_process::is_child(folder, request.join) {
        return Err(Aside::Asked("this process is a child, and children are not to be recorded"));
    }
    let process = describe(info);
    log(Level::Info, || format!("{}, command {:?}", process.runtime, process.command));
    let start_ns = process.mono_ns;
    let make = if request.join { ProcessWriter::join } else { ProcessWriter::create };
    let made = make(folder, &process).map_err(|error| format!("{}: {error}", folder.display()));
    if is_over() {
        // It ended meanwhile: whoever packs it may not have seen us, and nobody would ever stop us.
        made.iter().for_each(ProcessWriter::discard);
        return Err(Aside::Asked(OVER));
    }
    let writer: &'static ProcessWriter = Box::leak(Box::new(made?));
    log(Level::Info, || format!("recording into {}", writer.folder().display()));
    developer_log::write_into(folder);
    let running = start_instruments(info, given, request, writer, start_ns);
    Ok(running.inspect_err(|_| writer.discard())?)
}

fn start_instruments(
    info: &ProfilerInfo,
    given: &str,
    request: &Request,
    writer: &'static ProcessWriter,
    start_ns: u64,
) -> Result<Running, String> {
    if let Some((why, _)) = request.conflict() {
        return Err(why.to_owned());
    }
    let helper = HelperHandle::new();
    let interval = Duration::from_nanos(1_000_000_000 / u64::from(request.rate_hz));
    let functions = Arc::new(Functions::new(info, writer, choice(request, writer)?));
    let context = Context {
        info: info.clone(),
        writer,
        functions: Arc::clone(&functions),
        helper: helper.clone(),
        interval_ns: interval.as_nanos() as u64,
        start_ns,
        redact: Arc::new(Redaction::new(&request.redact, writer)),
        stacks: SharedStackTable::default(),
    };
    let mut started = Vec::new();
    let mut exceptions = None;
    let mut words = Vec::new();
    for instrument in &request.instruments {
        let made = instruments::make(instrument, &context)?;
        started.push(made.instrument);
        exceptions = exceptions.or(made.exceptions);
        words.push(made.options);
    }
    words.extend(Some(beside_instruments(request)).filter(|rest| !rest.is_empty()));
    writer.instruments(given, &words.join(";"));
    log(Level::Info, || format!("instruments: {}", words.join(";")));
    if !threads::prepare(writer, helper.clone(), &started) {
        return Err("the C library has no thread key left".into());
    }
    let hooked = with_hooks(&started);
    let mut tasks: Vec<_> = started.iter().flat_map(|instrument| instrument.tasks()).collect();
    tasks.push(Box::new(SystemNames::new(writer)));
    let duration = request.duration_ms.map(Duration::from_millis);
    helper.start(writer, interval, duration, tasks).map_err(|error| format!("no thread for the agent: {error}"))?;
    Ok(Running {
        writer,
        functions,
        helper,
        instruments: started,
        hooked,
        exceptions,
        thread_names: Names::new(writer),
        named_only_matter: !request.filter.include.is_empty(),
    })
}

/// What was asked for beside the instruments and the place.
fn beside_instruments(request: &Request) -> String {
    Request { instruments: Vec::new(), out: None, join: false, ..request.clone() }.to_string()
}

/// Those that have hooks; each is told where it is not the only one.
fn with_hooks(instruments: &[Arc<dyn Instrument>]) -> Vec<(HookNeed, Arc<dyn Instrument>)> {
    let hooked: Vec<_> = instruments.iter().filter_map(|i| Some((i.hooks()?, Arc::clone(i)))).collect();
    if hooked.len() > 1 {
        hooked.iter().for_each(|(_, instrument)| instrument.shares_hooks());
    }
    hooked
}

/// What the functions' dictionary has to decide, from the request and from the options of `calls`.
fn choice(request: &Request, writer: &'static ProcessWriter) -> Result<Choice, String> {
    let filter = WatchedFilter::new(request.filter.clone(), writer);
    let mut choice = Choice { filter, just_my_code: request.just_my_code, helpers: false, trivial: true };
    for instrument in request.instruments.iter().filter(|i| i.name == "calls") {
        let options = calls::Options::parse(instrument)?;
        choice.helpers = options.helpers;
        choice.trivial = options.trivial;
    }
    Ok(choice)
}

fn describe(info: &ProfilerInfo) -> ProcessRecord {
    let runtime = match info.runtime_version() {
        Ok(version) => format!(".NET {}.{}.{}", version.major, version.minor, version.build),
        Err(_) => ".NET".to_owned(),
    };
    ProcessRecord {
        pid: std::process::id(),
        parent_pid: std::os::unix::process::parent_id(),
        command: command_line(),
        runtime,
        mono_ns: monotonic_ns(),
        unix_ns: clock::unix_ns(),
        ticks: clock::ticks(),
    }
}

fn command_line() -> Vec<String> {
    let bytes = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let text = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    text.split(|&b| b == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Where to record. Without a word about it: beside the program's working directory.
fn recording_folder(request: &Request) -> Result<PathBuf, String> {
    let path = match &request.out {
        Some(out) => PathBuf::from(out),
        None => PathBuf::from(format!("clrscope-{}.clrs.d", std::process::id())),
    };
    std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.display()))
}
