//! Starts the agent: reads the environment, and ends with a running agent or with a refusal that
//! has a reason.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clr_profiler::{Callbacks, ProfilerInfo};
use clrscope_agent_base::developer_log::{self, Level, log, wants};
use clrscope_agent_base::event_pipe::{EventPipe, SharedEventPipe};
use clrscope_agent_base::functions::{FunctionSelection, Functions};
use clrscope_agent_base::helper::{Detach, HelperHandle, Schedule};
use clrscope_agent_base::hooks::stopped_flag;
use clrscope_agent_base::os::{process, signals};
use clrscope_agent_base::patterns::{ProbePatterns, Redaction, WatchedFilter};
use clrscope_agent_base::recording_lifetime::keep;
use clrscope_agent_base::threads::names::{Names, SystemNames};
use clrscope_agent_base::{clock, threads};
use clrscope_agent_stacks::code::{CodeFeed, SharedCodeFeed};
use clrscope_agent_stacks::inlined::DebugEvents;
use clrscope_agent_stacks::sampling::{Sampler, SharedSampler};
use clrscope_agent_stacks::stacks::table::SharedStackTable;
use clrscope_agent_values::types::Types;
use clrscope_contract::instruments::{
    CheckedInstrument, DEFAULT, check_all, check_for_attach, check_for_notification_only,
};
use clrscope_contract::program_names::{ProgramNames, entry_assembly_name};
use clrscope_contract::request::{AGENT_VARIABLE, InstrumentRequest, MAX_SIZE, Request, without_arguments};
use clrscope_recording::model::Identity;
use clrscope_recording::refusal;
use clrscope_recording::writer::{Keep, ProcessRecord, ProcessWriter, is_over, limit_size, monotonic_ns};

use crate::hook_sets::{HookParts, HookSet};
use crate::instruments::{self, Instruments, Requested};
use crate::process::{child_process, fork, identity, trust};
use crate::services::code_authors::CodeAuthors;
use crate::services::code_marks::CodeMarks;
use crate::services::context::Beginning;
use crate::services::context::{Context, SharedTypes};
use crate::services::detach::{Detachment, GoDormant};
use crate::services::detach_cleanup;
use crate::services::entry_assembly::EntryAssemblyWatch;
use crate::services::held_exceptions::HeldExceptions;
use crate::services::kept_events::KeptEvents;
use crate::services::object_types::ObjectTypes;
use crate::services::triggers::Triggers;

/// Longest time that the end of the program waits for the helper thread's last sample.
const LAST_ROUND: Duration = Duration::from_millis(100);

/// Pause of the helper thread where no instrument needs a shorter one: the thread shows that the
/// process lives, and checks whether the recording is over.
const RARELY: Duration = Duration::from_millis(20);

/// A running agent.
pub(crate) struct Running {
    pub(crate) writer: &'static ProcessWriter,
    pub(crate) functions: Arc<Functions>,
    pub(crate) helper: HelperHandle,
    /// Whether another profiler may have the runtime's main slot.
    pub(crate) is_notification_only: bool,
    pub(crate) instruments: &'static Instruments,
    /// The set of hooks; `None` if no instrument needs hooks.
    pub(crate) hooks: Option<&'static HookSet>,
    types: Option<&'static Types>,
    object_types: Arc<ObjectTypes>,
    code: Option<Arc<CodeFeed>>,
    /// The runtime's debug information about inlined methods, if it was requested.
    pub(crate) debug_events: Option<DebugEvents>,
    sampler: Option<&'static Sampler>,
    thread_names: Names,
    entry_assembly: EntryAssemblyWatch,
    held_exceptions: Arc<HeldExceptions>,
    /// Follows parts that the program's own code begins and ends.
    pub(crate) code_marks: CodeMarks,
    end: End,
}

// In this order: what holds exceptions is told of them first, `code` and the instruments need the
// names that `functions` forgets, and the end is last.
clr_profiler::compose_callbacks! { Running { held_exceptions, types, debug_events, code, sampler, instruments, object_types, functions, thread_names, entry_assembly, code_marks, end } }

impl Running {
    /// Removes what the recording left in a process whose agent goes dormant. No callback that uses
    /// the recording is running. But calls of changed methods may run forever, so the memory that
    /// they write to stays.
    pub(crate) fn clean_up_dormant(&self) {
        self.instruments.outlive_recording();
        self.profiler_detach_succeeded();
    }

    /// Call it when the runtime has refused the setup of an attached agent, so that the agent
    /// leaves at once.
    pub(crate) fn refused(&self) {
        self.helper.detachment().into_iter().for_each(Detach::was_refused);
        self.writer.state().request_stop();
        self.end.let_go();
    }

