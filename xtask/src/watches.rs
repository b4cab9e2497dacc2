//! `cargo xtask soak watch`: two programs run all the time and 200 short ones come and go, while a
//! watch records them. The recordings of the long programs together must have what these programs
//! counted themselves. No program may end differently than in a bare run, and neither disk nor
//! memory may grow.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clrscope_testkit::{Runtime, cli, fixture, pause, runtimes, scratch};
use serde_json::Value;

use crate::periods::{bytes_in, children, is_little_growth, memory, rows_in};
use crate::verdict::{in_words, say, verdict};

/// Short programs in the whole time.
const SHORT: u32 = 200;
/// Longest time after the programs' end.
const PATIENCE: Duration = Duration::from_secs(180);

/// A program and the file that it prints into.
struct Program {
    child: Child,
    printed: PathBuf,
}

/// Sizes at a moment, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    /// Directories of recordings that are written.
    directories: u64,
    watch: u64,
    /// The processes that record the long programs.
    recorders: u64,
}

/// Runs the watch for `time` and checks the results.
pub(crate) fn run(time: Duration) -> Result<(), String> {
    let place = scratch();
    let folder = place.path();
    let runtime = runtimes().last().ok_or("there is no runtime")?;
    for file in ["Recent.dll", "Recent.runtimeconfig.json"] {
        fs::copy(fixture("Recent").with_file_name(file), folder.join(file)).map_err(in_words)?;
    }
    let mut watch = start_watch(folder, time)?;
    let long = ["one", "two"].map(|name| start(folder, runtime, time.as_secs_f64(), name));
    let mut long = long.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut wrong = Vec::new();
    let mut check = |what: &str, outcome: Result<String, String>| wrong.extend(say((what.to_owned(), outcome)));
    let (steady, last) = come_and_go(folder, runtime, time, watch.id(), &mut check)?;
    let pids: Vec<u32> = long.iter().map(|program| program.child.id()).collect();
    for program in &mut long {
        check("a long program", end(program));
    }
    let ended = end_watch(&mut watch);
    check("the watch", ended);
    check("sizes", grown(steady, last));
    for (pid, program) in pids.iter().zip(&long) {
        check("throws of a long program", counts(folder, *pid, &program.printed));
    }
    let status = fs::read_to_string(folder.join("out/watch.json")).map_err(in_words)?;
    let status: Value = serde_json::from_str(&status).map_err(|error| error.to_string())?;
    let number = |name: &str| status[name].as_u64().unwrap_or(0);
    let (ended, too_short) = (number("ended"), number("too_short"));
    check("cost", Ok(format!("{ended} programs recorded, {too_short} too short, cost {}", status["cost"])));
    verdict(&wrong)
}

fn start_watch(folder: &Path, time: Duration) -> Result<Child, String> {
    let every = format!("{}s", (time.as_secs() / 60).clamp(1, 60));
    let mut command = Command::new(cli());
    command.args(["watch", "--quiet", "--every", &every, "--keep", "1000000", "--lock", "lock", "-o", "out", "--only"]);
    command.arg(folder.join("*")).current_dir(folder).stdin(Stdio::null());
    command.spawn().map_err(in_words)
}

fn start(folder: &Path, runtime: &Runtime, seconds: f64, name: &str) -> Result<Program, String> {
    let printed = folder.join(name);
    let mut command = runtime.command(&folder.join("Recent.dll"));
    command.arg(seconds.to_string()).stdin(Stdio::null());
    command.stdout(fs::File::create(&printed).map_err(in_words)?).stderr(Stdio::inherit());
    Ok(Program { child: command.spawn().map_err(in_words)?, printed })
}

/// Waits for the end of a program. What it printed must be whole.
fn end(program: &mut Program) -> Result<String, String> {
    let status = program.child.wait().map_err(in_words)?;
    let numbers = thrown(&program.printed)?;
    let is_whole = status.success() && numbers.iter().copied().eq(1..=numbers.len() as u64);
    let text = format!("{status}, {} throws", numbers.len());
    if is_whole { Ok(text) } else { Err(text) }
}

