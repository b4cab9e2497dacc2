//! The head of a report: where the numbers come from and what to keep in mind with them.

use anstyle::Style;
use clrscope_analysis::{Conditions, ProcessConditions, Program, Totals, own_programs, unmatched_patterns};
use clrscope_recording::model::{CallsInfo, Clock, Exit, LossReason, Process, Recording, Remark};

use super::names::{columns, shortened};
use super::one_line;
use super::units::{count, share, time};
use super::{FAINT, TITLE, WARNING, styled};
use crate::recorded::is_complete;

/// Columns of the labels on the left.
const LABELS: usize = 11;
/// Processes and remarks listed before the rest is only counted.
const MOST_LISTED: usize = 8;

/// The head of a report about `recording`.
pub(super) fn head(recording: &Recording, conditions: &Conditions<'_>, width: usize) -> String {
    let mut head = Head { text: String::new(), width };
    let command = one_line(recording.run.command.join(" "));
    head.text.push_str(&styled(TITLE, &shortened(if command.is_empty() { "(no command)" } else { &command }, width)));
    head.text.push('\n');
    head.entry("ran", &ran(recording));
    head.processes(&conditions.processes);
    head.own_programs(recording, &conditions.processes);
    if !conditions.recorded.is_empty() {
        // With blanks it can be wrapped.
        head.entry("recorded", &conditions.recorded.replace(',', ", ").replace(';', "; "));
    }
    if let Some(calls) = conditions.processes.iter().find_map(|p| p.calls) {
        head.entry("clock", &clock(calls));
        head.entry("inlining", inlining(calls));
        head.entry("not shown", &not_shown(calls));
        head.runtime_and_profiler(&conditions.totals, conditions.raw);
    }
    for (index, unmatched) in unmatched_patterns(recording).iter().enumerate() {
        head.warning(if index == 0 { "patterns" } else { "" }, &unmatched.to_string());
    }
    head.remarks(&conditions.processes);
    head.losses(recording, conditions);
    head.text.push('\n');
    head.text
}

struct Head {
    text: String,
    width: usize,
}

impl Head {
    fn entry(&mut self, label: &str, text: &str) {
        self.labelled(FAINT, label, text);
    }

    fn warning(&mut self, label: &str, text: &str) {
        self.labelled(WARNING, label, text);
    }

    /// A label and a text, wrapped at spaces.
    fn labelled(&mut self, style: Style, label: &str, text: &str) {
        let room = self.width.saturating_sub(LABELS).max(20);
        let label = styled(style, &format!("{label:<LABELS$}"));
        let indent = format!("\n{}", " ".repeat(LABELS));
        self.text.push_str(&format!("{label}{}\n", wrapped(&one_line(text), room).join(&indent)));
    }