    /// In a forked child: releases all mappings. Async-signal-safe.
    pub(crate) fn detach_in_child(&self) {
        self.instruments.detach_in_child();
        if let Some(sampler) = self.sampler {
            sampler.detach_in_child();
        }
        if let Some(types) = self.types {
            types.store().segment().detach_in_child();
        }
        self.writer.log().segment().detach_in_child();
        self.writer.state().segment().detach_in_child();
        self.writer.threads().segment().detach_in_child();
    }
}

/// Notes the orderly end of the program.
struct End {
    helper: HelperHandle,
    writer: &'static ProcessWriter,
}

impl End {
    fn let_go(&self) {
        fork::withdraw();
        detach_cleanup::clean_up_after_helper(&self.helper, self.writer);
    }
}

impl Callbacks for End {
    #[cfg(feature = "panic-on-demand")]
    fn module_attached_to_assembly(&self, _module: clr_profiler::ModuleId, _assembly: clr_profiler::AssemblyId) {
        crate::panic_on_demand::panic_if_asked("callback");
    }

    fn shutdown(&self) {
        log(Level::Info, || "Shutdown".to_owned());
        self.helper.wait_for_last_round(LAST_ROUND);
        if wants(Level::Info) {
            signals::with_all_blocked(developer_log::flush);
        }
        self.writer.state().ended();
    }

    /// Runs after the other parts, which may take seconds.
    fn profiler_attach_complete(&self) {
        self.helper.has_attached();
    }

    fn profiler_detach_succeeded(&self) {
        self.let_go();
    }
}

