//! `cargo xtask soak sampling`: programs that are hard for signals and stack walks are sampled at
//! the highest rate, from their start and while they run. Each must print and do the same as in a
//! bare run, and nothing may be left behind.

use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use clrscope_recording::model::{LossReason, Recording};
use clrscope_testkit::{
    Expectations, Finished, HOSTILE, Runtime, Service, cli, fixture, left_over, native_library, pause, random_pause,
    run_within, runtimes, scratch, wait_until,
};

use crate::agents::{self, under_agent};
use crate::verdict::{caught, say, verdict};

/// The engines, at the highest rates that there are.
const REQUESTS: [&str; 2] = ["cpu:rate=20000,engine=perf;wall:rate=1000", "cpu:rate=20000,engine=timer;wall:rate=1000"];
/// Instruments that a program is attached for.
const ATTACHED: [&str; 2] = ["cpu:rate=20000", "wall:rate=1000"];
/// Time that a program may take beyond the one it is given.
const PATIENCE: Duration = Duration::from_secs(180);
/// Every so many rounds the launcher is killed while it is attached.
const KILLED_EVERY: u32 = 3;

/// Ways of the fixture `Sampled` that go on for so many milliseconds, and then say that they are
/// done.
const TIMED: [&str; 6] = ["nulls", "exceptions", "threads", "collections", "loads", STORAGE];
/// The way that needs a native library, whose file is one more argument.
const STORAGE: &str = "storage";
/// Ways that do something so many times, repeated until the time is over.
const COUNTED: [(&str, u64); 2] = [("processes", 600), ("signals", 30_000)];

/// Soaks all programs, each for `time`. An error names what went wrong.
pub(crate) fn run(time: Duration) -> Result<(), String> {
    // Built before a program waits to be attached to: the first one had ended by then.
    cli();
    let mut wrong = Vec::new();
    for runtime in runtimes() {
        let timed = TIMED.iter().map(|way| (*way, time.as_millis() as u64));
        for (way, amount) in timed.clone().chain(COUNTED) {
            for request in REQUESTS {
                wrong.extend(say(from_the_start(runtime, way, amount, time, request)));
            }
        }
        for (name, arguments) in HOSTILE {
            for request in REQUESTS {
                wrong.extend(say(over_and_over(runtime, name, arguments, time, request)));
            }
        }
        for (way, amount) in timed {
            wrong.extend(say(while_it_runs(runtime, way, amount, time)));
        }
        wrong.extend(say(a_server(runtime, time)));
    }
    verdict(&wrong)
}

/// The command of a way of the fixture, and what it writes.
fn sampled(runtime: &Runtime, way: &str, amount: u64) -> (Command, String) {
    let mut command = runtime.command(&fixture("Sampled"));
    command.arg(way).arg(amount.to_string());
    if way == STORAGE {
        command.arg(native_library("Sampled/storage.c"));
    }
    let said = if way == "signals" { format!("{amount} signals, 0 left\n") } else { String::new() };
    (command, said + "done\n")
}

/// A program that ended did what it does bare.
fn is_unchanged(finished: &Finished, expected: &str) -> Result<(), String> {
    match (finished.code(), finished.stdout_text(), finished.stderr_text()) {
        (0, stdout, stderr) if stdout == expected && stderr.is_empty() => Ok(()),
        (code, stdout, stderr) => Err(format!("exit code {code}, it wrote {stdout:?} and {stderr:?}")),
    }
}

/// No panic was caught in a recording.
fn no_panic(recording: &Recording) -> Result<(), String> {
    let mut losses = recording.processes.iter().flat_map(|process| &process.losses);
    match losses.find(|loss| loss.reason == LossReason::PanicCaught) {
        Some(loss) => Err(format!("{} panics were caught", loss.count)),
        None => Ok(()),
    }
}

/// Samples in a recording, which must have some, and no panic.
fn samples(recording: &Recording) -> Result<u64, String> {
    no_panic(recording)?;
    let chunks = recording.processes.iter().flat_map(|process| process.arenas("cpu")).flat_map(|arena| &arena.chunks);
    let bytes: usize = chunks.map(|chunk| chunk.bytes.load().len()).sum();
    match bytes / clrscope_recording::layout::sample::BYTES {
        0 => Err("nothing was sampled".to_owned()),
        samples => Ok(samples as u64),
    }
}

/// Runs a program sampled from its start, again and again until it ran for so long.
fn from_the_start(
    runtime: &Runtime,
    way: &str,
    amount: u64,
    time: Duration,
    request: &str,
) -> (String, Result<String, String>) {
    let went = caught(|| {
        let (mut rounds, mut seen, mut ran) = (0, 0, Duration::ZERO);
        while ran < time {
            let place = scratch();
            let out = place.path().join("soaked.clrs.d");
            let (mut command, expected) = sampled(runtime, way, amount);
            under_agent(&mut command, request, &out);
            let finished = run_within(command, time + PATIENCE);
            is_unchanged(&finished, &expected)?;
            seen += samples(&clrscope_recording::open(&out).map_err(|error| error.to_string())?)?;
            rounds += 1;
            ran += finished.elapsed;
        }
        Ok(format!("{seen} samples in {ran:.1?}, {rounds} rounds"))
    });
    (format!("{way} on {} with {request}", runtime.version), went)
}