    fn processes(&mut self, processes: &[ProcessConditions<'_>]) {
        if let [only] = processes {
            return self
                .entry("runtime", &format!("{}, process {}{}", runtime(only), only.process.pid, open_end(only)));
        }
        let room = self.width.saturating_sub(LABELS + 1).max(20);
        for (index, one) in processes.iter().take(MOST_LISTED).enumerate() {
            let facts = format!("{} of {}, {}{}: ", share(one.share), one.process.pid, runtime(one), open_end(one));
            let command = one_line(without_folders(one.process));
            let line = format!("{facts}{}", shortened(&command, room.saturating_sub(columns(&facts)).max(16)));
            self.entry(if index == 0 { "processes" } else { "" }, &line);
        }
        if processes.len() > MOST_LISTED {
            self.entry("", &format!("and {} more", processes.len() - MOST_LISTED));
        }
    }

    /// Among the processes of a build or a test run the user's own is easily overlooked.
    fn own_programs(&mut self, recording: &Recording, shown: &[ProcessConditions<'_>]) {
        let own = own_programs(recording);
        let is_own = |one: &ProcessConditions<'_>| own.iter().any(|own| std::ptr::eq(*own, one.process));
        if shown.iter().all(is_own) {
            return;
        }
        for (index, process) in own.iter().take(MOST_LISTED).enumerate() {
            let name = one_line(Program::of(process).name());
            let text =
                format!("process {} is {name}, not a tool of the SDK: --process {name} shows it alone", process.pid);
            self.entry(if index == 0 { "yours" } else { "" }, &text);
        }
    }

    fn runtime_and_profiler(&mut self, totals: &Totals, raw: bool) {
        let of = |ns| format!("{} of {} ({})", time(ns), time(totals.functions_ns), share(totals.share(ns)));
        if totals.jit_ns > 0 {
            let because = "part of it only because instrumented methods are recompiled";
            self.entry("compiling", &format!("{}, {because}", of(totals.jit_ns)));
        }
        if totals.suspended_ns > 0 {
            self.entry("suspended", &of(totals.suspended_ns));
        }
        if totals.profiler_high_ns > 0 {
            let bounds = format!("between {} and {}", time(totals.profiler_low_ns), time(totals.profiler_high_ns));
            let ours = if raw { "is included in the times below" } else { "has been subtracted from the times below" };
            self.entry("profiler", &format!("{} ({bounds}) {ours}", time(totals.profiler_ns)));
        }
    }

    fn remarks(&mut self, processes: &[ProcessConditions<'_>]) {
        let remarks: Vec<&Remark> = processes.iter().flat_map(|p| p.remarks).collect();
        for (index, remark) in remarks.iter().take(MOST_LISTED).enumerate() {
            self.entry(if index == 0 { "remarks" } else { "" }, &remark.to_string());
        }
        if remarks.len() > MOST_LISTED {
            self.entry("", &format!("and {} more", remarks.len() - MOST_LISTED));
        }
    }

    /// Losses, one sentence per reason: nothing is lost silently.
    fn losses(&mut self, recording: &Recording, conditions: &Conditions<'_>) {
        for problem in recording.problems.iter().take(MOST_LISTED) {
            self.warning("unreadable", &format!("{}: {}", problem.place, problem.what));
        }
        if recording.problems.len() > MOST_LISTED {
            self.warning("", &format!("and {} more", recording.problems.len() - MOST_LISTED));
        }
        let mut none = recording.problems.is_empty();
        for reason in LossReason::ALL {
            let losses = conditions.processes.iter().flat_map(|p| &p.process.losses);
            let lost = losses.filter(|l| l.reason == reason).fold(0_u64, |sum, l| sum.saturating_add(l.count));
            if lost == 0 {
                continue;
            }
            none = false;
            match reason.is_benign() {
                true => self.entry("note", reason.sentence()),
                false => self.warning("lost", &format!("{}: {}", times(lost), reason.sentence())),
            }
        }
        if none {
            self.entry("lost", "nothing");
        }
    }
}

/// How often: `once`, `2 times`.
fn times(number: u64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{} times", count(number)) }
}

fn ran(recording: &Recording) -> String {
    let run = &recording.run;
    let started = jiff::Timestamp::from_nanosecond(i128::from(run.started_unix_ns)).unwrap_or_default();
    let end = match run.exit {
        Some(Exit::Code(code)) => format!("exit code {code}"),
        Some(Exit::Signal(signal)) => format!("ended by signal {signal}"),
        None if is_complete(recording) => "ended by itself".to_owned(),
        None => "its end was not seen".to_owned(),
    };
    match run.started_unix_ns {
        0 => end,
        _ => format!("{} from {}, {end}", time(run.duration_ns), started.strftime("%Y-%m-%d %H:%M:%S UTC")),
    }
}

fn runtime<'a>(one: &ProcessConditions<'a>) -> &'a str {
    if one.process.runtime.is_empty() { "unknown runtime" } else { &one.process.runtime }
}

/// Processes that outlived the recording, or whose end nobody saw.
fn open_end(one: &ProcessConditions<'_>) -> &'static str {
    if one.process.complete { "" } else { ", end not seen" }
}

/// The program and its arguments without the folders in front: what is left says which program it is.
fn without_folders(process: &Process) -> String {
    let program = Program::of(process);
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
            "call counts are exact; times are sampled every {} (a function shown without time may have had a little)",
            time(calls.interval_ns)
        ),
        Clock::Tsc => "call counts are exact; the time stamp counter is read at every call and return".to_owned(),
    }
}

fn inlining(calls: &CallsInfo) -> &'static str {
    match calls.noinline {
        true => "disabled: every call is counted",
        false => "as without the profiler: calls to inlined methods are not counted, their time is the caller's",
    }
}

fn not_shown(calls: &CallsInfo) -> String {
    let all = [
        (calls.native, "unmanaged calls"),
        (calls.helpers, "runtime helpers"),
        (calls.trivial, "trivial leaf methods"),
        (false, "dynamic methods (what they call is)"),
    ];
    all.iter().filter(|(shown, _)| !shown).map(|(_, what)| *what).collect::<Vec<_>>().join(", ")
}

/// Lines of at most `room` columns, broken at spaces; a longer word stands alone.
pub(super) fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if columns(line) + 1 + columns(word) <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|line| shortened(line, room)).collect()
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

    #[test]
    fn long_texts_are_wrapped_at_spaces() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
        assert_eq!(wrapped("abcdefghijklmnopqrst", 10).len(), 1);
    }
}