/// Starts everything that the request `given` asks for. The error is a sentence for the recording
/// directory.
///
/// `go_dormant` is called when the recording of an attached agent is over and the runtime does not
/// detach the agent.
pub(crate) fn start(
    info: &ProfilerInfo,
    given: &str,
    beginning: Beginning,
    go_dormant: GoDormant,
) -> Result<Running, String> {
    developer_log::begin();
    let mut request = match Request::parse(given) {
        Ok(request) => request,
        Err(error) => return Err(refuse_malformed(given, error.0)),
    };
    request.log.iter().for_each(|level| developer_log::begin_with(level));
    let version = env!("CARGO_PKG_VERSION");
    log(Level::Info, || format!("clrscope {version} in process {}: {AGENT_VARIABLE}={given}", std::process::id()));
    if request.instruments.is_empty() {
        request.instruments.push(InstrumentRequest::named(DEFAULT.name));
    }
    let folder = recording_folder(&request)?;
    // All disk accesses run with signals blocked: exceeding a file size limit must be an error
    // here, not the end of the program.
    signals::with_all_blocked(|| {
        start_in(info, given, &request, &folder, (beginning, go_dormant)).map_err(|aside| {
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

/// Whether the request needs features that the runtime allows only at its start.
pub(crate) fn needs_launch(given: &str) -> bool {
    let checked = Request::parse(given).ok().and_then(|request| check_all(&request).ok());
    checked.is_some_and(|checked| check_for_attach(&checked).is_err())
}

/// Writes the reason into the recording directory, if the malformed text at least names one.
fn refuse_malformed(given: &str, why: String) -> String {
    let why = format!("{AGENT_VARIABLE} is not understood: {why}");
    if let Some(folder) = Request::recording_directory(given) {
        signals::with_all_blocked(|| leave_word(Path::new(&folder), false, &why));
    }
    why
}

/// Writes the reason into the folder. If this fails, there is no way left to report it.
fn leave_word(folder: &Path, join: bool, why: &str) {
    if !join {
        let _ = std::fs::DirBuilder::new().mode(0o700).create(folder);
    }
    let _ = refusal::leave(folder, std::process::id(), why);
}

/// Whether the request asks to profile this program.
fn is_wanted(request: &Request) -> Result<bool, String> {
    if !request.programs.are_limited() {
        return Ok(true);
    }
    let patterns = request.programs.patterns(request.trust_writable).map_err(|error| error.0)?;
    // Relative paths begin in the working folder.
    let names = ProgramNames::new(&process::executable(), &process::command_line(), Path::new(""));
    Ok(names.match_any(&patterns))
}

const OVER: &str = "the recording is over";

/// Reason why the agent disables itself.
enum Aside {
    /// The agent can't do its work, for this reason.
    Forced(String),
    /// The agent is not wanted in this process, for this reason, and leaves no trace.
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

fn start_in(
    info: &ProfilerInfo,
    given: &str,
    request: &Request,
    folder: &Path,
    (beginning, go_dormant): (Beginning, GoDormant),
) -> Result<Running, Aside> {
    if !is_wanted(request)? {
        // If the variables are set for a whole machine, most programs take this path.
        return Err(Aside::Asked("this program is not one of those to be profiled"));
    }
    checked(info, request, beginning)?;
    if threads::is_prepared() {
        // The runtime accepts a main profiler and notification-only ones, but the library is loaded
        // only once.
        return Err(Aside::Forced("another agent of clrscope records this process".to_owned()));
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
    let (identity, unused) = identity::identity(&request.labels);
    let process = describe(info, request, identity);
    log(Level::Info, || format!("{}, command {:?}", process.runtime, process.command));
    let start_ns = process.mono_ns;
    limit_size(folder, request.max_size.unwrap_or(MAX_SIZE));
    let make = if request.join { ProcessWriter::join } else { ProcessWriter::create };
    let made = make(folder, &process).map_err(|error| format!("{}: {error}", folder.display()));
    if is_over() {
        // The run ended meanwhile: its packer may have missed this process, and nothing would ever
        // stop the recording.
        made.iter().for_each(ProcessWriter::discard);
        return Err(Aside::Asked(OVER));
    }
    let writer: &'static ProcessWriter = keep(made?);
    log(Level::Info, || format!("recording into {}", writer.folder().display()));
    unused.iter().for_each(|why| writer.note(start_ns, why));
    developer_log::write_into(folder);
    let running = start_instruments(info, given, request, writer, start_ns, (beginning, go_dormant));
    Ok(running.inspect_err(|_| {
        writer.discard();
        if beginning == Beginning::Attach {
            detach_cleanup::clean_up(writer);
        }
    })?)
}

/// The instruments, checked.
fn checked(info: &ProfilerInfo, request: &Request, beginning: Beginning) -> Result<Vec<CheckedInstrument>, String> {
    let checked = check_all(request).map_err(|refusal| refusal.to_string())?;
    if beginning == Beginning::Attach {
        check_for_attach(&checked).map_err(|refusal| refusal.to_string())?;
    }
    if info.is_notification_only() {
        check_for_notification_only(request, &checked, beginning == Beginning::Attach)
            .map_err(|refusal| refusal.to_string())?;
    }
    Ok(checked)
}

fn start_instruments(
    info: &ProfilerInfo,
    given: &str,
    request: &Request,
    writer: &'static ProcessWriter,
    start_ns: u64,
    (beginning, sleep): (Beginning, GoDormant),
) -> Result<Running, String> {
    let checked = checked(info, request, beginning)?;
    let mut requested = Requested::default();
    checked.iter().try_for_each(|instrument| requested.add(instrument))?;
    let mut words: Vec<_> = checked.iter().map(ToString::to_string).collect();
    words.extend(Some(beside_instruments(request)).filter(|rest| !rest.is_empty()));
    let parts = requested.hook_parts();
    let hooks = instruments::hook_set(parts);
    if hooks.is_none() && parts != HookParts::NONE {
        return Err("there are no hooks that do what these instruments want together".into());
    }
    // An earlier recording of this process has ended together with its run.
    stopped_flag().store(0, Ordering::SeqCst);
    let helper = HelperHandle::new();
    let interval = Duration::from_nanos(1_000_000_000 / u64::from(request.rate_hz));
    let functions = Arc::new(Functions::new(info, writer, choice(request, &requested, writer)));
    let object_types = Arc::new(ObjectTypes::new(info, writer, &functions));
    let max_size = request.max_size.unwrap_or(MAX_SIZE);
    let last = request.kept_ms().map(Duration::from_millis);
    let kept_events = KeptEvents::new(last, max_size, checked.len());
    let triggers: &'static Triggers = keep(Triggers::new(&request.triggers, last));
    kept_events.last_ns().into_iter().for_each(|ns| writer.state().keeps(ns));
    if let Keep::Recent(ns) = kept_events.keep() {
        writer.threads().keep_for(ns);
    }
    let context = Context {
        kept_events,
        triggers,
        interval_ns: interval.as_nanos() as u64,
        start_ns,
        beginning,
        hooks: parts,
        info: info.clone(),
        writer,
        functions: Arc::clone(&functions),
        object_types: Arc::clone(&object_types),
        helper: helper.clone(),
        redact: Arc::new(Redaction::new(&request.redact, writer)),
        probes: ProbePatterns::new(&request.probes, writer),
        probe_lines: request.probe_lines.clone(),
        stacks: SharedStackTable::default(),
        types: SharedTypes::default(),
        code: SharedCodeFeed::default(),
        code_authors: CodeAuthors::default(),
        sampler: SharedSampler::default(),
        event_pipe: SharedEventPipe::default(),
    };
    let instruments: &'static Instruments = keep(Instruments::start(&requested, &context)?);
    if instruments.slow_hooks().is_some() && parts != HookParts::NONE {
        return Err(
            "flow:args=check compares plans with the runtime's slow hooks, and no other hooks can run at the same time"
                .into(),
        );
    }
    writer.instruments(given, &words.join(";"));
    log(Level::Info, || format!("instruments: {}", words.join(";")));
    let begins_late = beginning == Beginning::Attach || request.delay_ms.is_some();
    if !threads::prepare(writer, helper.clone(), instruments, begins_late) {
        return Err("the C library has no thread key left".into());
    }
    let mut tasks = instruments.tasks();
    let thread_names = Names::new(info, writer);
    tasks.push(Box::new(SystemNames::new(writer, &thread_names, beginning == Beginning::Attach)));
    if let Some(sampler) = context.sampler.in_use() {
        tasks.push(sampler.task());
        tasks.push(sampler.stacks_task());
    }
    // Only where an instrument looks at code are there frames for inlined methods.
    let debug_events = context.code.in_use().filter(|_| request.inlined_exact);
    let debug_events =
        debug_events.map(|feed| DebugEvents::new(info, &functions, context.event_pipe(), feed.inlined()));
    tasks.extend(triggers.task(writer));
    tasks.extend(context.event_pipe.in_use().map(EventPipe::task));
    let code_marks = CodeMarks::new(info, writer, &helper);
    tasks.push(code_marks.task());
    #[cfg(feature = "panic-on-demand")]
    tasks.push(Box::new(crate::panic_on_demand::PanickingTask));
    let held_exceptions = Arc::new(HeldExceptions::new(info));
    if beginning == Beginning::Attach {
        let folder = writer.folder().parent().filter(|_| request.join);
        let held = Arc::clone(&held_exceptions);
        let release_handles = Box::new(move || {
            held.let_go();
            instruments.release_handles();
        });
        let detachment = Detachment::new(folder.map(Path::to_owned), info, release_handles, sleep);
        helper.set_detachment(Box::new(detachment));
    }
    let schedule = Schedule {
        delay: request.delay_ms.map(Duration::from_millis),
        duration: request.duration_ms.map(Duration::from_millis),
        is_in_periods: request.every_ms.is_some(),
    };
    let pace = if instruments.need_frequent_help() { interval } else { interval.max(RARELY) };
    helper.start(writer, pace, schedule, tasks).map_err(|error| format!("no thread for the agent: {error}"))?;
    let entry_name = entry_assembly_name(&process::executable(), &process::command_line());
    let entry_assembly = EntryAssemblyWatch::new(info, &functions, writer, entry_name);
    Ok(Running {
        writer,
        entry_assembly,
        functions,
        object_types,
        helper: helper.clone(),
        is_notification_only: info.is_notification_only(),
        instruments,
        hooks,
        types: context.types.in_use(),
        thread_names,
        code: context.code.in_use(),
        debug_events,
        sampler: context.sampler.in_use(),
        held_exceptions,
        code_marks,
        end: End { helper, writer },
    })
}

/// Text of the request without the instruments and the place.
fn beside_instruments(request: &Request) -> String {
    Request { instruments: Vec::new(), out: None, join: false, log: None, ..request.clone() }.to_string()
}

/// Returns the selection of functions for the dictionary, from the request and from the functions
/// that the instruments do not need.
fn choice(request: &Request, requested: &Requested, writer: &'static ProcessWriter) -> FunctionSelection {
    let filter = WatchedFilter::new(request.filter.clone(), writer);
    let mut choice = FunctionSelection {
        filter,
        just_my_code: request.just_my_code,
        helpers: false,
        trivial: true,
        counts_calls: false,
    };
    requested.choose(&mut choice);
    choice
}

fn describe(info: &ProfilerInfo, request: &Request, identity: Identity) -> ProcessRecord {
    let command = process::command_line();
    let runtime = match info.runtime_version() {
        Ok(version) => format!(".NET {}.{}.{}", version.major, version.minor, version.build),
        Err(_) => ".NET".to_owned(),
    };
    ProcessRecord {
        pid: std::process::id(),
        parent_pid: std::os::unix::process::parent_id(),
        command: if request.no_command_line { without_arguments(&command) } else { command },
        runtime,
        processors: process::processors(),
        mono_ns: monotonic_ns(),
        unix_ns: clock::unix_ns(),
        ticks: clock::ticks(),
        identity,
    }
}

/// Folder to record into: the folder of the request, or a new one in the working directory.
fn recording_folder(request: &Request) -> Result<PathBuf, String> {
    let path = match &request.out {
        Some(out) => PathBuf::from(out),
        None => PathBuf::from(format!("clrscope-{}.clrs.d", std::process::id())),
    };
    std::path::absolute(&path).map_err(|error| format!("{}: {error}", path.display()))
}
