//! `cargo xtask soak attaches`: attaches to a program a thousand times. The program must keep the
//! memory size that it had after the first twenty attaches.

use std::path::Path;

use clrscope_testkit::{Runtime, Service, at_a_time, cli, fixture, left_over, runtimes, scratch, unmanaged_kilobytes};

use crate::agents;
use crate::growth::Growth;
use crate::verdict::{say, verdict};

/// Rounds until everything that is made once is made.
const FIRST: u32 = 20;
/// Growth that is allowed, in kilobytes a round.
const ALLOWED: f64 = 0.5;
/// And with a probe: the runtime keeps each version of a method, as `docs/internals/attach.md`
/// says.
const ALLOWED_WITH_PROBE: f64 = 8.0;
/// The agent's thread that stays after probes, by its name.
const SLEEPS: &str = "clrscope-sleeps";
/// The method of the program that gets a probe, where probes are asked for.
const PROBED: &str = "Collections.Program::Zero";
/// Parts of the rounds whose least memory is said.
const FLOORS: usize = 10;

/// Attaches to a program on each runtime with these instruments, `rounds` times after the first
/// ones. The runtimes are tested at the same time, because a round waits more than it works.
pub(crate) fn run(instruments: &[&str], rounds: u32) -> Result<(), String> {
    cli();
    let wrong = at_a_time(runtimes().len(), runtimes(), |runtime| {
        let what = format!("{instruments:?} on {}", runtime.version);
        say((what, over_and_over(runtime, instruments, rounds)))
    });
    verdict(&wrong.into_iter().flatten().collect::<Vec<_>>())
}

fn over_and_over(runtime: &Runtime, instruments: &[&str], rounds: u32) -> Result<String, String> {
    let mut command = runtime.command(&fixture("Collections"));
    // What was freed is overwritten, so that a late use of it fails. Collections give back
    // what threads have taken of the heap; one heap of the C library and no thread that collects in
    // the background leave less to chance.
    command.arg("serve").envs([("MALLOC_PERTURB_", "165"), ("MALLOC_ARENA_MAX", "1"), ("DOTNET_gcConcurrent", "0")]);
    let program = Service::start(command);
    let (pid, place) = (program.id(), scratch());
    let out = place.path().join("round.clrs");
    (0..FIRST).try_for_each(|_| attach(pid, instruments, &out))?;
    let memory: Result<Vec<u64>, String> =
        (0..rounds).map(|_| attach(pid, instruments, &out).map(|()| unmanaged_kilobytes(pid))).collect();
    let has_probe = has_probe(instruments);
    let mut left = left_over(pid);
    left.retain(|left| !has_probe || left.trim() != SLEEPS);
    let finished = program.stop("TERM");
    let memory = memory?;
    let growth = Growth::from_rounds(&memory).ok_or("too few rounds")?;
    let floors: Vec<_> = memory.chunks(memory.len().div_ceil(FLOORS)).filter_map(|part| part.iter().min()).collect();
    let said = format!("{growth}, at least {floors:?} kB in the tenths of {rounds} rounds after the first {FIRST}");
    let is_right = finished.code() == 0 && left.is_empty();
    let allowed = if has_probe { ALLOWED_WITH_PROBE } else { ALLOWED };
    if growth.is_within(allowed) && is_right {
        Ok(said)
    } else {
        Err(format!("{said}; {allowed} kB a round are allowed; exit code {}, left {left:?}", finished.code()))
    }
}

fn has_probe(instruments: &[&str]) -> bool {
    instruments.iter().any(|instrument| instrument.split(':').next() == Some("probes"))
}

/// One round.
fn attach(pid: u32, instruments: &[&str], out: &Path) -> Result<(), String> {
    let mut command = agents::attach(pid, instruments, "10ms", out);
    if has_probe(instruments) {
        command.args(["--probe", PROBED]);
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
