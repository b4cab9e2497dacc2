//! Facts about how the numbers of a recording came about.

use std::collections::BTreeMap;

use clrscope_analysis::{
    Conditions, InliningKnowledge, ProcessConditions, Program, Resource, Totals, observed_ns, observed_unix_ns,
    own_programs, ran_on, stack_overflows, unmatched_patterns,
};
use clrscope_recording::model::{
    CallsInfo, Clock, Exit, LossReason, Part, PartSpan, Process, Recording, RemarkKind, ShownWork,
};

use super::one_line;
use super::sampling::{awaiters, inlined, sampled};
use super::units::{bytes, count, share, time};
use crate::recorded::is_complete;

/// Maximum number of processes, remarks and problems that are listed; the rest is only counted.
const MOST_LISTED: usize = 8;

/// Maximum number of labels that are listed: all labels that one process can have. The rest is only
/// counted.
const MOST_LABELS_LISTED: usize = clrscope_contract::labels::MOST_LABELS;

/// Number of shown digits of a container's identifier, the same as container engines show.
const SHORT_ID: usize = 12;

/// One fact.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fact {
    /// Subject of the fact, in a word or two.
    pub(crate) key: &'static str,
    /// The fact, as a sentence or a part of one.
    pub(crate) text: String,
    /// Whether the fact is a warning that every report shows: something is missing, wrong, or to be
    /// done.
    pub(crate) is_warning: bool,
    /// The time in the fact.
    pub(crate) time_ns: Option<u64>,
    /// Lower and upper bound of the time.
    pub(crate) bounds_ns: Option<[u64; 2]>,
    /// The time as a share of the thread time, 0 to 1.
    pub(crate) share: Option<f64>,
    /// What is known about inlined methods, if the fact is about them.
    pub(crate) inlining: Option<InliningKnowledge>,
    /// Number of samples in a method whose awaiter is unknown, if the fact is about them.
    pub(crate) unknown_awaiter: Option<u64>,
}

impl Fact {
    fn new(key: &'static str, text: impl Into<String>) -> Self {
        Self { key, text: text.into(), ..Self::default() }
    }

    fn warning(key: &'static str, text: impl Into<String>) -> Self {
        Self { is_warning: true, ..Self::new(key, text) }
    }
}

/// The facts about a recording, in the order of text output.
pub(crate) fn facts(recording: &Recording, conditions: &Conditions<'_>) -> Vec<Fact> {
    let mut facts = vec![run(recording)];
    facts.extend(parts(recording));
    facts.extend(only_requests(recording));
    processes(&mut facts, recording, &conditions.processes);
    facts.extend(identity(recording, conditions));
    facts.extend(labels(conditions));
    if !conditions.recorded.is_empty() {
        // With spaces the line can be wrapped.
        facts.push(Fact::new("recorded", conditions.recorded.replace(',', ", ").replace(';', "; ")));
    }
    facts.extend(conditions.sampling.iter().map(|of| Fact::new("sampled", sampled(of))));
    let known = conditions.sampling.iter().filter_map(|of| Some((inlined(of)?, of.inlining)));
    facts.extend(known.map(|(text, of)| Fact { inlining: Some(of), ..Fact::new("inlined", text) }));
    let awaiters = conditions.sampling.iter().filter_map(|of| Some((awaiters(of)?, of.unknown_awaiter)));
    facts
        .extend(awaiters.map(|(text, unknown)| Fact { unknown_awaiter: Some(unknown), ..Fact::new("awaiters", text) }));
    if let Some(calls) = conditions.processes.iter().find_map(|p| p.calls) {
        facts.push(Fact::new("clock", clock(calls)));
        let includes = recording.run.filled.text().contains("include=");
        facts.push(Fact::new("inlining", inlining(calls, includes)));
        facts.push(Fact::new("not shown", not_shown(calls)));
        runtime_and_profiler(&mut facts, &conditions.totals, conditions.raw);
    }
    facts.extend(own_memory(&conditions.processes));
    facts
        .extend(unmatched_patterns(recording).iter().map(|unmatched| Fact::warning("patterns", unmatched.to_string())));
    facts.extend(stack_overflows(recording).iter().map(|found| Fact::warning("stack", found.to_string())));
    remarks(&mut facts, &conditions.processes);
    losses(&mut facts, recording, conditions);
    facts
}

