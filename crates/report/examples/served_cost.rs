//! Measures the time of answers about a recording, with the questions that a served page asks:
//! `cargo run --release -p clrscope-report --example served_cost -- FILE [QUESTION ...]`. `cargo
//! xtask large` makes recordings of the maximum size. A question has the form of the page's queries
//! (`key=tree.cpu&threads=7.3`), or is `page`, which represents the page in one file. Without
//! questions, the example asks for all documents, and for some of them with filters.
#![expect(clippy::print_stdout, reason = "the figures are its result")]

use std::path::PathBuf;
use std::time::Instant;

use clrscope_recording::model::Recording;
use clrscope_report::{DocumentRequest, Format, Request, ServedRecording};

/// Processor time of this process so far, seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Peak resident memory so far, MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (started, cpu) = (Instant::now(), cpu_seconds());
    let result = work();
    let (wall, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    println!("{what:<60} {wall:>8.3} s wall {cpu:>7.2} s CPU   peak {:>6} MiB", peak_mib());
    result
}

/// The page in one file.
fn page(recording: &Recording) -> usize {
    let summary = clrscope_report::view("summary").expect("a view");
    let report = summary.open(recording, &Request::default()).expect("an answer");
    let mut out = Vec::new();
    report.write(Format::Html, 0, &mut out).expect("memory takes all");
    out.len()
}

/// A question for every document, and further ones with filters for summary, trees and functions.
fn questions(served: &ServedRecording<'_>, recording: &Recording) -> Vec<String> {
    let whole = recording.run.duration_ns;
    let part = format!("since={}&until={}", whole / 10, whole / 2);
    let narrow = format!("since={}&until={}", whole / 10, whole / 9);
    let process = recording.processes.first();
    let thread = process.and_then(|process| Some(format!("{}.{}", process.pid, process.threads.first()?.id)));
    let threads = format!("threads={}", thread.unwrap_or_default());
    let mut all = Vec::new();
    for key in served.keys() {
        let of_tree = if key.starts_with("tree.") { process.map(|process| process.pid) } else { None };
        let below = of_tree.map(|pid| [format!("below={pid}.0.0"), format!("below={pid}.0.0.0.0.0")]);
        let filters = match key.split('.').next() {
            Some("summary" | "tree" | "functions") => vec![part.clone(), narrow.clone(), threads.clone()],
            _ => Vec::new(),
        };
        let question = |filter: String| format!("key={key}&{filter}");
        all.push(format!("key={key}"));
        all.extend(below.into_iter().flatten().chain(filters).map(question));
    }
    all
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = PathBuf::from(arguments.next().expect("a file"));
    let asked: Vec<String> = arguments.collect();
    println!("{} MiB", file.metadata().map_or(0, |found| found.len()) >> 20);
    let recording = timed("open", || clrscope_recording::open(&file).expect("a recording"));
    let served = ServedRecording::new(&recording, Request::default());
    timed("index", || served.index(1, false).len());
    for question in if asked.is_empty() { questions(&served, &recording) } else { asked } {
        let size = timed(&question, || match question.as_str() {
            "page" => page(&recording),
            _ => served.document(&DocumentRequest::parse(&question).expect("a question")).expect("an answer").len(),
        });
        println!("{:>60} KB", size / 1_000);
    }
}
