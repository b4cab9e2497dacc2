//! The versions of the C library that the agent needs and that a process has.
//!
//! If the process has an older version, its dynamic loader refuses the agent, and the runtime
//! reports that only in a log that must be requested. So this module checks in advance, and
//! messages name both versions.

use std::path::Path;
use std::sync::OnceLock;

use clr_diagnostics::Process;
use clrscope_symbols::GlibcVersion;

use crate::agent_file;
use crate::errors::Failure;

/// Systems with the version that they ship, oldest first, by `ldd --version` in their images.
const SYSTEMS: [((u32, u32), &str); 6] = [
    ((2, 31), "Debian 11 or Ubuntu 20.04"),
    ((2, 34), "RHEL 9"),
    ((2, 35), "Ubuntu 22.04"),
    ((2, 36), "Debian 12"),
    ((2, 39), "Ubuntu 24.04"),
    ((2, 41), "Debian 13"),
];

/// Returns the oldest version that the agent can be loaded with.
pub(crate) fn needed() -> Option<GlibcVersion> {
    static NEEDED: OnceLock<Option<GlibcVersion>> = OnceLock::new();
    *NEEDED.get_or_init(|| GlibcVersion::needed_by(agent_file::BYTES))
}

/// Returns the version that a process has loaded; `None` where its maps can't be read, or it has
/// another C library.
pub(crate) fn provided(process: &Process) -> Option<GlibcVersion> {
    let mapped = process.mapped_files().ok()?;
    provided_by(&process.root(), mapped.iter().find(|path| is_glibc(path))?)
}

/// Returns the version of a mapped library. The kernel gives its path relative to the process's
/// root if that is a separate mount, as in a container, and relative to our root if the process is
/// in a `chroot`.
fn provided_by(root: &Path, mapped: &Path) -> Option<GlibcVersion> {
    let in_root = root.join(mapped.strip_prefix("/").ok()?);
    GlibcVersion::provided_by(&in_root).or_else(|| GlibcVersion::provided_by(mapped))
}

/// Whether a path is glibc's: up to 2.33 the file name contained the version (glibc's NEWS for
/// 2.34).
fn is_glibc(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so"))
}

/// Reason and hint if a process's version is too old for the agent; `None` if it is new enough.
pub(crate) fn obstacle(provided: GlibcVersion, needed: GlibcVersion) -> Option<(String, String)> {
    (provided < needed).then(|| {
        let why = format!("its C library is glibc {provided}, and this agent needs glibc {needed} or later");
        (why, format!("run the program in {}", image(needed)))
    })
}

/// Returns a sentence about programs in images or on other machines; `None` if the agent needs no
/// particular version.
pub(crate) fn said_of_other_places() -> Option<String> {
    let needed = needed()?;
    Some(format!(
        "where the program runs it needs {}: with an older one a runtime can't load the agent, and says nothing",
        image(needed)
    ))
}

/// Refuses a process whose C library is too old for the agent.
///
/// # Errors
/// When the library is too old, with both versions; `what` names the action that is impossible.
pub(crate) fn check(process: &Process, what: &str) -> Result<(), Failure> {
    match provided(process).zip(needed()).and_then(|(provided, needed)| obstacle(provided, needed)) {
        Some((why, hint)) => Err(Failure::new(what, why, hint)),
        None => Ok(()),
    }
}

/// As [`check`], for the library that this process shares with the programs of this machine.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_own() -> Result<(), Failure> {
    match Process::open(std::process::id()) {
        Ok(own) => check(&own, "cannot load the agent into programs of this machine"),
        // If the version can't be read, the runtime's own answer decides.
        Err(_) => Ok(()),
    }
}

fn image(needed: GlibcVersion) -> String {
    let fits = |((major, minor), _): &&((u32, u32), &str)| GlibcVersion { major: *major, minor: *minor } >= needed;
    match SYSTEMS.iter().find(fits) {
        Some((_, name)) => format!("an image with glibc {needed} or later, such as {name}"),
        None => format!("an image with glibc {needed} or later"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(minor: u32) -> GlibcVersion {
        GlibcVersion { major: 2, minor }
    }

    #[test]
    fn an_older_library_is_named_with_the_one_that_is_needed() {
        let (why, hint) = obstacle(version(31), version(35)).expect("it is too old");
        assert_eq!(why, "its C library is glibc 2.31, and this agent needs glibc 2.35 or later");
        assert_eq!(hint, "run the program in an image with glibc 2.35 or later, such as Ubuntu 22.04");
        assert_eq!(obstacle(version(35), version(35)), None);
        assert_eq!(obstacle(version(41), version(35)), None);
        assert_eq!(image(version(99)), "an image with glibc 2.99 or later");
    }

    #[test]
    fn this_process_has_what_the_agent_needs() {
        let own = provided(&Process::open(std::process::id()).expect("this process"));
        assert!(own.is_some() && own >= needed(), "{own:?}");
        assert!(needed() >= Some(version(17)), "{:?}", needed());
    }

    /// Regression: in a `chroot` of Debian 11 `doctor` found no glibc in a program, and `attach`
    /// did not name its version.
    #[test]
    fn a_library_in_a_chroot_is_found_where_the_maps_name_it() {
        let process = Process::open(std::process::id()).expect("this process");
        let mapped = process.mapped_files().expect("our own maps");
        let library = mapped.iter().find(|path| is_glibc(path)).expect("glibc is mapped");
        let folder = tempfile::tempdir().expect("a folder");
        let copy = folder.path().join("libc.so.6");
        std::fs::copy(library, &copy).expect("a copy");
        let expected = provided(&process);
        assert!(expected.is_some());
        assert_eq!(provided_by(folder.path(), &copy), expected, "in a chroot");
        assert_eq!(provided_by(folder.path(), Path::new("/libc.so.6")), expected, "in a container");
        assert_eq!(provided_by(folder.path(), Path::new("/lib/libc-2.31.so")), None);
    }

    #[test]
    fn the_library_is_known_by_its_name() {
        let is = |path: &str| is_glibc(Path::new(path));
        assert!(is("/lib/x86_64-linux-gnu/libc.so.6") && is("/usr/lib/x86_64-linux-gnu/libc-2.31.so"));
        assert!(!is("/lib/ld-musl-x86_64.so.1") && !is("/lib/libc-client.so") && !is("/lib/libcoreclr.so"));
    }
}