/// Service, version, host and container of each process, with equal ones listed once, and the
/// recording's identifier.
fn identity(recording: &Recording, conditions: &Conditions<'_>) -> Vec<Fact> {
    let service = |one: &ProcessConditions<'_>| {
        let resource = Resource::from_process(recording, one.process);
        let container: String = resource.container().chars().take(SHORT_ID).collect();
        let version = resource.version();
        let service = format!("{}{}{version}", resource.service(), if version.is_empty() { "" } else { ", version " });
        let words = [("", service.as_str()), (", on ", &resource.host()), (", in container ", &container)];
        words.iter().filter(|(_, word)| !word.is_empty()).flat_map(|(before, word)| [*before, *word]).collect()
    };
    let texts = distinct(conditions.processes.iter().map(service), MOST_LISTED);
    let id = Some(&recording.run.id).filter(|id| !id.is_empty());
    texts.into_iter().map(|text| Fact::new("service", text)).chain(id.map(|id| Fact::new("id", id))).collect()
}

/// The first `most` distinct and nonempty texts; then, if there are more, a text with their number.
fn distinct(all: impl Iterator<Item = String>, most: usize) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for text in all {
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }
    let more = texts.len().saturating_sub(most);
    texts.truncate(most);
    texts.extend((more > 0).then(|| format!("and {more} more")));
    texts
}

/// Labels that are not in [`identity`]; equal labels of several processes are listed once.
fn labels(conditions: &Conditions<'_>) -> Option<Fact> {
    let labels = conditions.processes.iter().flat_map(|one| &one.process.identity.labels);
    let texts = distinct(labels.map(ToString::to_string), MOST_LABELS_LISTED);
    (!texts.is_empty()).then(|| Fact::new("labels", texts.join(", ")))
}

