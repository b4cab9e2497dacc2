//! `cargo xtask soak periods`: records a program in periods of a second, for the requested time.
//! The recordings together must have what the program counted itself, and neither the directory nor
//! the two processes may grow.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clrscope_testkit::{cli, fixture, pause, private_kilobytes, runtimes, scratch};
use serde_json::Value;

use crate::verdict::{say, verdict};

/// Time until sizes are compared with those at the end.
const STEADY: Duration = Duration::from_secs(60);
/// Greatest growth of the directory and of memory after the steady time: a part, and bytes.
const GROWTH: (f64, u64) = (1.15, 16 << 20);
/// Longest time after the program's end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Bytes at a moment.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    directory: u64,
    launcher: u64,
    program: u64,
}

/// Records for `time` and checks the result.
pub(crate) fn run(time: Duration) -> Result<(), String> {
    let place = scratch();
    let (out, printed) = (place.path().join("out"), place.path().join("printed"));
    let runtime = runtimes().last().ok_or("there is no runtime")?;
    let mut command = Command::new(cli());
    command.args(["run", "--every", "1s", "--keep", "1000000", "-i", "calls", "-i", "exceptions", "-i", "cpu", "-o"]);
    command.arg(&out).arg("--").args(runtime.words(&fixture("Recent"))).args([&time.as_secs().to_string(), "prints"]);
    runtime.prepare(&mut command);
    let file = fs::File::create(&printed).map_err(|error| error.to_string())?;
    let mut launcher = command.stdout(file).stderr(Stdio::inherit()).spawn().map_err(|error| error.to_string())?;
    let began = Instant::now();
    let (mut steady, mut last) = (None, None);
    let ended = loop {
        if let Some(status) = launcher.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        if began.elapsed() > time + PATIENCE {
            return Err("the program does not end".to_owned());
        }
        if let Some(now) = sizes(&out, launcher.id()) {
            last = Some(now);
            if steady.is_none() && began.elapsed() > STEADY.min(time / 2) {
                steady = last;
            }
        }
        pause(Duration::from_millis(500));
    };
    let mut wrong = Vec::new();
    let mut check = |what: &str, outcome: Result<String, String>| wrong.extend(say((what.to_owned(), outcome)));
    check("exit code", if ended.success() { Ok("0".to_owned()) } else { Err(ended.to_string()) });
    check("sizes", grown(steady, last));
    check("counts", counts(&out, &printed));
    verdict(&wrong)
}

fn grown(steady: Option<Sizes>, last: Option<Sizes>) -> Result<String, String> {
    let (Some(steady), Some(last)) = (steady, last) else { return Err("sizes were not seen".to_owned()) };
    let text = format!("{steady:?}, at the end {last:?}");
    let pairs = [(steady.directory, last.directory), (steady.launcher, last.launcher), (steady.program, last.program)];
    if pairs.into_iter().all(|(then, now)| is_little_growth(then, now)) { Ok(text) } else { Err(text) }
}

/// Whether `now` is at most a little larger than `then`, in bytes.
pub(crate) fn is_little_growth(then: u64, now: u64) -> bool {
    now as f64 <= then as f64 * GROWTH.0 + GROWTH.1 as f64
}

/// Sizes of the directory that is written, and of the memory of launcher and program.
fn sizes(out: &Path, launcher: u32) -> Option<Sizes> {
    let directory = fs::read_dir(out).ok()?.flatten().map(|entry| entry.path()).find(|path| path.is_dir())?;
    let program = children(launcher).next()?;
    Some(Sizes { directory: bytes_in(&directory), launcher: memory(launcher)?, program: memory(program)? })
}

/// Child processes of a process's first thread that have not ended, oldest first.
pub(crate) fn children(pid: u32) -> impl Iterator<Item = u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let pids: Vec<u32> = children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    pids.into_iter()
}

/// Disk space in bytes of the files in a folder.
pub(crate) fn bytes_in(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(about) if about.is_dir() => bytes_in(&entry.path()),
        Ok(about) => about.blocks() * 512,
        Err(_) => 0,
    });
    bytes.sum()
}

/// Private memory of a process in bytes; `None` if the process has ended.
pub(crate) fn memory(pid: u32) -> Option<u64> {
    Some(private_kilobytes(pid) * 1024).filter(|&bytes| bytes > 0)
}

/// Compares throws and calls in all recordings with those that the program printed.
fn counts(out: &Path, printed: &Path) -> Result<String, String> {
    let text = fs::read_to_string(printed).map_err(|error| error.to_string())?;
    let thrown = text.lines().filter(|line| line.starts_with("THROWN ")).count() as u64;
    let entries = fs::read_dir(out).map_err(|error| error.to_string())?.flatten();
    let files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let (mut throws, mut calls) = (0, 0);
    for file in &files {
        throws += sum_in(file, "exceptions", |row| row["count"].as_u64())?;
        calls +=
            sum_in(file, "functions", |row| row["calls"].as_u64().filter(|_| row["name"] == "Recent.Program::Throw"))?;
    }
    let text = format!("{} recordings, {throws} throws and {calls} calls of {thrown}", files.len());
    if throws == thrown && calls == thrown { Ok(text) } else { Err(text) }
}

fn sum_in(file: &Path, view: &str, number: impl Fn(&Value) -> Option<u64>) -> Result<u64, String> {
    Ok(rows_in(file, &["--view", view])?.iter().filter_map(number).sum())
}

/// Rows of a report about a recording.
pub(crate) fn rows_in(file: &Path, options: &[&str]) -> Result<Vec<Value>, String> {
    let mut command = Command::new(cli());
    command.arg("report").arg(file).args(options).args(["--format", "json", "--limit", "1000000"]);
    let output = command.output().map_err(|error| error.to_string())?;
    let mut report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("{}: {}", file.display(), String::from_utf8_lossy(&output.stderr)))?;
    match report["rows"].take() {
        Value::Array(rows) => Ok(rows),
        _ => Err(format!("{}: no rows", file.display())),
    }
}
