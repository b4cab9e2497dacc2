//! Threads of a process that does not answer, from the operating system's data.

use std::fs;

use clr_diagnostics::Process;
use serde_json::{Value, json};

use super::StacksOptions;
use crate::aligned::{Side, aligned};
use crate::errors::one_line;

/// A thread.
struct SystemThread {
    id: u32,
    name: String,
    state: &'static str,
    /// Kernel function that the thread waits in, where the system tells it.
    kernel_wait: Option<String>,
}

/// Prints the system's data about the threads, where accessible; nothing if there is no such
/// process.
pub(super) fn show(options: &StacksOptions) {
    let threads = threads(options.pid);
    if threads.is_empty() || Process::open(options.pid).is_err() {
        return;
    }
    let text = if options.json { format!("{:#}\n", as_json(&threads)) } else { as_text(&threads) };
    // An error here must not hide the original failure.
    let _ = crate::terminal::print(&text);
}

fn threads(pid: u32) -> Vec<SystemThread> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let thread = |entry: fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let read = |file: &str| fs::read_to_string(entry.path().join(file)).ok();
        let stat = read("stat")?;
        let state = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
        let kernel_wait = read("wchan").filter(|name| !name.is_empty() && name != "0");
        let name = one_line(read("comm").unwrap_or_default().trim_end());
        Some(SystemThread { id, name, state: state_in_words(state), kernel_wait })
    };
    let mut all: Vec<SystemThread> = entries.filter_map(thread).collect();
    all.sort_by_key(|thread| thread.id);
    all
}

/// Thread states of `proc_pid_stat(5)`, in words.
fn state_in_words(state: char) -> &'static str {
    match state {
        'R' => "running",
        'S' => "waiting",
        'D' => "io",
        'T' => "stopped",
        't' => "traced",
        'Z' | 'X' => "ended",
        'I' => "idle",
        _ => "unknown",
    }
}

fn as_text(threads: &[SystemThread]) -> String {
    let mut lines = vec![["thread", "name", "state", "kernel wait"].map(str::to_owned)];
    lines.extend(threads.iter().map(|thread| {
        let wait = thread.kernel_wait.clone().unwrap_or_default();
        [thread.id.to_string(), thread.name.clone(), thread.state.to_owned(), wait]
    }));
    aligned(&lines, [Side::Right, Side::Left, Side::Left, Side::Left], usize::MAX)
}

fn as_json(threads: &[SystemThread]) -> Value {
    let row = |thread: &SystemThread| {
        json!({
            "id": Value::Null,
            "os_id": thread.id,
            "name": thread.name,
            "role": Value::Null,
            "state": thread.state,
            "waits_for": thread.kernel_wait,
            "frames": [],
            "blocks_on": Value::Null,
        })
    };
    json!({ "schema": "clrscope.stacks/1", "threads": threads.iter().map(row).collect::<Vec<_>>() })
}
