//! Recordings with call trees of any size.

use super::synthetic::Numbers;
use crate::model::{
    CallTree, CallTreeBuilder, CallsInfo, Exit, Function, HookCost, Module, Node, NodeFlags, NodeValues, Process, ROOT,
    Recording, Run, Thread, TreeSource,
};

/// Functions of the program.
const FUNCTIONS: u32 = 20_000;

/// The function that `caller` calls at the call site number `place`. A few functions are called
/// from everywhere.
fn callee(caller: u32, place: u32) -> u32 {
    let mut numbers = Numbers::new(u64::from(caller * 8 + place));
    numbers.next();
    1 + (numbers.below(FUNCTIONS as usize) * numbers.below(1000) / 1000) as u32
}

/// A tree like that of a compiler: deep, mostly leaves, a few functions called from everywhere, and
/// time on one node in two hundred.
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

/// A recording with `nodes` nodes, divided among `threads` threads.
#[must_use]
pub fn recording(nodes: u32, threads: u32) -> Recording {
    let threads = threads.max(1);
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
    let run = Run {
        command: vec!["dotnet".to_owned(), "many.dll".to_owned()],
        duration_ns: 1_000_000_000,
        exit: Some(Exit::Code(0)),
        given: "calls".into(),
        filled: "calls".into(),
        ..Run::default()
    };
    Recording { run, processes: vec![process], ..Recording::default() }
}