fn processes(facts: &mut Vec<Fact>, recording: &Recording, processes: &[ProcessConditions<'_>]) {
    if let [only] = processes {
        let text = format!("{}, process {}{}", runtime(only), only.process.pid, open_end(recording, only));
        return facts.push(Fact::new("runtime", text));
    }
    for one in processes {
        let (pid, part) = (one.process.pid, share(one.share));
        let text = format!(
            "{pid}, {part} of the thread time, {}{}: {}",
            runtime(one),
            open_end(recording, one),
            without_folders(one.process)
        );
        facts.push(Fact { share: Some(one.share), ..Fact::new("process", text) });
    }
    let own = own_programs(recording);
    let is_own = |one: &ProcessConditions<'_>| own.iter().any(|own| std::ptr::eq(*own, one.process));
    if processes.iter().all(is_own) {
        return;
    }
    // Among the processes of a build or a test run the user's own is easily overlooked.
    for process in own.iter().take(MOST_LISTED) {
        let name = Program::from_process(process).name();
        let text = format!("process {} is {name}, not a tool of the SDK: --process {name} shows it alone", process.pid);
        facts.push(Fact::new("yours", text));
    }
}

fn runtime_and_profiler(facts: &mut Vec<Fact>, totals: &Totals, raw: bool) {
    let mut of = |key, ns: u64, why: &str| {
        let (part, all) = (totals.share(ns), time(totals.functions_ns));
        let text = format!("{} of {all} of thread time ({}){why}", time(ns), share(part));
        let fact = Fact { time_ns: Some(ns), share: Some(part), ..Fact::new(key, text) };
        facts.extend((ns > 0).then_some(fact));
    };
    of("compiling", totals.jit_ns, ", part of it only because instrumented methods are recompiled");
    of("suspended", totals.suspended_ns, "");
    if totals.profiler_high_ns > 0 {
        let bounds_ns = [totals.profiler_low_ns, totals.profiler_high_ns];
        let ours = if raw { "included in the times below" } else { "subtracted from the times below" };
        let [low, high] = bounds_ns.map(time);
        let text = format!("{} of its own work (between {low} and {high}), {ours}", time(totals.profiler_ns));
        let fact = Fact::new("profiler", text);
        facts.push(Fact { time_ns: Some(totals.profiler_ns), bounds_ns: Some(bounds_ns), ..fact });
    }
}

/// Line about the memory that the instruments themselves used in the program.
fn own_memory(processes: &[ProcessConditions<'_>]) -> Option<Fact> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (instrument, bytes) in processes.iter().flat_map(|process| process.process.memory_of_instruments()) {
        let sum = sums.entry(instrument).or_default();
        *sum = sum.saturating_add(bytes);
    }
    let took: Vec<String> = sums.iter().map(|(instrument, sum)| format!("{instrument} took {}", bytes(*sum))).collect();
    let text =
        || format!("tables of {} in the program's memory, in addition to the recording", took.join(", those of "));
    (!took.is_empty()).then(|| Fact::new("memory", text()))
}

fn remarks(facts: &mut Vec<Fact>, processes: &[ProcessConditions<'_>]) {
    let all = || processes.iter().flat_map(|process| process.remarks);
    for remark in all().take(MOST_LISTED) {
        let is_warning = remark.kind != RemarkKind::Note;
        facts.push(Fact { is_warning, ..Fact::new("remarks", remark.to_string()) });
    }
    more(facts, "remarks", all().count());
}

fn more(facts: &mut Vec<Fact>, key: &'static str, all: usize) {
    facts.extend((all > MOST_LISTED).then(|| Fact::new(key, format!("and {} more", all - MOST_LISTED))));
}

/// Losses, one sentence per reason, so that no loss is silent.
fn losses(facts: &mut Vec<Fact>, recording: &Recording, conditions: &Conditions<'_>) {
    for problem in recording.problems.iter().take(MOST_LISTED) {
        facts.push(Fact::warning("unreadable", format!("{}: {}", problem.place, problem.what)));
    }
    more(facts, "unreadable", recording.problems.len());
    let mut none = recording.problems.is_empty();
    for reason in LossReason::ALL {
        let losses = conditions.processes.iter().flat_map(|p| &p.process.losses);
        let lost = losses.filter(|l| l.reason == reason).fold(0_u64, |sum, l| sum.saturating_add(l.count));
        if lost == 0 {
            continue;
        }
        none = false;
        facts.push(match reason.is_benign() {
            true => Fact::new("note", reason.sentence()),
            false => Fact::warning("lost", format!("{}: {}", times(lost), reason.sentence())),
        });
    }
    facts.extend(none.then(|| Fact::new("lost", "nothing")));
}

/// Number of times in words: `once`, `2 times`.
fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{} times", count(number)) }
}

/// Fact about the run: how long it took, since when, and how it ended. For a program that ran on,
/// the time is that of the recording; its total run time is unknown.
fn run(recording: &Recording) -> Fact {
    let since = date(recording).map_or_else(String::new, |date| format!(" from {date}"));
    let text = match recording.run.started_unix_ns {
        0 => end(recording),
        _ => format!("{}{since}, {}", time(observed_ns(recording)), end(recording)),
    };
    Fact::new(if ran_on(recording) { "watched" } else { "ran" }, text)
}

/// A phrase that says how long the run took, or for how long it was recorded, and how it ended.
pub(crate) fn length_and_end(recording: &Recording) -> String {
    let length = time(observed_ns(recording));
    match recording.run.started_unix_ns {
        0 => end(recording),
        _ if ran_on(recording) => format!("{length} recorded, {}", end(recording)),
        _ => format!("{length}, {}", end(recording)),
    }
}

/// When the recording began, if that is known.
pub(crate) fn date(recording: &Recording) -> Option<String> {
    let started = jiff::Timestamp::from_nanosecond(i128::from(observed_unix_ns(recording).start)).ok()?;
    (recording.run.started_unix_ns > 0).then(|| started.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

fn end(recording: &Recording) -> String {
    match recording.run.exit {
        Some(Exit::Code(code)) => format!("exit code {code}"),
        Some(Exit::Signal(signal)) if !stack_overflows(recording).is_empty() => {
            format!("ended by signal {signal}, apparently a stack overflow")
        }
        Some(Exit::Signal(signal)) => format!("ended by signal {signal}"),
        None if is_complete(recording) => "ended by itself".to_owned(),
        None if ran_on(recording) => "the program ran on".to_owned(),
        None if ran_still(recording) => "it had not ended".to_owned(),
        None => "its end was not seen".to_owned(),
    }
}

/// The parts of the recording: only the shown ones if it was reduced, otherwise all. `None` if
/// there are none.
fn parts(recording: &Recording) -> Option<Fact> {
    let of_process = |process: &'_ Process| {
        let is_shown = |part: &PartSpan| process.shows(part.since_ns) && process.shows(part.until_ns);
        Part::spans(&process.parts).into_iter().filter(is_shown).collect::<Vec<_>>()
    };
    let parts: Vec<PartSpan> = recording.processes.iter().flat_map(of_process).collect();
    let name = |part: &PartSpan| {
        let long = time(part.until_ns.saturating_sub(part.since_ns));
        format!("{} ({long} from {})", one_line(&part.name), time(part.since_ns))
    };
    let mut text = parts.iter().take(MOST_LISTED).map(name).collect::<Vec<_>>().join(", ");
    if parts.len() > MOST_LISTED {
        text.push_str(&format!(" and {} more", count((parts.len() - MOST_LISTED) as u64)));
    }
    let is_reduced = is_reduced(recording);
    let key = if is_reduced { "only part" } else { "parts" };
    if !is_reduced {
        text.push_str("; --part shows one alone");
    }
    (!parts.is_empty()).then(|| Fact::new(key, text))
}

/// The part to which the recording was reduced; `None` if it was not reduced.
pub(super) fn only_part(recording: &Recording) -> Option<Fact> {
    parts(recording).filter(|_| is_reduced(recording))
}

/// A phrase that says how many parts the recording has; `None` if it has only one or was reduced to
/// one.
pub(super) fn number_of_parts(recording: &Recording) -> Option<String> {
    let number: usize = recording.processes.iter().map(|process| Part::spans(&process.parts).len()).sum();
    let text = || format!("{} parts (--part shows one alone)", count(number as u64));
    (number > 1 && !is_reduced(recording)).then(text)
}

fn is_reduced(recording: &Recording) -> bool {
    recording.processes.iter().any(|process| process.shown.is_some())
}

/// The requests to whose work the recording was reduced; `None` if it was not reduced.
pub(super) fn only_requests(recording: &Recording) -> Option<Fact> {
    let shown: Vec<&ShownWork> = recording.processes.iter().filter_map(|one| one.shown_work.as_deref()).collect();
    if shown.is_empty() {
        return None;
    }
    let requests = shown.iter().map(|work| work.requests.len() as u64).sum::<u64>();
    let text = match requests {
        0 => {
            "nothing: work is attributed only to requests that the program serves, and none of them matches".to_owned()
        }
        _ if shown.iter().all(|work| work.requests.is_empty() || !work.is_known) => {
            "nothing: none of its threads is known to have worked for these requests".to_owned()
        }
        1 => "what was done for 1 request that the program served".to_owned(),
        _ => format!("what was done for {} requests that the program served", count(requests)),
    };
    Some(Fact::new("only", text))
}

/// Whether the recording of a process was stopped while the process ran on, as with attached
/// recordings and snapshots.
fn was_stopped(process: &Process) -> bool {
    process.has_lost(LossReason::Stopped)
}

/// Whether processes without a recorded end were still running when the recording was read: none of
/// them is known to have ended abruptly.
fn ran_still(recording: &Recording) -> bool {
    !recording.processes.is_empty() && !recording.processes.iter().any(|one| one.has_lost(LossReason::AbruptEnd))
}

/// The runtime of a process.
pub(super) fn runtime<'a>(one: &ProcessConditions<'a>) -> &'a str {
    if one.process.runtime.is_empty() { "unknown runtime" } else { &one.process.runtime }
}

