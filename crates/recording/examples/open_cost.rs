//! Cost of opening a large recording: creates recordings of any size and measures the time and
//! memory needed to read them. `cargo run --release -p clrscope-recording --features testing
//! --example open_cost`
#![expect(clippy::print_stdout, reason = "an example that prints what it measured")]

use std::path::Path;
use std::time::Instant;

use clrscope_recording::model::{Clock, Recording};
use clrscope_recording::testing::allocator::{self, Counting};
use clrscope_recording::testing::synthetic::{Shape, write_directory};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["directory", path, megabytes, threads, clock] => directory(path, megabytes, threads, clock),
        ["pack", from, to, copies] => pack(from, to, copies),
        ["measure", path] => measure(Path::new(path)),
        _ => println!("directory PATH MEGABYTES THREADS sampled|tsc, pack DIRECTORY FILE COPIES, or measure PATH"),
    }
}

fn directory(path: &str, megabytes: &str, threads: &str, clock: &str) {
    let threads = threads.parse().expect("threads");
    let tree_bytes = megabytes.parse::<usize>().expect("megabytes") << 20;
    let clock = if clock == "tsc" { Clock::Tsc } else { Clock::Sampled };
    write_directory(Path::new(path), &Shape { tree_bytes, threads, clock, ..Shape::default() }).expect("a directory");
}

/// Packs the processes of a directory several times, for a file larger than a directory can yield.
fn pack(from: &str, to: &str, copies: &str) {
    let mut recording = clrscope_recording::open(Path::new(from)).expect("a recording");
    let once = recording.processes.clone();
    for _ in 1..copies.parse::<usize>().expect("copies") {
        recording.processes.extend(once.iter().cloned());
    }
    let started = Instant::now();
    let mut file = std::io::BufWriter::new(std::fs::File::create(to).expect("a file"));
    let report = clrscope_recording::pack::write(&recording, &mut file).expect("a packed file");
    let peak = allocator::so_far() >> 20;
    println!(
        "packed {} MB, {} nodes, {:.2?}, heap peak {peak} MB",
        report.bytes >> 20,
        report.nodes,
        started.elapsed()
    );
}

fn measure(path: &Path) {
    let started = Instant::now();
    let recording = clrscope_recording::open(path).expect("a recording");
    let opened = started.elapsed();
    let heap = allocator::so_far() >> 20;
    assert!(recording.problems.is_empty(), "{:?}", recording.problems);
    println!("open {opened:.2?}, heap peak {heap} MB, {}", resident());
    let started = Instant::now();
    let (nodes, calls, wall) = load_all(&recording);
    let heap = allocator::so_far() >> 20;
    println!("all trees {:.2?}, heap peak {heap} MB, {}", started.elapsed(), resident());
    println!("nodes {nodes}, calls {calls}, wall {wall}");
}

fn load_all(recording: &Recording) -> (usize, u64, u64) {
    let mut sums = (0, 0, 0_u64);
    for thread in recording.processes.iter().flat_map(|process| &process.threads) {
        let tree = thread.tree.load();
        sums.0 += tree.len();
        sums.1 += (0..tree.len() as u32).map(|node| tree.calls(node)).sum::<u64>();
        sums.2 += tree.values().iter().map(|(_, time)| time.metric).sum::<u64>();
    }
    sums
}

/// Peak resident memory as counted by the kernel: mapped files count too.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) >> 10
    };
    format!("resident peak {} MB (now {} anonymous, {} mapped)", field("VmHWM"), field("RssAnon"), field("RssFile"))
}
