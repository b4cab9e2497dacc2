//! `cargo xtask soak probes`: a web program under load, whose 5,000 methods repeatedly get probes
//! and lose them again while they run. No request may fail, and requests may not cost more
//! afterwards than before.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use clr_diagnostics::Process;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::ProbedMethod;
use clrscope_testkit::{Runtime, Sdk, Service, cli, compile::compile_web, cpu_time, runtimes, scratch};

use crate::bench::web::load;
use crate::measured::Spread;
use crate::verdict::{say, verdict};

/// Types of the program, and methods of each that every request calls, besides one that calls
/// these.
const TYPES: usize = 50;
const METHODS: usize = 100;
/// Load before anything is measured: the program compiles its code again for good.
const WARM: Duration = Duration::from_secs(6);
/// Load that is measured between two rounds.
const MEASURED: Duration = Duration::from_secs(3);
/// Load that goes on while methods get probes and lose them, and how long they have some.
const UNDER_WAY: Duration = Duration::from_secs(8);
const PROBED: &str = "3s";
/// Most that a request may cost afterwards, in costs at first: two runs of one program differ by a
/// tenth.
const MOST: f64 = 1.15;

/// Soaks the program on each runtime that has ASP.NET. An error names what went wrong.
pub(crate) fn run(rounds: usize) -> Result<(), String> {
    let sdk = Sdk::find().ok_or("there is no SDK to compile the program with")?;
    let place = scratch();
    let program = compiled(&sdk, place.path())?;
    // Built before a program waits to be attached to.
    cli();
    let mut wrong = Vec::new();
    for runtime in runtimes().iter().filter(|runtime| runtime.has_web()) {
        wrong.extend(say((format!("probes on {}", runtime.version), over_and_over(runtime, &program, rounds))));
    }
    verdict(&wrong)
}

/// The program, compiled.
fn compiled(sdk: &Sdk, place: &Path) -> Result<PathBuf, String> {
    let (source, program) = (place.join("Many.cs"), place.join("Many.dll"));
    fs::write(&source, source_text()).map_err(|error| error.to_string())?;
    compile_web(sdk, &source, &program).map(|()| program)
}

