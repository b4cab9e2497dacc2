//! `cargo xtask soak rare`: faults that occurred once and were not understood. A program of the
//! same kind is run thousands of times for each.
//!
//! - "stack smashing detected" (.NET 9): a program closes its descriptors and uses their numbers
//!   again, under `alloc`, with code pages that may be written to and run at once.
//! - SIGBUS at the start (.NET 8): `wall` where the system refuses timers.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use clrscope_testkit::compile::compile_program;
use clrscope_testkit::{Runtime, Sdk, at_a_time, confine, fixture, run_within, runtimes, scratch};

use crate::agents::under_agent;
use crate::verdict::verdict;

/// Programs that run at a time.
const AT_A_TIME: usize = 4;
/// Longest time of one run.
const PATIENCE: Duration = Duration::from_secs(60);
/// Numbers of `timer_create` and `timer_settime`.
const TIMERS: [u32; 2] = [222, 223];

/// The program that uses the numbers of closed descriptors again. Those without a path stay open:
/// the runtime itself, bare, hangs or aborts now and then without its pipes and sockets.
const REUSES: &str = r#"
using System; using System.Globalization; using System.IO; using System.Linq; using System.Runtime.InteropServices; using System.Threading;
internal static class Program {
 [DllImport("libc", EntryPoint = "close")] private static extern int Close(int descriptor);
 private static object? kept;
 private static int Main(string[] args) {
  int[] mine = Directory.GetFileSystemEntries("/proc/self/fd").Where(entry => (new FileInfo(entry).LinkTarget ?? "").StartsWith('/'))
   .Select(entry => int.Parse(Path.GetFileName(entry), CultureInfo.InvariantCulture)).Where(number => number >= 3).ToArray();
  foreach (int number in mine) Close(number);
  FileStream[] files = Enumerable.Range(0, 60).Select(i => File.Create(Path.Combine(args[0], $"{i}"))).ToArray();
  Thread[] threads = Enumerable.Range(0, 4).Select(_ => new Thread(() => { for (int i = 0; i < 20000; i++) kept = new byte[i % 3000]; })).ToArray();
  foreach (Thread thread in threads) thread.Start();
  foreach (Thread thread in threads) thread.Join();
  GC.Collect();
  foreach (FileStream file in files) file.Dispose();
  Console.WriteLine(files.Count(file => new FileInfo(file.Name).Length > 0));
  return 0;
 }
}
"#;

/// Runs both programs `runs` times on .NET 8 and 9.
pub(crate) fn run(runs: u32) -> Result<(), String> {
    let sdk = Sdk::find().ok_or("there is no SDK to compile the program with")?;
    let place = scratch();
    let (source, program) = (place.path().join("Reuses.cs"), place.path().join("Reuses.dll"));
    std::fs::write(&source, REUSES).map_err(|error| error.to_string())?;
    compile_program(&sdk, &source, &program)?;
    let mut wrong = Vec::new();
    for runtime in runtimes().iter().filter(|runtime| matches!(runtime.version.major, 8 | 9)) {
        wrong.extend(over_and_over("descriptors used again, alloc", runtime, runs, |place| {
            let mut command = runtime.command(&program);
            command.arg(place).env("DOTNET_EnableWriteXorExecute", "0");
            under_agent(&mut command, "alloc", &place.join("soaked.clrs.d"));
            Some((command, "0\n".to_owned()))
        }));
        wrong.extend(over_and_over("timers refused, wall", runtime, runs, |place| {
            let mut command = runtime.command(&fixture("Echo"));
            under_agent(&mut command, "wall", &place.join("soaked.clrs.d"));
            confine::without_system_calls(&command, &TIMERS).map(|command| (command, String::new()))
        }));
    }
    verdict(&wrong)
}

/// Runs a program so often; what went wrong, each run that did.
#[expect(clippy::print_stdout, reason = "a command line tool")]
fn over_and_over(
    what: &str,
    runtime: &Runtime,
    runs: u32,
    program: impl Fn(&Path) -> Option<(Command, String)> + Sync,
) -> Vec<String> {
    // Where the system of this machine can't refuse what is asked for, nothing is run, and
    // `confine` has said so.
    if program(scratch().path()).is_none() {
        return Vec::new();
    }
    let began = Instant::now();
    let ended = at_a_time(AT_A_TIME, 0..runs, |_| {
        let place = scratch();
        let (command, expected) = program(place.path()).expect("as before");
        let finished = run_within(command, PATIENCE);
        let is_wrong = finished.code() != 0 || !finished.stdout_text().starts_with(&expected);
        is_wrong.then(|| format!("{what} on {}: {}, {:?}", runtime.version, finished.status, finished.stderr_text()))
    });
    let wrong: Vec<String> = ended.into_iter().flatten().collect();
    println!("{what} on {}: {runs} runs, {} wrong, {:.0?}", runtime.version, wrong.len(), began.elapsed());
    wrong
}
