//! Cost of each instrument in a web service under load: CPU time per request, the slowest answers,
//! memory, and disk. The service runs all the time, and each recording is compared with the seconds
//! before it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clr_diagnostics::Process;
use clrscope_testkit::{Service, cli, fixture, runtimes, scratch};

use super::absolute::Line;
use super::web::{Answers, load};
use crate::measured::Spread;

/// Load before anything is measured: the service compiles its code again for good.
const WARM: Duration = Duration::from_secs(8);
/// From the command to the time that is measured: the attach is over by then.
const BEGIN: Duration = Duration::from_millis(1_500);
/// Load that is measured, without a recording and with one.
const MEASURED: Duration = Duration::from_secs(2);
/// Length of a recording in seconds: it lasts for longer than what is measured.
const RECORDED_S: u32 = 4;

/// What is recorded, and its title.
const UNDER: [(&str, &[&str]); 13] = [
    ("`cpu` at 100 Hz", &["cpu:rate=100"]),
    ("`cpu` at 1 kHz", &["cpu"]),
    ("`wall` at 100 Hz", &["wall"]),
    ("`gc`", &["gc"]),
    ("`exceptions`", &["exceptions"]),
    ("`alloc`", &["alloc"]),
    ("`locks`", &["locks"]),
    ("`awaits`", &["awaits"]),
    ("`requests`", &["requests"]),
    ("`counters`", &["counters"]),
    ("`memory`", &["memory"]),
    ("`cpu`, `wall`, `gc`, `exceptions`, `alloc`", &["cpu", "wall", "gc", "exceptions", "alloc"]),
    ("`cpu` and `wall` at 49 Hz, `gc`, `exceptions`", &["cpu:rate=49", "wall:rate=49", "gc", "exceptions"]),
];

/// What a load took.
struct Taken {
    cpu_per_request: f64,
    answers: Answers,
    resident_mb: f64,
}

/// One recording beside the seconds before it.
struct Pair {
    cpu: f64,
    slow: f64,
    more_mb: f64,
    disk_mb: f64,
}

/// Lines of the report; empty if there is no runtime for a web service.
pub(super) fn by_instrument(pairs: usize) -> Result<Vec<Line>, String> {
    let Some(runtime) = runtimes().iter().rev().find(|runtime| runtime.has_web()) else { return Ok(Vec::new()) };
    let place = scratch();
    let service = Service::start(runtime.command(&fixture("Web")));
    asked(&service, WARM)?;
    let mut found: Vec<Vec<Pair>> = UNDER.iter().map(|_| Vec::new()).collect();
    for _ in 0..pairs {
        for ((_, instruments), pairs) in UNDER.iter().zip(&mut found) {
            pairs.push(pair(&service, instruments, &place.path().join("costs.clrs"))?);
        }
    }
    service.stop("TERM").expect_success();
    Ok(UNDER.iter().zip(&found).map(|((title, _), pairs)| line(title, pairs)).collect())
}

fn pair(service: &Service, instruments: &[&str], recording: &Path) -> Result<Pair, String> {
    let bare = taken(service)?;
    let mut attached = attach(service.id(), instruments, recording)?;
    asked(service, BEGIN)?;
    let with = taken(service)?;
    // The load goes on until the agent has left: what the end costs is no part of the next pair.
    while attached.try_wait().map_err(|error| error.to_string())?.is_none() {
        asked(service, Duration::from_millis(100))?;
    }
    if !attached.wait().map_err(|error| error.to_string())?.success() {
        return Err(format!("attach with {instruments:?} failed"));
    }
    let bytes = std::fs::metadata(recording).map_err(|error| error.to_string())?.len();
    Ok(Pair {
        cpu: with.cpu_per_request / bare.cpu_per_request,
        slow: with.answers.p99_ms / bare.answers.p99_ms,
        more_mb: with.resident_mb - bare.resident_mb,
        disk_mb: bytes as f64 / 1e6 * 60.0 / f64::from(RECORDED_S),
    })
}

fn line(title: &str, pairs: &[Pair]) -> Line {
    let of = |value: fn(&Pair) -> f64| Spread::from_values(&pairs.iter().map(value).collect::<Vec<_>>());
    let (cpu, slow, memory, disk) =
        (of(|one| one.cpu), of(|one| one.slow), of(|one| one.more_mb), of(|one| one.disk_mb));
    let figure = format!(
        "CPU {:.2} ({:.2} to {:.2}); 99 of 100 answers {:.2} ({:.2} to {:.2}); {:.0} MB more ({:.0} to {:.0}); {:.1} MB \
         of disk a minute",
        cpu.median,
        cpu.low,
        cpu.high,
        slow.median,
        slow.low,
        slow.high,
        memory.median,
        memory.low,
        memory.high,
        disk.median
    );
    ("costs", format!("web service, {title}"), figure, "")
}

fn taken(service: &Service) -> Result<Taken, String> {
    let process = Process::open(service.id()).map_err(|error| error.to_string())?;
    let before = process.cpu_time();
    let answers = asked(service, MEASURED)?;
    let cpu = process.cpu_time().saturating_sub(before).as_secs_f64();
    Ok(Taken {
        cpu_per_request: cpu / answers.requests as f64,
        answers,
        resident_mb: process.resident_bytes().ok_or("the web service has ended")? as f64 / 1e6,
    })
}

fn asked(service: &Service, time: Duration) -> Result<Answers, String> {
    load(service.address(), time).map_err(|error| format!("the web service: {error}"))
}

fn attach(pid: u32, instruments: &[&str], recording: &Path) -> Result<Child, String> {
    let mut command = Command::new(cli());
    let time = format!("{RECORDED_S}s");
    command.args(["attach", &pid.to_string(), "--quiet", "--force", "--trust-writable", "--duration", &time, "-o"]);
    command.arg(recording).args(instruments.iter().flat_map(|name| ["-i", name])).stdout(Stdio::null());
    command.spawn().map_err(|error| format!("{command:?}: {error}"))
}
