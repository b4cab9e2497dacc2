//! Programs that already run: how soon `attach` has a sample, and how fast the programs are
//! afterwards.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clrscope_recording::model::{Recording, Sample};
use clrscope_testkit::{cli, let_children_hear};

use super::absolute::Line;
use super::programs::{Bench, Program, Under};
use crate::measured::{Spread, run};

/// Time that a program runs before it is attached to: its code is compiled again for good by then.
const WARM: Duration = Duration::from_secs(8);
/// Time that the speed is looked at, before and after.
const LOOK: Duration = Duration::from_secs(4);
/// Time that a program is attached to.
const ATTACHED: &str = "3s";
/// The speed after detach over that before may differ by so much, either way.
const SAME: f64 = 0.02;

/// Milliseconds from the command to the first sample in the recording.
pub(super) fn first_sample(bench: &Bench, runs: usize) -> Result<Line, String> {
    let paced = Paced::start(bench)?;
    paced.paces(WARM);
    let mut times = Vec::new();
    for _ in 0..runs {
        let out = bench.folder().join("first.clrs");
        // The tool may have to be built for it.
        let mut command = attach(paced.child.id(), "1s", &out);
        let began = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|error| error.to_string())?;
        run(&mut command)?;
        let recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
        let first = first_sample_unix_ns(&recording).ok_or("nothing was sampled")?;
        times.push((first as f64 - began.as_nanos() as f64) / 1e6);
    }
    let spread = Spread::from_values(&times);
    let figure = format!("{:.0} ms ({:.0} to {:.0})", spread.median, spread.low, spread.high);
    Ok(("attach", "from `attach` to the first sample".into(), figure, ""))
}

/// Time of the program's work after the agent has left, divided by the time before it came.
pub(super) fn speed_after(bench: &Bench, runs: usize) -> Result<Line, String> {
    after(bench, runs, ("attach", "libraries, time after detach / before"), &[])
}

/// Time of the program's work after probes are gone, divided by the time before they came: with
/// probes in methods of the program, and in a method of the framework that the program calls all
/// the time.
pub(super) fn speed_after_probes(bench: &Bench, runs: usize) -> Result<Line, String> {
    let probes = ["--probe", "[Library]*", "--probe", "[System.Private.CoreLib]System.String::Concat"];
    after(bench, runs, ("P13", "libraries, time after all of its methods had probes / before"), &probes)
}

/// Time of the work after an attach with these options over that before.
fn after(bench: &Bench, runs: usize, (id, what): (&'static str, &str), options: &[&str]) -> Result<Line, String> {
    let mut ratios = Vec::new();
    for _ in 0..runs {
        let paced = Paced::start(bench)?;
        paced.paces(WARM);
        let before = Spread::from_values(&paced.paces(LOOK)).median;
        run(attach(paced.child.id(), ATTACHED, &bench.folder().join("after.clrs")).args(options))?;
        paced.paces(Duration::ZERO);
        ratios.push(Spread::from_values(&paced.paces(LOOK)).median / before.max(1.0));
    }
    let spread = Spread::from_values(&ratios);
    let figure = format!("{:.3} ({:.3} to {:.3})", spread.median, spread.low, spread.high);
    let verdict = if (spread.median - 1.0).abs() <= SAME { "met" } else { "**missed**" };
    Ok((id, what.to_owned(), figure, verdict))
}

fn attach(pid: u32, duration: &str, out: &Path) -> Command {
    let mut command = Command::new(cli());
    command.args(["attach", &pid.to_string(), "--quiet", "--force", "--trust-writable", "--duration", duration, "-o"]);
    command.arg(out);
    command
}

/// Unix time of the first sample.
fn first_sample_unix_ns(recording: &Recording) -> Option<u64> {
    let first = |process: &clrscope_recording::model::Process| {
        let chunks = process.arenas("cpu").flat_map(|arena| &arena.chunks);
        let first = |chunk: &clrscope_recording::model::EventChunk| {
            Sample::all(&chunk.bytes.load()).map(|sample| sample.time_ns).min()
        };
        Some(process.started_ns + chunks.filter_map(first).min()?)
    };
    let since_start = recording.processes.iter().filter_map(first).min()?;
    Some(recording.run.started_unix_ns + since_start)
}

/// A program that works for ever and says how long each piece of its work takes.
struct Paced {
    child: Child,
    paces: Receiver<f64>,
}

impl Paced {
    fn start(bench: &Bench) -> Result<Self, String> {
        let_children_hear();
        let mut command = bench.command(Program::Pace, Under::Bare)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let (sender, paces) = channel();
        thread::spawn(move || {
            let numbers = output.lines().map_while(Result::ok).filter_map(|line| line.parse().ok());
            // A receiver that has seen enough listens no more.
            numbers.take_while(|&pace| sender.send(pace).is_ok()).for_each(drop);
        });
        Ok(Self { child, paces })
    }

    /// Paces that the program says in so much time from now on; what it has said before is
    /// forgotten.
    fn paces(&self, time: Duration) -> Vec<f64> {
        self.paces.try_iter().for_each(drop);
        let end = Instant::now() + time;
        std::iter::from_fn(|| self.paces.recv_timeout(end.saturating_duration_since(Instant::now())).ok()).collect()
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        // It never ends by itself, and there is nothing to be done where it has.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