/// Remark about the end of a process, if no regular end was seen: `, ran on`, `, end not seen`.
/// Empty if the line about the run says it for all processes.
fn open_end(recording: &Recording, one: &ProcessConditions<'_>) -> &'static str {
    match (one.process.complete, was_stopped(one.process)) {
        (true, _) => "",
        (false, true) if ran_on(recording) => "",
        (false, true) => ", ran on",
        (false, false) if ran_still(recording) => "",
        (false, false) => ", end not seen",
    }
}

/// The program and its arguments without folders, short but enough to identify the program.
fn without_folders(process: &Process) -> String {
    let program = Program::from_process(process);
    let short = |word: &String| match word.rsplit_once('/') {
        Some((folder, file)) if folder.starts_with('/') && !file.is_empty() => file.to_owned(),
        _ => word.clone(),
    };
    let arguments = program.arguments.iter().map(short);
    std::iter::once(program.file_name().to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn clock(calls: &CallsInfo) -> String {
    match calls.clock {
        Clock::Sampled => format!(
            "calls that are made are counted exactly; times are sampled every {} (a function shown without time may have \
             had a little)",
            time(calls.interval_ns)
        ),
        Clock::Tsc => {
            "calls that are made are counted exactly; the time stamp counter is read at every call and return"
                .to_owned()
        }
    }
}

fn inlining(calls: &CallsInfo, includes: bool) -> &'static str {
    match (calls.noinline, includes) {
        (true, _) => "disabled: every call is counted",
        (false, true) => {
            "calls to functions that --include names are never inlined and all counted; other calls are not counted if \
             they were inlined, and their time counts for the caller"
        }
        (false, false) => {
            "as without the profiler: calls to inlined methods are not counted, and their time counts for the caller"
        }
    }
}

fn not_shown(calls: &CallsInfo) -> String {
    let all = [
        (calls.native, "unmanaged calls"),
        (calls.helpers, "runtime helpers"),
        (calls.trivial, "trivial leaf methods"),
        (false, "dynamic methods (their callees are shown)"),
    ];
    all.iter().filter(|(shown, _)| !shown).map(|(_, what)| *what).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_lose_their_folders() {
        let command = ["/usr/lib/dotnet/dotnet", "/opt/a b/VBCSCompiler.dll", "-x/y", "/"].map(str::to_owned).to_vec();
        let process = Process { command, ..Process::default() };
        assert_eq!(without_folders(&process), "VBCSCompiler.dll -x/y /");
    }

    #[test]
    fn one_loss_happened_once() {
        assert_eq!([1, 2, 12_345].map(times), ["once", "2 times", "12,345 times"]);
    }
}