/// Runs a program that ends soon over and over, for so long.
fn over_and_over(
    runtime: &Runtime,
    name: &str,
    arguments: &[&str],
    time: Duration,
    request: &str,
) -> (String, Result<String, String>) {
    let went = caught(|| {
        let run = |out: Option<&Path>| {
            let mut command = runtime.command(&fixture(name));
            command.args(arguments);
            out.into_iter().for_each(|out| under_agent(&mut command, request, out));
            run_within(command, PATIENCE)
        };
        let said = |finished: &Finished| (finished.status, Expectations::other_lines(&finished.stdout_text()));
        let bare = said(&run(None));
        let began = std::time::Instant::now();
        let mut rounds = 0;
        while rounds == 0 || began.elapsed() < time {
            rounds += 1;
            let place = scratch();
            let out = place.path().join("soaked.clrs.d");
            let with = said(&run(Some(&out)));
            if with != bare {
                return Err(format!("round {rounds}: {with:?}, bare {bare:?}"));
            }
            no_panic(&clrscope_recording::open(&out).map_err(|error| error.to_string())?)?;
        }
        Ok(format!("{rounds} rounds in {:.1?}", began.elapsed()))
    });
    (format!("{name} {arguments:?} on {} with {request}", runtime.version), went)
}

/// Attaches to a program over and over until it ends by itself.
fn while_it_runs(runtime: &Runtime, way: &str, amount: u64, time: Duration) -> (String, Result<String, String>) {
    let went = caught(|| {
        let (command, expected) = sampled(runtime, way, amount);
        let program = Service::start_silent(command);
        let pid = program.id();
        let rounds = attach_until(pid, || !is_running(pid))?;
        is_unchanged(&program.wait(), &expected)?;
        Ok(format!("attached {rounds} times in {time:?}"))
    });
    (format!("{way} on {}, attached over and over", runtime.version), went)
}

/// Attaches to a program that serves over and over, for so long; then it ends in order.
fn a_server(runtime: &Runtime, time: Duration) -> (String, Result<String, String>) {
    let went = caught(|| {
        let program = Service::start(runtime.command(&fixture("Server")));
        let began = std::time::Instant::now();
        let rounds = attach_until(program.id(), || began.elapsed() >= time)?;
        let finished = program.stop("TERM");
        let said = finished.stdout_text();
        let is_right = finished.code() == 0 && said.contains("stopped\n") && !said.contains("WRONG");
        if is_right { Ok(format!("attached {rounds} times in {time:?}")) } else { Err(format!("it wrote {said:?}")) }
    });
    (format!("a server on {}, attached over and over", runtime.version), went)
}

/// Rounds of attaching to a process, until it is enough; every now and then the launcher is killed.
fn attach_until(pid: u32, is_enough: impl Fn() -> bool) -> Result<u32, String> {
    let place = scratch();
    let (mut rounds, mut worked) = (0, 0);
    while !is_enough() {
        rounds += 1;
        let out = place.path().join(format!("{rounds}.clrs"));
        if worked > 0 && rounds % KILLED_EVERY == 0 {
            let mut launcher = attach(pid, "1h", &out)?;
            pause(random_pause(Duration::from_millis(600)));
            launcher.kill().and_then(|()| launcher.wait()).map_err(|error| error.to_string())?;
            wait_until("the agent's leave", || left_over(pid).is_empty());
        } else {
            let launcher = attach(pid, "300ms", &out)?.wait_with_output().map_err(|error| error.to_string())?;
            let left = left_over(pid);
            worked += u32::from(launcher.status.success());
            // A runtime that still starts can't be attached to.
            if worked == 0 && left.is_empty() {
                pause(Duration::from_millis(100));
            } else if is_running(pid) && !(launcher.status.success() && left.is_empty()) {
                let said = String::from_utf8_lossy(&launcher.stderr).into_owned();
                return Err(format!("round {rounds}: {}, left {left:?}: {said}", launcher.status));
            }
        }
        // Recordings of a minute at the highest rate are not needed any more.
        drop(std::fs::remove_file(&out));
        drop(std::fs::remove_dir_all(out.with_extension("clrs.d")));
    }
    if worked > 0 { Ok(rounds) } else { Err(format!("none of {rounds} rounds attached")) }
}

fn attach(pid: u32, duration: &str, out: &Path) -> Result<Child, String> {
    let mut command = agents::attach(pid, &ATTACHED, duration, out);
    command.spawn().map_err(|error| format!("{command:?}: {error}"))
}

/// Whether a process has not ended yet, reaped or not.
fn is_running(pid: u32) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}
