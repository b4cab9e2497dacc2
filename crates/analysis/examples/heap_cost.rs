//! Time and memory that the view `heap` takes: `heap_cost MILLIONS` of generated objects with three
//! references each, or `heap_cost RECORDING`.

use std::path::Path;
use std::time::Instant;

use clrscope_analysis::{HeapQuery, Heaps, heap};
use clrscope_recording::model::Recording;
use clrscope_recording::testing::heap::large_heap;

/// A value of `/proc/self/status` in bytes.
fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[expect(clippy::print_stdout, reason = "an example prints")]
fn main() {
    let of = std::env::args().nth(1).unwrap_or_else(|| "10".to_owned());
    let recording = match of.parse::<u64>() {
        Ok(millions) => Recording { processes: vec![large_heap(millions * 1_000_000)], ..Recording::default() },
        Err(_) => clrscope_recording::open(Path::new(&of)).expect("a recording"),
    };
    // What the recording itself takes is no part of the analysis.
    let before = status("VmRSS");
    let began = Instant::now();
    let view = heap(&Heaps::new(&recording), &HeapQuery::default()).expect("the view");
    let took = began.elapsed();
    let snapshot = view.snapshots[0];
    println!(
        "retained sizes in {:.2} s, {:.2} GB at most, {} objects, {} references",
        took.as_secs_f64(),
        status("VmHWM").saturating_sub(before) as f64 / 1e9,
        snapshot.objects,
        snapshot.references
    );
}
