//! Small recordings drawn as text, so that the source of a test shows its trees.
//!
//! ```text
//! thread 1 main
//!   Main 1 10 8
//!     A 3 5
//!     [suspended: GC] 1 2
//! ```
//!
//! A line under a thread is `name calls wall_ns cpu_ns`. Numbers missing at the end are 0. Two
//! spaces of indentation are one level. `outside WALL CPU` is the thread's own time.

use crate::model::{
    CallTree, CallTreeBuilder, CallsInfo, Function, FunctionKind, HookCost, Module, Node, NodeFlags, NodeValues,
    Process, ROOT, Recording, Thread, ThreadRole, TreeSource,
};

/// A recording of one process with id 7, with measured CPU time and a hook cost of zero.
///
/// # Panics
/// When a thread has no number.
#[must_use]
pub fn recording(text: &str) -> Recording {
    recording_with(text, HookCost::default())
}

/// A recording like that of [`recording`], but with this hook cost.
///
/// # Panics
/// As [`recording`].
#[must_use]
pub fn recording_with(text: &str, hook_cost: HookCost) -> Recording {
    let mut process = Process {
        pid: 7,
        command: vec!["dotnet".into(), "/app/Shop.dll".into()],
        calls: Some(CallsInfo { cpu_measured: true, hook_cost, interval_ns: 1_000_000, ..CallsInfo::default() }),
        functions: vec![Function::default()],
        modules: vec![Module::default(), module("Shop"), module("libc.so.6")],
        ..Process::default()
    };
    for block in text.split("thread ").skip(1) {
        let (head, body) = block.split_once('\n').unwrap_or((block, ""));
        let thread = thread(head, body, &mut process.functions);
        process.threads.push(thread);
    }
    Recording { processes: vec![process], ..Recording::default() }
}

fn module(name: &str) -> Module {
    Module { name: name.into(), path: format!("/lib/{name}"), version: "1.0.0.0".into(), ..Module::default() }
}

fn thread(head: &str, body: &str, functions: &mut Vec<Function>) -> Thread {
    let (id, name) = head.split_once(' ').unwrap_or((head, ""));
    let id: u32 = id.trim().parse().expect("a thread id");
    Thread {
        id,
        os_id: 1000 + id,
        name: name.trim().into(),
        role: if id == 1 { ThreadRole::Main } else { ThreadRole::User },
        cpu_ns: Some(5),
        tree: TreeSource::ready(tree(body, functions)),
        ..Thread::default()
    }
}

fn tree(body: &str, functions: &mut Vec<Function>) -> CallTree {
    let lines: Vec<(usize, &str, [u64; 3])> = body.lines().filter(|l| !l.trim().is_empty()).map(line).collect();
    let base = lines.iter().map(|l| l.0).min().unwrap_or(0);
    let outside = lines.iter().find(|l| l.1 == "outside").map_or([0; 3], |l| l.2);
    let mut builder = CallTreeBuilder::new(NodeValues { metric: outside[0], cpu_ns: outside[1] });
    let mut path = vec![ROOT];
    for (indent, name, [calls, wall_ns, cpu_ns]) in lines.into_iter().filter(|l| l.1 != "outside") {
        let depth = (indent - base) / 2;
        path.truncate(depth + 1);
        let (name, by_tail_call) = name.strip_prefix("tail ").map_or((name, false), |name| (name, true));
        let node = builder.push(Node {
            parent: *path.last().expect("a parent"),
            function: index(name, functions),
            calls,
            values: NodeValues { metric: wall_ns, cpu_ns },
            flags: NodeFlags { by_tail_call },
        });
        path.push(node);
    }
    builder.finish()
}

fn line(line: &str) -> (usize, &str, [u64; 3]) {
    let indent = line.len() - line.trim_start().len();
    let mut name = line.trim();
    let mut numbers = Vec::new();
    while let Some((rest, last)) = name.rsplit_once(' ') {
        let Ok(number) = last.parse() else { break };
        numbers.insert(0, number);
        name = rest.trim();
    }
    numbers.resize(3, 0);
    (indent, name, [numbers[0], numbers[1], numbers[2]])
}

/// The index of the function called `name`, which is added when new. `libc!x` names an unmanaged
/// function.
fn index(name: &str, functions: &mut Vec<Function>) -> u32 {
    if let Some(at) = functions.iter().position(|f| f.name == name) {
        return at as u32;
    }
    let kind = match name {
        n if n.starts_with("[suspended") => FunctionKind::Suspended,
        n if n.starts_with(['[', '(']) => FunctionKind::Runtime,
        n if n.starts_with("libc!") => FunctionKind::Native,
        _ => FunctionKind::Managed,
    };
    let module = match kind {
        FunctionKind::Managed => 1,
        FunctionKind::Native => 2,
        _ => 0,
    };
    let token = if kind == FunctionKind::Managed { 0x0600_0000 + functions.len() as u32 } else { 0 };
    functions.push(Function {
        name: name.into(),
        signature: format!("{name}()"),
        module,
        token,
        kind,
        ..Function::default()
    });
    functions.len() as u32 - 1
}
