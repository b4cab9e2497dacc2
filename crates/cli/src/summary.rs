//! The summary at the end of a run: the top functions, the recording's path, and the next command
//! to type.

use std::collections::BTreeSet;
use std::path::Path;

use clrscope_analysis::numbers::number;
use clrscope_analysis::{
    Program, Query, UnmatchedPattern, has_probes, own_programs, stack_overflows, summary, unmatched_patterns,
};
use clrscope_contract::instruments::first_view;
use clrscope_contract::request::Glob;
use clrscope_recording::model::{Loss, LossReason, Process, Recording, Remark, RemarkKind};

use clrscope_report::{first_counted, first_functions};

use crate::errors::{one_line, quoted, shell_word, shown};
use crate::launch::disabled_by;
use crate::periods::PeriodOptions;
use crate::recording_file::open_for;
use crate::session::FinishedRecording;
use crate::terminal::{message_width, say};

/// Functions in the summary.
const TOP: usize = 5;
/// Maximum number of unrecorded processes that the summary names; the report names all.
const MOST_REFUSALS: usize = 3;

/// Prints on stderr what was recorded, or why nothing was. The reason is printed even with `quiet`:
/// the exit code is the program's and does not show that there is no recording.
pub(crate) fn after_run(recorded: &FinishedRecording, quiet: bool) {
    match &recorded.path {
        Some(path) => print_summary(path, recorded.limited, quiet),
        None => nothing(recorded.limited),
    }
}

/// Prints how many recordings of periods there are, if there are any.
pub(crate) fn say_periods(recordings: Option<u64>, options: Option<&PeriodOptions>, quiet: bool) {
    if let (Some(recordings @ 1..), Some(options), false) = (recordings, options, quiet) {
        let (count, folder) = (number(recordings), shown(&options.folder));
        let several = if recordings == 1 { "" } else { "s" };
        say(&format!("clrscope: {count} recording{several} written to {folder}, one for each period; the last one:"));
    }
}

/// Prints the contents of the recording at `path` on stderr. `limited`: whether `--only` restricted
/// the recording to some programs.
pub(crate) fn print_summary(path: &Path, limited: bool, quiet: bool) {
    let recording = match open_for(path, &Query::default()) {
        Ok(recording) => recording,
        // Packing has already reported that the recording is gone.
        Err(_) if !path.exists() => return,
        Err(failure) => return say(failure.to_string().trim_end()),
    };
    let mut refusals: Vec<&str> = recording.processes.iter().filter_map(Process::refusal).collect();
    if refusals.len() == recording.processes.len() {
        return match refusals.first() {
            Some(why) => say(&one_line(format!("clrscope: nothing was recorded, {why}"))),
            None => nothing(limited),
        };
    }
    if quiet {
        return;
    }
    let own = own_name(&recording);
    let query = Query { limit: Some(TOP), process: own.as_deref().map(Glob::new), ..Query::default() };
    let view = summary(&recording, &query).unwrap_or_default();
    refusals.truncate(MOST_REFUSALS);
    refusals.iter().for_each(|why| say(&one_line(format!("clrscope: a process was not recorded, {why}"))));
    say_unmatched(&recording);
    say_not_probed(&recording);
    say_bounds(&recording);
    say_overflows(&recording);
    say_advice(&recording);
    if !view.top.is_empty() && view.conditions.totals.functions_ns > 0 {
        say(first_functions(&view, message_width()).trim_end());
    } else if let Some(counted) = first_counted(&recording, &query, message_width()) {
        say(counted.trim_end());
    } else {
        view.findings.iter().for_each(|finding| say(&one_line(format!("clrscope: {}", finding.text))));
    }
    let mut next = shell_word(&path.to_string_lossy());
    if let Some(own) = own {
        say(&format!("clrscope: these functions belong to {}; tools of the SDK were recorded, too", quoted(&own)));
        next.push_str(&format!(" --process {}", shell_word(&own)));
    }
    if let Some(view) = first_view(recording.run.filled.instruments()) {
        next.push_str(&format!(" --view {view}"));
    }
    say(&format!("clrscope: recorded {}; next: clrscope report {next}", shown(path)));
}

