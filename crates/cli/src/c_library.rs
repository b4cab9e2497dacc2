//! The C library that the agent needs, and the one that a process has.
//!
//! Where a process's is older, its dynamic loader refuses the agent, and the runtime writes no
//! message about it unless a log is asked for. So this checks before, and messages name both
//! versions.

use std::path::Path;
use std::sync::OnceLock;

use clr_diagnostics::Process;
use clrscope_symbols::GlibcVersion;

use crate::agent_file;
use crate::errors::Failure;

/// Systems by the version that they came with, oldest first: `ldd --version` in their images.
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

/// Returns the version of a mapped library. The kernel names it by its place in the process's root
/// where that is a mount of its own, as in a container, and by its place in ours where the process
/// is in a `chroot`.
fn provided_by(root: &Path, mapped: &Path) -> Option<GlibcVersion> {
    let in_root = root.join(mapped.strip_prefix("/").ok()?);
    GlibcVersion::provided_by(&in_root).or_else(|| GlibcVersion::provided_by(mapped))
}

/// Whether a path is the library's: up to 2.33 its file was named after the version (glibc's NEWS
/// for 2.34).
fn is_glibc(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so"))
}

/// Reason and hint where the version that a process has is too old for the agent; `None` where it
/// is new enough.
pub(crate) fn obstacle(provided: GlibcVersion, needed: GlibcVersion) -> Option<(String, String)> {
    (provided < needed).then(|| {
        let why = format!("its C library is glibc {provided}, and this agent needs glibc {needed} or later");
        (why, format!("run the program in {}", image(needed)))
    })
}

/// Returns a sentence on programs that run in an image or on another machine; `None` where the
/// agent needs no version.
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
/// That, with both versions; `what` can't be done then.
pub(crate) fn check(process: &Process, what: &str) -> Result<(), Failure> {
    match provided(process).zip(needed()).and_then(|(provided, needed)| obstacle(provided, needed)) {
        Some((why, hint)) => Err(Failure::new(what, why, hint)),
        None => Ok(()),
    }
}

/// [`check`] of the library that programs of this machine share with this process.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_own() -> Result<(), Failure> {
    match Process::open(std::process::id()) {
        Ok(own) => check(&own, "cannot load the agent into programs of this machine"),
        // What can't be read the runtime itself must answer for.
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

    /// `doctor` found no glibc in a program in a `chroot` of Debian 11, and `attach` did not name
    /// it.
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
