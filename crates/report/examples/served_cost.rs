//! Time that the answers of a served page take on a made-up recording: `cargo run --release -p clrscope-report --example
//! served_cost -- FILE [SAMPLES] [STACKS] [THREADS]`. Where there is no such file, the recording is made and packed into it; run
//! it again to read it with a fresh process. With `page` in place of the numbers, the time and size of the page in one file.
#![expect(clippy::print_stdout, reason = "the figures are its result")]

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Instant;

use clrscope_recording::pack;
use clrscope_recording::testing::many::Many;
use clrscope_report::{Request, Served, Wanted};

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

fn main() {
    let number = |at, default| std::env::args().nth(at).and_then(|a| a.parse().ok()).unwrap_or(default);
    let file = std::env::args().nth(1).expect("a file");
    let shape = Many { samples: number(2, 10_000_000), stacks: number(3, 1_000_000), threads: number(4, 500) };
    let file = Path::new(&file);
    if !file.exists() {
        let recording = timed("make", || shape.recording());
        let mut out = BufWriter::new(File::create(file).expect("a new file"));
        timed("pack", || pack::write(&recording, &mut out).expect("packed"));
        return;
    }
    if std::env::args().nth(2).as_deref() == Some("page") {
        let recording = timed("open", || clrscope_recording::open(file).expect("a recording"));
        let mut out = Vec::new();
        let summary = clrscope_report::view("summary").expect("a view");
        let report = timed("summary", || summary.open(&recording, &Request::default()).expect("an answer"));
        timed("page", || report.write(clrscope_report::Format::Html, 0, &mut out).expect("memory takes all"));
        println!("{} KB", out.len() / 1_000);
        return;
    }
    println!("{} MiB", file.metadata().map_or(0, |m| m.len()) >> 20);
    let recording = timed("open", || clrscope_recording::open(file).expect("a recording"));
    let served = Served::new(&recording, Request::default());
    timed("index", || served.index(1, false).len());
    let whole = recording.run.duration_ns;
    let part = format!("&since={}&until={}", whole / 10, whole / 2);
    let narrow = format!("&since={}&until={}", whole / 10, whole / 9);
    for question in [
        "key=summary".to_owned(),
        "key=tree.cpu".to_owned(),
        "key=tree.cpu&below=7.0.0".to_owned(),
        "key=tree.cpu&below=7.0.0.0.0.0".to_owned(),
        format!("key=tree.cpu{part}"),
        format!("key=tree.cpu{narrow}"),
        "key=tree.cpu&threads=7.3".to_owned(),
        "key=tree.cpu&threads=7.3.4.5.6".to_owned(),
        "key=functions.cpu".to_owned(),
        format!("key=functions.cpu{part}"),
        "key=functions.cpu&threads=7.3".to_owned(),
        "key=timeline".to_owned(),
        "key=threads".to_owned(),
        "key=modules".to_owned(),
        "key=conditions".to_owned(),
        "key=losses".to_owned(),
        "key=lines.cpu".to_owned(),
        "key=summary&threads=7.3".to_owned(),
        format!("key=summary{part}"),
    ] {
        let wanted = Wanted::parse(&question).expect("a question");
        let size = timed(&question, || served.document(&wanted).expect("an answer").len());
        println!("{:>60} KB", size / 1_000);
    }
}