/// Prints the patterns that matched nothing, one per line.
pub(crate) fn say_unmatched(recording: &Recording) {
    unmatched_patterns(recording).iter().for_each(|unmatched| say(&one_line(format!("clrscope: {unmatched}"))));
}

/// Prints the probes that match nothing so far, one per line: assemblies that are loaded later may
/// contain their targets.
pub(crate) fn say_unmatched_probes(recording: &Recording) {
    let unmatched = unmatched_patterns(recording).into_iter().filter(UnmatchedPattern::is_probe);
    unmatched.for_each(|one| say(&one_line(format!("clrscope: {one}"))));
}

/// If none of the methods and lines found could be instrumented, prints why there are no probes.
fn say_not_probed(recording: &Recording) {
    let losses = recording.processes.iter().flat_map(|process| &process.losses);
    let refused: Vec<&Loss> = losses.filter(|loss| loss.reason == LossReason::NotProbed).collect();
    let count = refused.iter().fold(0_u64, |sum, loss| sum.saturating_add(loss.count));
    let Some(first) = refused.iter().find_map(|loss| loss.details.first()) else { return };
    if has_probes(recording) {
        return;
    }
    let of_others = match count {
        0 | 1 => String::new(),
        2 => "; nor could one other".to_owned(),
        _ => format!("; nor could {} others", number(count - 1)),
    };
    say(&one_line(format!("clrscope: no probe could be set. {first}{of_others}")));
}

/// Prints which limit stopped the recording's growth: after that point data is missing.
fn say_bounds(recording: &Recording) {
    for bound in [LossReason::SizeLimit, LossReason::DiskReserve] {
        let losses = recording.processes.iter().flat_map(|process| &process.losses);
        if losses.filter(|loss| loss.reason == bound).count() > 0 {
            say(&format!("clrscope: {}; everything up to then is there", bound.sentence()));
        }
    }
}

/// Prints that a stack overflow ended the program: hooks contribute to the stack use.
fn say_overflows(recording: &Recording) {
    stack_overflows(recording).iter().for_each(|found| say(&one_line(format!("clrscope: {found}"))));
}

/// Prints each process's last advice.
fn say_advice(recording: &Recording) {
    let is_advice = |remark: &&Remark| matches!(remark.kind, RemarkKind::Advice(_));
    let advice = recording.processes.iter().filter_map(|process| process.remarks.iter().rfind(is_advice));
    advice.for_each(|remark| say(&one_line(format!("clrscope: {remark}"))));
}

/// Under `dotnet run` or `dotnet test`: the name of the user's program, if there is exactly one.
fn own_name(recording: &Recording) -> Option<String> {
    let own: BTreeSet<&str> =
        own_programs(recording).into_iter().map(|process| Program::from_process(process).name()).collect();
    let mut names = own.into_iter();
    names.next().filter(|_| names.next().is_none()).map(str::to_owned)
}

/// Prints one line on stderr: there is no recording, the reason if the environment shows it, and a
/// remedy.
fn nothing(limited: bool) {
    say(&match disabled_by() {
        Some(name) => format!("clrscope: nothing was recorded, because {name}=0 disables every profiler; unset it"),
        None if limited => {
            "clrscope: nothing was recorded: no .NET program that was started matches --only or a line of \
             --only-from (name or path of its executable or entry assembly)"
                .to_owned()
        }
        None => "clrscope: nothing was recorded, and no file was written: the program started no .NET runtime that \
                 loads profilers. Either it ended too early, is native or NativeAOT, disables diagnostics in its \
                 runtimeconfig.json, or runs 'clrscope run' itself. 'clrscope doctor' shows whether .NET programs can \
                 be profiled here"
            .to_owned(),
    });
}
