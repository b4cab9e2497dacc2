//! Limits, clocks, perf events and containers.

use std::env;
use std::fs;
use std::path::Path;

use clr_diagnostics::processes;
use rustix::process::{Resource, getrlimit};

use super::{Check, Status};

/// Bit of `CAP_PERFMON` in a capability mask.
const CAP_PERFMON: u32 = 38;
/// Bit of `CAP_SYS_ADMIN`.
const CAP_SYS_ADMIN: u32 = 21;
/// A .NET program soon uses up fewer descriptors than this.
const FEW_DESCRIPTORS: u64 = 256;
/// The agent reserves address space for segments that grow; less than this can be too little.
pub(super) const LITTLE_ADDRESS_SPACE: u64 = 64 << 30;
/// A tree may take 1 GiB; a container with less than twice that should set a limit.
const LITTLE_MEMORY: u64 = 2 << 30;

/// Checks which running programs can be attached to.
pub(super) fn running() -> Check {
    let programs = processes().iter().filter(|process| process.port().is_ok()).count();
    Check::ok(
        "attach",
        match programs {
            0 => "no .NET program that allows attach runs here".to_owned(),
            1 => "one running .NET program allows attach (clrscope ps)".to_owned(),
            more => format!("{more} running .NET programs allow attach (clrscope ps)"),
        },
    )
}

/// Checks the limits on descriptors, file size, address space and memory: good limits share one
/// line, each bad limit has its fix.
pub(super) fn limits() -> Vec<Check> {
    let mut bad = Vec::new();
    if let Some(files) = getrlimit(Resource::Nofile).current.filter(|&n| n < FEW_DESCRIPTORS) {
        bad.push(Check::bad(
            Status::Warning,
            "limits",
            format!("a process may open only {files} files"),
            "ulimit -n 4096",
        ));
    }
    if let Some(bytes) = getrlimit(Resource::Fsize).current {
        let found = format!("a file may have only {}: recordings end there, and .NET itself may fail", size(bytes));
        bad.push(Check::bad(Status::Warning, "limits", found, "ulimit -f unlimited"));
    }
    if let Some(found) = little_address_space() {
        bad.push(Check::bad(Status::Warning, "limits", found, "ulimit -v unlimited"));
    }
    if let Some(bytes) = memory_limit().filter(|&n| n < LITTLE_MEMORY) {
        let found = format!("this control group may use {} of memory, recordings included", size(bytes));
        bad.push(Check::bad(Status::Warning, "limits", found, "record with a limit: -i calls:max=256MiB"));
    }
    match bad.is_empty() {
        true => vec![Check::ok("limits", "descriptors, file size, address space and memory suffice")],
        false => bad,
    }
}

/// Warning for a process that may have less address space than .NET and the agent reserve.
pub(crate) fn little_address_space() -> Option<String> {
    let bytes = getrlimit(Resource::As).current.filter(|&n| n < LITTLE_ADDRESS_SPACE)?;
    Some(format!("a process may have only {} of address space: .NET and the agent reserve much more", size(bytes)))
}

/// Formats a limit.
fn size(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

/// The memory limit of the control group, version 2 or 1.
fn memory_limit() -> Option<u64> {
    let path = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = path.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").trim_start_matches('/').to_owned();
    let candidates = [
        format!("/sys/fs/cgroup/{own}/memory.max"),
        "/sys/fs/cgroup/memory.max".to_owned(),
        "/sys/fs/cgroup/memory/memory.limit_in_bytes".to_owned(),
    ];
    candidates.iter().find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
}

/// Checks for `clock=tsc`, which needs a time stamp counter with a constant rate.
pub(super) fn clock() -> Option<Check> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags"))?;
    let even = ["constant_tsc", "nonstop_tsc"].iter().all(|flag| flags.split_whitespace().any(|f| f == *flag));
    Some(match even {
        true => Check::ok("clock", "the time stamp counter is invariant"),
        false => Check::bad(
            Status::Note,
            "clock",
            "the processor has no invariant time stamp counter",
            "stay with clock=sampled, the default",
        ),
    })
}

/// Checks whether the kernel allows perf events for this user. Perf events are the better of the
/// two engines of `cpu`.
pub(super) fn perf_events() -> Check {
    const NAME: &str = "perf events";
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    let Some(level) = level.and_then(|text| text.trim().parse::<i32>().ok()) else {
        return Check::bad(
            Status::Note,
            NAME,
            "this kernel has none, so 'cpu' uses timers",
            "use a kernel with perf events",
        );
    };
    if has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN) {
        return Check::ok(NAME, format!("allowed by capability (perf_event_paranoid is {level}); 'cpu' uses them"));
    }
    match level {
        ..=2 if system_calls_are_filtered() => Check::bad(
            Status::Note,
            NAME,
            format!(
                "allowed by the kernel (perf_event_paranoid is {level}), but system calls are filtered here, and containers \
                 usually refuse this one; 'cpu' then uses timers"
            ),
            "in a container --cap-add PERFMON",
        ),
        ..=1 => Check::ok(
            NAME,
            format!("allowed with the kernel's frames (perf_event_paranoid is {level}); 'cpu' uses them"),
        ),
        2 => Check::bad(
            Status::Note,
            NAME,
            "allowed without the kernel's frames (perf_event_paranoid is 2); 'cpu' uses them",
            "sysctl kernel.perf_event_paranoid=1",
        ),
        _ => Check::bad(
            Status::Note,
            NAME,
            format!("not allowed (perf_event_paranoid is {level}); 'cpu' then uses timers"),
            "sysctl kernel.perf_event_paranoid=1, or in a container --cap-add PERFMON",
        ),
    }
}

fn has_capability(bit: u32) -> bool {
    let mask = status_field("CapEff:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    mask.is_some_and(|mask| mask >> bit & 1 == 1)
}

fn status_field(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

fn system_calls_are_filtered() -> bool {
    status_field("Seccomp:").is_some_and(|mode| mode == "2")
}

/// Checks for effects of a container on recording.
pub(super) fn container() -> Vec<Check> {
    let mut found = Vec::new();
    let marks = ["/.dockerenv", "/run/.containerenv"];
    if marks.iter().any(|mark| Path::new(mark).exists()) || env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
        found.push(Check::bad(
            Status::Note,
            "container",
            "this is a container: recordings inside it vanish with it",
            "write to a mounted folder with -o; for services see 'clrscope env --dockerfile'",
        ));
    }
    if system_calls_are_filtered() {
        found.push(Check::bad(
            Status::Note,
            "seccomp",
            "system calls are filtered: perf events may be refused; clrscope needs no other call that filters usually \
             refuse",
            "if a recording stays empty: --security-opt seccomp=unconfined",
        ));
    }
    found
}
