//! The file with the current state of the watch: `watch.json` in the folder of the watch.

use std::fs;
use std::io;

use serde_json::{Value, json};

use super::cost::memory_of;
use super::host::Host;
use super::program::Program;

/// Name of the file.
const FILE: &str = "watch.json";
/// Its name while it is written.
const DRAFT: &str = ".watch.json.new";

/// Writes the file. Readers see either the old content or the new one.
///
/// # Errors
/// Errors of the file system.
pub(super) fn write(host: &Host, runs: bool) -> io::Result<()> {
    let draft = host.plan.folder.join(DRAFT);
    fs::write(&draft, format!("{:#}\n", document(host, runs)))?;
    fs::rename(draft, host.plan.folder.join(FILE))
}

fn document(host: &Host, runs: bool) -> Value {
    let recorded: Vec<Value> =
        host.programs.values().filter(|program| program.recorder_pid().is_some()).map(recorded).collect();
    let left: Vec<Value> = host.programs.values().filter_map(left).collect();
    let counts = host.counts();
    json!({
        "schema": "clrscope.watch/1",
        "clrscope": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "runs": runs,
        "time": host.clock.now().to_string(),
        "recorded": recorded,
        "left_alone": left,
        "ended": host.tally.ended,
        "too_short": host.tally.too_short,
        "recordings": counts.recordings,
        "bytes": counts.bytes,
        "deleted": host.tally.deleted,
        "cost": cost(host),
    })
}

fn recorded(program: &Program) -> Value {
    json!({
        "pid": program.process.pid(),
        "program": program.name,
        "recorder": program.recorder_pid(),
        "rate_hz": program.rate,
        "attached": program.counts.attached,
        "recordings": program.counts.recordings,
        "bytes": program.counts.bytes,
        "agent_cpu_ns": program.cost.agent_ns(),
        "recorder_cpu_ns": program.cost.writer_ns(),
        "cpu_percent": program.cost.share.map(|share| share * 100.0),
    })
}

fn left(program: &Program) -> Option<Value> {
    let why = program.why_left()?;
    Some(json!({ "pid": program.process.pid(), "program": program.name, "why": why }))
}

/// What all of it costs.
fn cost(host: &Host) -> Value {
    let (own_ns, share) = host.own.so_far();
    let sum = |number: fn(&Program) -> u64| host.programs.values().map(number).sum::<u64>();
    let recorders = host.programs.values().filter_map(Program::recorder_pid);
    json!({
        "looks": host.looks(),
        "look_every_ns": host.own.pause.as_nanos() as u64,
        "watch_cpu_ns": own_ns,
        "watch_cpu_percent": share * 100.0,
        "agents_cpu_ns": host.tally.agent_ns + sum(|program| program.cost.agent_ns()),
        "recorders_cpu_ns": host.tally.writer_ns + sum(|program| program.cost.writer_ns()),
        "memory_bytes": memory_of(std::process::id()) + recorders.map(memory_of).sum::<u64>(),
    })
}
