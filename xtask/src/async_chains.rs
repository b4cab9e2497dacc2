//! `cargo xtask soak async`: programs build and tear down chains of awaits as fast as they can.
//! They are sampled at the highest rate while memory is collected and compacted, and while classes
//! unload. The programs' own methods show to which root each sample belongs: no sample may be below
//! another root.

use std::process::Command;
use std::time::{Duration, Instant};

use clrscope_analysis::make_paths_logical;
use clrscope_testkit::{BurningSamples, Runtime, fixture, run_within, runtimes, scratch};

use crate::agents::under_agent;
use crate::verdict::{caught, say, verdict};

/// The engines.
const ENGINES: [&str; 2] = ["perf", "timer"];
/// A load: `Burning`, run in a way.
struct Load {
    name: &'static str,
    arguments: &'static [&'static str],
    /// Setting of the runtime.
    setting: Option<(&'static str, &'static str)>,
    /// The program is run in so many contexts, one after another, which unload; 0 for by itself.
    contexts: u32,
}

const fn load(name: &'static str, arguments: &'static [&'static str]) -> Load {
    Load { name, arguments, setting: None, contexts: 0 }
}

const LOADS: [Load; 5] = [
    load("short work, a collection each millisecond", &["600", "2", "rapid", "1"]),
    load("long work, a collection every 30 ms", &["2", "2000", "rapid", "30"]),
    Load { setting: Some(("DOTNET_GCgen0size", "0x20000")), ..load("small generations", &["600", "2", "rapid", "2"]) },
    Load { setting: Some(("DOTNET_gcServer", "1")), ..load("server GC", &["600", "2", "rapid", "2"]) },
    Load { contexts: 10, ..load("classes that unload", &["20", "2", "rapid", "2"]) },
];
/// Time that a program may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// Soaks all programs, each load for `time`. An error names what went wrong.
pub(crate) fn run(time: Duration) -> Result<(), String> {
    let (mut wrong, mut all) = (Vec::new(), 0);
    for runtime in runtimes() {
        for load in &LOADS {
            for engine in ENGINES {
                let went = caught(|| repeated(runtime, engine, load, time));
                all += went.as_ref().map_or(0, |(samples, _)| *samples);
                let name = format!("{} on {} with {engine}", load.name, runtime.version);
                wrong.extend(say((name, went.map(|(_, words)| words))));
            }
        }
    }
    wrong.extend(say(("samples of work".to_owned(), Ok(all.to_string()))));
    verdict(&wrong)
}

fn command_of(runtime: &Runtime, load: &Load) -> Command {
    let burning = fixture("Burning");
    let mut command = match load.contexts {
        0 => runtime.command(&burning),
        contexts => {
            let mut command = runtime.command(&fixture("Unloading"));
            command.arg(burning).arg(contexts.to_string());
            command
        }
    };
    command.args(load.arguments).envs(load.setting);
    command
}

/// Repeats a load until it ran for so long; its samples, and words about them.
fn repeated(runtime: &Runtime, engine: &str, load: &Load, time: Duration) -> Result<(u64, String), String> {
    let (mut right, mut all, mut rounds) = (0, 0, 0);
    let began = Instant::now();
    while rounds == 0 || began.elapsed() < time {
        rounds += 1;
        let place = scratch();
        let out = place.path().join("soaked.clrs.d");
        let mut command = command_of(runtime, load);
        under_agent(&mut command, &format!("cpu:rate=20000,engine={engine}"), &out);
        let finished = run_within(command, PATIENCE);
        if finished.code() != 0 {
            return Err(format!("round {rounds}: exit code {}: {}", finished.code(), finished.stderr_text()));
        }
        let mut recording = clrscope_recording::open(&out).map_err(|error| error.to_string())?;
        make_paths_logical(&mut recording);
        let process = recording.processes.first().ok_or("nothing was recorded")?;
        let found = BurningSamples::read(process, &finished.stdout_text());
        if let Some(first) = found.wrong.first() {
            return Err(format!(
                "round {rounds}: {} of {} are below another root: {first}",
                found.wrong.len(),
                found.all()
            ));
        }
        right += found.right.iter().sum::<u64>();
        all += found.all();
    }
    let percent = 100.0 * right as f64 / all.max(1) as f64;
    Ok((all, format!("{all} samples of work in {rounds} rounds, {percent:.1} % below their root, 0 below another")))
}
