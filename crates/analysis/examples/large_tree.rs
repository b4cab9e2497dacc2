//! Time that the views take on a generated tree: `cargo run --release -p clrscope-analysis --example large_tree --
//! [MILLION_NODES] [THREADS] [FILE]`. With a file the tree is packed into it, and it is only opened, so that memory is
//! that of a report: without trees but the one being decoded.
#![expect(clippy::print_stdout, reason = "the figures are its result")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use clrscope_analysis::{Forest, Query, TreeNode, TreeOptions, call_graph, functions, tree};
use clrscope_recording::model::{
    CallTree, CallTreeBuilder, CallsInfo, Function, HookCost, Module, Node, NodeFlags, NodeValues, Process, ROOT,
    Recording, Thread, TreeSource,
};
use clrscope_recording::pack;
use clrscope_recording::testing::synthetic::Numbers;

const FUNCTIONS: u32 = 20_000;

/// The function that `caller` calls at its nth place: a few are called from everywhere.
fn callee(caller: u32, place: u32) -> u32 {
    let mut numbers = Numbers::new(u64::from(caller * 8 + place));
    numbers.next();
    1 + (numbers.below(FUNCTIONS as usize) * numbers.below(1000) / 1000) as u32
}

/// A tree like a compiler's: deep, mostly leaves, a few functions called from everywhere, time on one
/// node in two hundred.
fn tree_of(nodes: u32, seed: u64) -> CallTree {
    let mut numbers = Numbers::new(seed);
    let mut builder = CallTreeBuilder::new(NodeValues { metric: 1000, cpu_ns: 0 });
    let mut path = vec![(ROOT, 0)];
    for _ in 1..nodes {
        let leave = if path.len() > 60 { 1 + numbers.below(50) } else { numbers.below(3) };
        path.truncate(path.len().saturating_sub(leave).max(1));
        let function = callee(path[path.len() - 1].1, numbers.below(8) as u32);
        let timed = numbers.below(200) == 0;
        let time = if timed { NodeValues { metric: 1_000_000, cpu_ns: 900_000 } } else { NodeValues::default() };
        let calls = 1 + numbers.below(100) as u64;
        let parent = path[path.len() - 1].0;
        path.push((
            builder.push(Node { parent, function, calls, values: time, flags: NodeFlags::default() }),
            function,
        ));
    }
    builder.finish()
}

fn recording(nodes: u32, threads: u32) -> Recording {
    let function = |n| Function { name: format!("Space.Type{}::Method{n}", n / 20), module: 1, ..Function::default() };
    let thread = |id: u32| {
        let tree = TreeSource::ready(tree_of(nodes / threads, id.into()));
        Thread { id, os_id: id, tree, ..Thread::default() }
    };
    let hook_cost = HookCost { enter_ns: 1.2, leave_ns: 1.0, pair_low_ns: 1.5, pair_high_ns: 4.0 };
    let process = Process {
        pid: 1,
        calls: Some(CallsInfo { cpu_measured: true, hook_cost, ..CallsInfo::default() }),
        functions: (0..=FUNCTIONS).map(function).collect(),
        modules: vec![Module::default(), Module { name: "Generated".into(), ..Module::default() }],
        threads: (1..=threads).map(thread).collect(),
        ..Process::default()
    };
    Recording { processes: vec![process], ..Recording::default() }
}

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
    println!("{what:<24} {wall:>8.2} s wall {cpu:>8.2} s CPU   peak {:>6} MiB", peak_mib());
    result
}

/// Packs a generated recording into `file`, unless it is there, and reports on it.
fn from_file(file: &Path, nodes: u32, threads: u32) {
    if !file.exists() {
        let mut out = BufWriter::new(File::create(file).expect("a new file"));
        pack::write(&recording(nodes, threads), &mut out).expect("packed");
        out.flush().expect("written");
        println!("packed; run it again to read it with a fresh process");
        return;
    }
    println!("{} MiB", file.metadata().map_or(0, |m| m.len()) >> 20);
    let recording = timed("open", || clrscope_recording::open(file).expect("a recording"));
    timed("decode every tree", || recording.processes[0].threads.iter().map(|t| t.tree.load().len()).sum::<usize>());
    timed("functions", || functions(&recording, &Query::default()).expect("rows").rows.len());
}

fn main() {
    let number = |at, default| std::env::args().nth(at).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (millions, threads): (u32, u32) = (number(1, 30), number(2, 1).max(1));
    match std::env::args().nth(3) {
        Some(file) => from_file(Path::new(&file), millions * 1_000_000, threads),
        None => in_memory(millions * 1_000_000, threads),
    }
}

/// Times every view on a tree in memory.
fn in_memory(nodes: u32, threads: u32) {
    let recording = timed("generate", || recording(nodes, threads));
    timed("copy of every tree", || recording.processes[0].threads.iter().map(|t| t.tree.load().len()).sum::<usize>());
    let all = Query::default();
    let rows = timed("functions", || functions(&recording, &all).expect("rows").rows.len());
    timed("functions per thread", || {
        functions(&recording, &Query { per_thread: true, ..all.clone() }).expect("rows").rows.len()
    });
    let edges = timed("call graph", || call_graph(&recording, &all).expect("a graph").edges.len());
    let options = TreeOptions { min_share: 0.001, max_depth: None };
    let shown = timed("tree above 0.1 %", || tree(&recording, &all, &options).expect("a tree").nodes.len());
    let forest = timed("open the whole tree", || Forest::open(&recording, &all).expect("a forest"));
    let mut merged = 0u64;
    timed("walk the whole tree", || {
        let count = |_: &TreeNode<'_>| -> Result<(), ()> {
            merged += 1;
            Ok(())
        };
        forest.walk(&TreeOptions::default(), count).expect("a walk")
    });
    println!("{rows} rows, {edges} edges, {shown} of {merged} merged nodes shown");
}