/// C# of a service whose answer takes a call of each of the methods; the compiler may put half of
/// them into their callers.
fn source_text() -> String {
    let mut text = String::from(
        "using System; using System.Linq; using System.Runtime.CompilerServices; using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder; using Microsoft.AspNetCore.Hosting; using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;
internal static class Program {
 private static async Task Main() {
  WebApplicationBuilder builder = WebApplication.CreateBuilder();
  builder.Logging.ClearProviders();
  builder.WebHost.UseUrls(\"http://127.0.0.1:0\");
  await using WebApplication app = builder.Build();
  app.MapGet(\"/ok\", () => {
   long sum = 0;\n",
    );
    let each = |out: &mut String, write: fn(&mut String, usize)| (0..TYPES).for_each(|number| write(out, number));
    each(&mut text, |out, number| _ = writeln!(out, "   sum += Many.Type{number}.All({number});"));
    text.push_str(
        "   return sum.ToString(); });
  await app.StartAsync();
  Console.WriteLine($\"listening on {app.Urls.Single()}\");
  await app.WaitForShutdownAsync();
 }
}
namespace Many {\n",
    );
    each(&mut text, write_type);
    text.push_str("}\n");
    text
}

fn write_type(out: &mut String, number: usize) {
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    line(format!(" internal static class Type{number} {{\n  internal static long All(long sum) {{"));
    (0..METHODS).for_each(|method| line(format!("   sum = M{method}(sum);")));
    line("   return sum; }".to_owned());
    for method in 0..METHODS {
        let kept = if method % 2 == 0 { "[MethodImpl(MethodImplOptions.NoInlining)] " } else { "" };
        let factor = method + 3;
        line(format!("  {kept}private static long M{method}(long x) => (x * {factor} + {number}) % 1000003;"));
    }
    line(" }".to_owned());
}

/// Rounds of probes and none; in words what they cost, compared with the same program without a
/// profiler attached.
fn over_and_over(runtime: &Runtime, program: &Path, rounds: usize) -> Result<String, String> {
    let place = scratch();
    let services = [(); 2].map(|()| Service::start(runtime.command(program)));
    let [probed, bare] = &services;
    services.iter().try_for_each(|service| load(service.address(), WARM).map(drop)).map_err(in_words)?;
    let at_first = costs(probed, bare)?;
    let memory = [resident(probed)?, resident(bare)?];
    let (mut answered, mut afterwards) = (0, Vec::new());
    for round in 0..rounds {
        let file = place.path().join(format!("{round}.clrs"));
        let answers = thread::scope(|scope| {
            let loaded = scope.spawn(|| load(probed.address(), UNDER_WAY));
            let attached = attach(probed.id(), &file);
            let answers = loaded.join().unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into())).map_err(in_words);
            attached.and(answers)
        })?;
        all_were_called(&file).map_err(|why| format!("round {round}: {why}"))?;
        answered += answers.requests;
        afterwards.push(costs(probed, bare)?);
    }
    let grown = [resident(probed)? - memory[0], resident(bare)? - memory[1]].map(|kb| kb / rounds.max(1) as i64);
    services.into_iter().for_each(|service| _ = service.stop("TERM").expect_success());
    let (after, [probed_kb, bare_kb]) = (Spread::from_values(&afterwards), grown);
    let said = format!(
        "{rounds} rounds, {answered} requests answered while methods were recompiled and reverted; a request costs {:.2} \
         ({:.2} to {:.2}) afterwards of what it costs where nobody attached, {at_first:.2} at first; {probed_kb} kB more of \
         memory each round, {bare_kb} where nobody attached",
        after.median, after.low, after.high
    );
    if after.median <= at_first.max(1.0) * MOST { Ok(said) } else { Err(said) }
}

/// CPU time of a request to one program, in that of one to another.
fn costs(one: &Service, other: &Service) -> Result<f64, String> {
    let cost = |service: &Service| -> Result<f64, String> {
        let before = cpu(service)?;
        let answers = load(service.address(), MEASURED).map_err(in_words)?;
        Ok((cpu(service)? - before).as_secs_f64() / answers.requests as f64)
    };
    Ok(cost(one)? / cost(other)?)
}

fn in_words(error: std::io::Error) -> String {
    format!("a request failed: {error}")
}

/// Attaches with probes in all methods of the program, for a while.
fn attach(pid: u32, file: &Path) -> Result<(), String> {
    let mut command = Command::new(cli());
    command.arg("attach").arg(pid.to_string()).args(["--probe", "Many.*", "--duration", PROBED, "--quiet", "-o"]);
    let output = command.arg(file).stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(said) }
}

/// Checks that all methods had probes and were called.
fn all_were_called(file: &Path) -> Result<(), String> {
    let recording = clrscope_recording::open(file).map_err(|error| error.to_string())?;
    let chunks = recording.processes.iter().flat_map(|process| process.arenas(instrument::PROBES));
    let bytes = chunks.flat_map(|arena| &arena.chunks).map(|chunk| chunk.bytes.load());
    let called: usize = bytes.map(|bytes| ProbedMethod::all(&bytes).filter(|method| method.calls > 0).count()).sum();
    let wanted = TYPES * (METHODS + 1);
    if called == wanted { Ok(()) } else { Err(format!("{called} methods of {wanted} were called with probes")) }
}

fn cpu(service: &Service) -> Result<Duration, String> {
    cpu_time(service.id()).ok_or_else(|| "the program ended".to_owned())
}

/// Memory of the program, in kB.
fn resident(service: &Service) -> Result<i64, String> {
    let process = Process::open(service.id()).map_err(|error| error.to_string())?;
    let bytes = process.resident_bytes().ok_or("the program ended")?;
    Ok((bytes / 1024).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_thousand_methods_are_called_by_each_request() {
        let text = source_text();
        assert_eq!(text.matches("private static long M").count(), 5_000);
        assert_eq!(text.matches("sum = M").count(), 5_000);
        assert_eq!(text.matches("sum += Many.Type").count(), TYPES);
    }
}