/// Numbers of the throws that a program printed, in order.
fn thrown(printed: &Path) -> Result<Vec<u64>, String> {
    let text = fs::read_to_string(printed).map_err(in_words)?;
    let of_line = |line: &str| line.strip_prefix("THROWN ")?.split(' ').next()?.parse().ok();
    let mut numbers: Vec<u64> = text.lines().filter_map(of_line).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Starts short programs for so long. Returns the sizes at a quarter of the time and at the end.
fn come_and_go(
    folder: &Path,
    runtime: &Runtime,
    time: Duration,
    watch: u32,
    check: &mut impl FnMut(&str, Result<String, String>),
) -> Result<(Sizes, Sizes), String> {
    let began = Instant::now();
    let (mut steady, mut last) = (None, Sizes::default());
    for number in 0..SHORT {
        let due = time * number / SHORT;
        while began.elapsed() < due {
            pause(Duration::from_millis(100));
        }
        let seconds = [0.1, 0.7, 1.5, 3.0][number as usize % 4];
        let mut program = start(folder, runtime, seconds, "short")?;
        let outcome = end(&mut program);
        if outcome.is_err() || number % 20 == 0 {
            check(&format!("short program {number}"), outcome);
        }
        last = sizes(folder, watch);
        if steady.is_none() && began.elapsed() > time / 4 {
            steady = Some(last);
        }
    }
    Ok((steady.unwrap_or(last), last))
}

fn sizes(folder: &Path, watch: u32) -> Sizes {
    let programs = fs::read_dir(folder.join("out")).into_iter().flatten().flatten().map(|entry| entry.path());
    let inside =
        programs.filter(|path| path.is_dir()).flat_map(|path| fs::read_dir(path).into_iter().flatten().flatten());
    let directories = inside.map(|entry| entry.path()).filter(|path| path.is_dir());
    // The two oldest are those of the long programs.
    let recorders = children(watch).take(2).filter_map(memory);
    Sizes {
        directories: directories.map(|path| bytes_in(&path)).sum(),
        watch: memory(watch).unwrap_or(0),
        recorders: recorders.sum(),
    }
}

fn grown(steady: Sizes, last: Sizes) -> Result<String, String> {
    let text = format!("{steady:?}, at the end {last:?}");
    let pairs =
        [(steady.directories, last.directories), (steady.watch, last.watch), (steady.recorders, last.recorders)];
    if pairs.into_iter().all(|(then, now)| is_little_growth(then, now)) { Ok(text) } else { Err(text) }
}

fn end_watch(watch: &mut Child) -> Result<String, String> {
    let told = Command::new("kill").args(["-TERM", &watch.id().to_string()]).status().map_err(in_words)?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(status) = watch.try_wait().map_err(in_words)? {
            let text = status.to_string();
            return if status.success() && told.success() { Ok(text) } else { Err(text) };
        }
        pause(Duration::from_millis(100));
    }
    Err("it does not end".to_owned())
}

/// Compares the throws in all recordings of a process with those that it printed: from one on each
/// must be there once.
fn counts(folder: &Path, pid: u32, printed: &Path) -> Result<String, String> {
    let last = thrown(printed)?.last().copied().ok_or("nothing was thrown")?;
    let mut found: BTreeMap<u64, u32> = BTreeMap::new();
    let mut files = 0;
    for entry in fs::read_dir(folder.join("out/Recent")).map_err(in_words)?.flatten() {
        let rows = rows_in(&entry.path(), &["--view", "exceptions", "--each", "--pid", &pid.to_string()]);
        // Recordings of other processes have none with this number.
        let Ok(rows) = rows else { continue };
        files += 1;
        for row in rows {
            let number = row["message"].as_str().and_then(|text| text.split(' ').next()?.parse().ok());
            *found.entry(number.ok_or("a message has no number")?).or_default() += 1;
        }
    }
    let first = found.keys().next().copied().unwrap_or(u64::MAX);
    let text = format!("{} of {last} in {files} recordings, from {first} on", found.len());
    let is_right = found.values().all(|times| *times == 1) && found.keys().copied().eq(first..=last);
    if is_right { Ok(text) } else { Err(text) }
}
