//! `clrscope ps`: the .NET processes of this machine.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use clr_diagnostics::{Error, Process, ProcessInfo, processes};
use serde_json::{Value, json};

use crate::agent_file::LIBRARY;
use crate::aligned::{Side, aligned};
use crate::attach::dormant;
use crate::errors::{Failure, one_line};
use crate::terminal::width;

/// Longest time for a runtime to answer with its process information.
const PATIENCE: Duration = Duration::from_secs(3);

/// Shortest time over which CPU time is measured.
const MEASURED: Duration = Duration::from_millis(200);

/// Options of `ps`.
#[derive(Debug)]
pub(crate) struct PsOptions {
    /// Whether to print one JSON document instead of text.
    pub(crate) json: bool,
}

/// A process, with the information that its runtime gave.
struct Row {
    process: Process,
    asked: Result<ProcessInfo, Error>,
    /// Whether our agent's library is mapped; `None` if we lack the permission to look.
    has_agent: Option<bool>,
    /// Whether the process has a dormant agent, which stayed because it had changed methods. The
    /// next attach wakes it.
    is_dormant: bool,
    /// Start of the measurement, and the CPU time at that moment.
    before: (Instant, Duration),
    /// Use of one processor, in percent.
    cpu_percent: f64,
}

/// Prints the processes.
///
/// # Errors
/// When the result can't be written.
pub(crate) fn perform(options: &PsOptions) -> Result<(), Failure> {
    let mut rows: Vec<Row> = processes().into_iter().map(Row::for_process).collect();
    if let Some(first) = rows.first() {
        thread::park_timeout(MEASURED.saturating_sub(first.before.0.elapsed()));
    }
    rows.iter_mut().for_each(Row::measure);
    super::print(&if options.json { format!("{:#}\n", as_json(&rows)) } else { as_text(&rows, width()) })
}

impl Row {
    fn for_process(process: Process) -> Self {
        let before = (Instant::now(), process.cpu_time());
        let asked = match process.is_stopped() {
            true => process.port().and(Err(Error::TimedOut { command: "process info", after: Duration::ZERO })),
            false => process.port().and_then(|port| port.with_limit(PATIENCE).info()),
        };
        let is_agent = |files: Vec<std::path::PathBuf>| files.iter().any(|file| file.ends_with(LIBRARY));
        let has_agent = process.mapped_files().map(is_agent).ok();
        let is_dormant = has_agent == Some(true) && dormant::is_dormant(&process);
        Self { process, asked, has_agent, is_dormant, before, cpu_percent: 0.0 }
    }

    /// Measures the CPU time since the row was created.
    fn measure(&mut self) {
        let (began, before) = self.before;
        let used = self.process.cpu_time().saturating_sub(before);
        self.cpu_percent = used.as_secs_f64() / began.elapsed().as_secs_f64().max(1e-3) * 100.0;
    }

    fn runtime(&self) -> Option<&str> {
        self.asked.as_ref().ok().map(ProcessInfo::short_version).filter(|version| !version.is_empty())
    }

    fn entry_assembly(&self) -> Option<&str> {
        self.asked.as_ref().ok().map(|info| info.entry_assembly.as_str()).filter(|name| !name.is_empty())
    }

    /// Reason why the process can't be attached to; `None` if none is known.
    fn obstacle(&self) -> Option<String> {
        if self.process.is_stopped() {
            return Some("stopped".to_owned());
        }
        Some(match self.asked.as_ref().err()? {
            Error::NotPermitted { uid, .. } => format!("of another user, {}", user(*uid)),
            Error::DiagnosticsOff { .. } => "diagnostics are off (DOTNET_EnableDiagnostics=0)".to_owned(),
            Error::TimedOut { .. } => "does not answer".to_owned(),
            other => other.to_string(),
        })
    }

    fn agent(&self) -> &'static str {
        match self.has_agent {
            Some(true) if self.is_dormant => "sleeps",
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        }
    }
}

/// Name of a user by `/etc/passwd`.
fn user(uid: u32) -> String {
    let list = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let is_it = |line: &&str| line.split(':').nth(2).and_then(|id| id.parse().ok()) == Some(uid);
    let name = list.lines().find(is_it).and_then(|line| line.split(':').next()).map(str::to_owned);
    name.unwrap_or_else(|| uid.to_string())
}

fn as_json(rows: &[Row]) -> Value {
    let row = |row: &Row| {
        json!({
            "pid": row.process.pid(),
            "inner_pid": row.process.inner_pid(),
            "user": user(row.process.uid()),
            "runtime": row.runtime(),
            "cpu_percent": row.cpu_percent,
            "rss_bytes": row.process.resident_bytes(),
            "uptime_ns": row.process.age().as_nanos() as u64,
            "entry_assembly": row.entry_assembly(),
            "command": row.process.command_line(),
            "agent": row.has_agent,
            "agent_sleeps": row.has_agent.map(|_| row.is_dormant),
            "obstacle": row.obstacle(),
        })
    };
    json!({ "schema": "clrscope.ps/1", "rows": rows.iter().map(row).collect::<Vec<_>>() })
}

fn as_text(rows: &[Row], width: usize) -> String {
    if rows.is_empty() {
        return "no .NET process that this user can see\n".to_owned();
    }
    let mut lines =
        vec![["pid", "user", "cpu", "memory", "runtime", "uptime", "agent", "program", "command"].map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        let command = row.process.command_line().join(" ");
        let note = row.obstacle().map_or_else(String::new, |obstacle| format!("({obstacle}) "));
        [
            row.process.pid().to_string(),
            user(row.process.uid()),
            format!("{:.0} %", row.cpu_percent),
            row.process.resident_bytes().map_or_else(|| "?".to_owned(), |bytes| format!("{} MB", bytes / 1_000_000)),
            row.runtime().unwrap_or("?").to_owned(),
            uptime(row.process.age()),
            row.agent().to_owned(),
            one_line(row.entry_assembly().unwrap_or("?")),
            one_line(format!("{note}{command}")),
        ]
    }));
    let (left, right) = (Side::Left, Side::Right);
    let sides = [right, left, right, right, left, right, left, left, left];
    aligned(&lines, sides, width)
}

/// Formats an age with at most two units: users compare ages and don't add them up.
fn uptime(age: Duration) -> String {
    let seconds = age.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_two_units_at_most() {
        let of = |seconds| uptime(Duration::from_secs(seconds));
        assert_eq!([of(7), of(61), of(3_700), of(90_000)], ["7 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]);
    }

    #[test]
    fn users_have_their_name_where_it_is_known() {
        assert_eq!((user(0).as_str(), user(4_000_000_000).as_str()), ("root", "4000000000"));
    }
}
