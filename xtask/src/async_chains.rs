//! `cargo xtask soak async`: programs that build and tear down chains of awaits as fast as they can,
//! sampled at the highest rate while memory is collected and compacted, and while classes unload.
//! Their own methods say which root each sample is of: none may be below another one.

use std::time::{Duration, Instant};

use clrscope_analysis::make_paths_logical;
use clrscope_testkit::{BurningSamples, Runtime, fixture, run_within, runtimes, scratch};

use crate::agents::under_agent;
use crate::verdict::{caught, say, verdict};

/// The engines.
const ENGINES: [&str; 2] = ["perf", "timer"];
/// Words for a load, the arguments of `Burning`, and a setting of the runtime.
const LOADS: [(&str, &[&str], (&str, &str)); 5] = [
    ("short work, a collection each millisecond", &["600", "2", "rapid", "1"], ("DOTNET_gcServer", "0")),
    ("long work, a collection every 30 ms", &["2", "2000", "rapid", "30"], ("DOTNET_gcServer", "0")),
    ("small generations", &["600", "2", "rapid", "2"], ("DOTNET_GCgen0size", "0x20000")),
    ("server GC", &["600", "2", "rapid", "2"], ("DOTNET_gcServer", "1")),
    ("classes that unload", &["20", "2", "rapid", "2"], ("DOTNET_gcServer", "0")),
];
/// The load whose program is run in contexts that unload, so many times.
const UNLOADED: (&str, &str) = ("classes that unload", "10");
/// Time that a program may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// Soaks everything, each load for so long; an error names what went wrong.
pub(crate) fn run(time: Duration) -> Result<(), String> {
    let (mut wrong, mut all) = (Vec::new(), 0);
    for runtime in runtimes() {
        for (what, arguments, setting) in LOADS {
            for engine in ENGINES {
                let went = caught(|| repeated(runtime, engine, (what, arguments, setting), time));
                all += went.as_ref().map_or(0, |(samples, _)| *samples);
                let name = format!("{what} on {} with {engine}", runtime.version);
                wrong.extend(say((name, went.map(|(_, words)| words))));
            }
        }
    }
    wrong.extend(say(("samples of work".to_owned(), Ok(all.to_string()))));
    verdict(&wrong)
}

/// Runs a load anew until it ran for so long; its samples, and words about them.
fn repeated(
    runtime: &Runtime,
    engine: &str,
    (what, arguments, (variable, value)): (&str, &[&str], (&str, &str)),
    time: Duration,
) -> Result<(u64, String), String> {
    let (mut right, mut all, mut rounds) = (0, 0, 0);
    let began = Instant::now();
    while rounds == 0 || began.elapsed() < time {
        rounds += 1;
        let place = scratch();
        let out = place.path().join("soaked.clrs.d");
        let burning = fixture("Burning");
        let mut command = runtime.command(&if what == UNLOADED.0 { fixture("Unloading") } else { burning.clone() });
        if what == UNLOADED.0 {
            command.arg(burning).arg(UNLOADED.1);
        }
        command.args(arguments).env(variable, value);
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
