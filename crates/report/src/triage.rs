//! Output of the triage of a program, as text and as JSON.

use std::io::{self, Write};

use clrscope_analysis::{Triage, TriageVerdict, Trouble, Vitals};
use clrscope_symbols::Lines;
use serde_json::{Value, json};

use crate::render::Guard;
use crate::render::text::units::bytes;
use crate::render::text::wrapped;
use crate::views::LocatedFinding;

/// Schema of the JSON document.
const SCHEMA: &str = "clrscope.triage/1";
/// Indentation of the lines of a verdict.
const INDENT: &str = "   ";

/// What the triage is about, in the form that commands use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriageSubject {
    /// A running process.
    Process(u32),
    /// A recording, by the name that the user gave.
    Recording(String),
}

impl TriageSubject {
    /// The command for a closer look.
    fn command(&self, trouble: Trouble) -> String {
        match self {
            Self::Process(pid) => {
                let attach = |instruments: &str| format!("clrscope attach {pid} {instruments} --duration 30s");
                match trouble {
                    Trouble::Cpu => attach("-i cpu"),
                    Trouble::PoolStarved | Trouble::Wait => format!("clrscope stacks {pid}"),
                    Trouble::LockConvoy => attach("-i locks -i wall"),
                    Trouble::Exceptions => attach("-i exceptions"),
                    Trouble::Gc => attach("-i gc -i alloc"),
                    Trouble::Allocation => attach("-i alloc"),
                    Trouble::GrowingHeap => {
                        format!("clrscope heap {pid} -o 1.clrs, again with -o 2.clrs, then clrscope diff 1.clrs 2.clrs")
                    }
                    Trouble::Idle | Trouble::Nothing => format!("clrscope counters {pid}"),
                }
            }
            Self::Recording(name) => {
                let view = match trouble {
                    Trouble::Cpu => "tree",
                    Trouble::LockConvoy => "locks",
                    Trouble::Exceptions => "exceptions",
                    Trouble::Gc | Trouble::GrowingHeap => "gc",
                    Trouble::Allocation => "allocations",
                    Trouble::PoolStarved | Trouble::Wait => "tree --metric wall",
                    Trouble::Idle | Trouble::Nothing => "summary",
                };
                format!("clrscope report {name} --view {view}")
            }
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Process(pid) => format!("process {pid}"),
            Self::Recording(name) => name.clone(),
        }
    }
}

/// Writes the triage as text of `width` columns.
///
/// # Errors
/// Errors of `out`.
pub fn write_triage(triage: &Triage, subject: &TriageSubject, width: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = wrapped(&format!("clrscope triage: {}; {}", subject.words(), in_words(&triage.vitals)), width);
    let mut sources = Lines::default();
    for (number, verdict) in triage.verdicts.iter().enumerate() {
        lines.push(String::new());
        let certainty = if verdict.is_certain { "certain" } else { "likely" };
        lines.push(format!("{}. {} ({certainty})", number + 1, verdict.trouble.words()));
        let said = sentences(verdict, &mut sources).into_iter().chain([next(verdict, subject)]);
        let room = width.saturating_sub(INDENT.len());
        lines.extend(said.flat_map(|line| wrapped(&line, room)).map(|line| format!("{INDENT}{line}")));
    }
    // Names of the program may have any characters.
    Guard::new(out).write_all((lines.join("\n") + "\n").as_bytes())
}

fn next(verdict: &TriageVerdict, subject: &TriageSubject) -> String {
    format!("look closer: {}", subject.command(verdict.trouble))
}

/// The evidence, a sentence each.
fn sentences(verdict: &TriageVerdict, lines: &mut Lines) -> Vec<String> {
    let finding = verdict.finding.as_ref().map(|finding| LocatedFinding::new(finding, lines).text);
    finding.into_iter().chain(verdict.evidence.iter().map(|one| one.text.clone())).collect()
}

fn in_words(vitals: &Vitals) -> String {
    let mut parts = vec![format!("{:.1} s", vitals.time_ns as f64 / 1e9)];
    parts.extend(vitals.cpu.map(|cpu| format!("{cpu:.2} processors busy")));
    parts.push(format!("{:.1} % in collections", vitals.paused * 100.0));
    parts.extend(vitals.allocated.map(|rate| format!("{} allocated per second", bytes(rate as u64))));
    parts.extend(vitals.thrown.map(|rate| format!("{rate:.0} exceptions per second")));
    parts.join(", ")
}

/// The JSON document.
#[must_use]
pub fn triage_json(triage: &Triage, subject: &TriageSubject) -> Value {
    let mut sources = Lines::default();
    let verdicts: Vec<Value> = triage.verdicts.iter().map(|one| verdict(one, subject, &mut sources)).collect();
    let Vitals { time_ns, cpu, ready, paused, allocated, thrown, contended, queue, memory_work } = triage.vitals;
    let pid = if let TriageSubject::Process(pid) = subject { Some(pid) } else { None };
    json!({
        "schema": SCHEMA,
        "pid": pid,
        "duration_ns": time_ns,
        "verdicts": verdicts,
        "vitals": {
            "processors_busy": cpu,
            "threads_ready": ready,
            "gc_pause_share": paused,
            "gc_cpu_share": memory_work,
            "allocated_bytes_per_s": allocated,
            "exceptions_per_s": thrown,
            "contentions_per_s": contended,
            "pool_queue_max": queue.map(|(most, _)| most),
        },
    })
}

fn verdict(verdict: &TriageVerdict, subject: &TriageSubject, lines: &mut Lines) -> Value {
    let located = verdict.finding.as_ref().map(|finding| LocatedFinding::new(finding, lines));
    let line = located.as_ref().and_then(LocatedFinding::source);
    let share =
        |finding: &LocatedFinding<'_>| json!({ "text": finding.text, "value": finding.finding.share, "unit": "share" });
    let numbers = verdict.evidence.iter().map(|one| json!({ "text": one.text, "value": one.value, "unit": one.unit }));
    let evidence: Vec<Value> = located.iter().map(share).chain(numbers).collect();
    json!({
        "kind": verdict.trouble.name(),
        "confidence": if verdict.is_certain { "certain" } else { "likely" },
        "text": verdict.trouble.words(),
        "threads": verdict.cost,
        "function": verdict.finding.as_ref().and_then(|finding| finding.function.as_ref()).map(|function| &function.name),
        "file": line.map(|line| &line.file),
        "line": line.map(|line| line.line),
        "evidence": evidence,
        "command": subject.command(verdict.trouble),
    })
}
