//! The C library that a process or a program has, and the agent that fits it.
//!
//! A dynamic loader refuses an agent that is linked with another C library, or needs a newer
//! version of glibc, and the runtime reports that only in a log that must be requested. So this
//! module chooses the agent by the target, checks the version in advance, and messages name what is
//! there and what is needed.

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clr_diagnostics::Process;
use clrscope_symbols::{CLibrary, GlibcVersion, program_loader};

use crate::agent_file::{AGENTS, Agent};
use crate::errors::{Failure, shown};
use crate::launch::Program;

/// Systems with the version that they ship, oldest first, by `ldd --version` in their images.
const SYSTEMS: [((u32, u32), &str); 6] = [
    ((2, 31), "Debian 11 or Ubuntu 20.04"),
    ((2, 34), "RHEL 9"),
    ((2, 35), "Ubuntu 22.04"),
    ((2, 36), "Debian 12"),
    ((2, 39), "Ubuntu 24.04"),
    ((2, 41), "Debian 13"),
];

/// A program that every system has, which is linked with the system's C library.
const SYSTEMS_OWN: &str = "/bin/sh";
/// Most bytes of a script's first line.
const MOST_OF_LINE: u64 = 4096;

/// Returns the oldest version of glibc that the agent for glibc can be loaded with.
pub(crate) fn needed() -> Option<GlibcVersion> {
    static NEEDED: OnceLock<Option<GlibcVersion>> = OnceLock::new();
    *NEEDED.get_or_init(|| GlibcVersion::needed_by(agent_for(CLibrary::Gnu)?.bytes))
}

/// Returns the agent for a C library, if this tool has one.
pub(crate) fn agent_for(library: CLibrary) -> Option<&'static Agent> {
    AGENTS.iter().find(|agent| agent.c_library == library)
}

/// Returns the C libraries for which this tool has agents, as a list in words.
pub(crate) fn served() -> String {
    let names: Vec<String> = AGENTS.iter().map(|agent| agent.c_library.to_string()).collect();
    names.join(" and ")
}

/// Returns the C library that a process has loaded; `None` if its maps can't be read or name no C
/// library. If it has both, as programs under Alpine's `gcompat` do, musl is the one that loads
/// libraries.
pub(crate) fn of_process(process: &Process) -> Option<CLibrary> {
    let mapped = process.mapped_files().ok()?;
    mapped.iter().filter_map(|path| CLibrary::of_file(path)).max()
}

/// Returns the version of glibc that a process has loaded; `None` if its maps can't be read or it
/// has another C library.
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

/// Whether a path is glibc itself, not its dynamic loader.
fn is_glibc(path: &Path) -> bool {
    let is_library = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libc"));
    is_library && CLibrary::of_file(path) == Some(CLibrary::Gnu)
}

/// Returns the dynamic loader of a program, or, where that is a script, of the program that reads
/// the script. Without one, as for programs that are linked statically, that of the system.
fn loader_of(program: &Path) -> Option<PathBuf> {
    named_loader(program).or_else(|| named_loader(Path::new(SYSTEMS_OWN)))
}

fn named_loader(program: &Path) -> Option<PathBuf> {
    let file = File::open(program).ok()?;
    program_loader(&file).or_else(|| program_loader(&File::open(reader_of_script(&file)?).ok()?))
}

/// The program that the first line of a script names, `#!/bin/sh -e`; behind `env` the name is
/// looked up as `env` does.
fn reader_of_script(script: &File) -> Option<PathBuf> {
    let mut line = Vec::new();
    BufReader::new(script.take(MOST_OF_LINE)).read_until(b'\n', &mut line).ok()?;
    let mut words = line.strip_prefix(b"#!")?.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let reader = Path::new(OsStr::from_bytes(words.next()?));
    match words.next() {
        Some(name) if reader.ends_with("env") => on_path(OsStr::from_bytes(name)),
        _ => Some(reader.to_owned()),
    }
}

/// The file that a name represents on `PATH`.
fn on_path(name: &OsStr) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Reason and hint if a process's version of glibc is too old for the agent; `None` if it is new
/// enough.
pub(crate) fn obstacle(provided: GlibcVersion, needed: GlibcVersion) -> Option<(String, String)> {
    (provided < needed).then(|| {
        let why = format!("its C library is glibc {provided}, and this agent needs glibc {needed} or later");
        (why, format!("run the program in {}", image(needed)))
    })
}

/// Reason and hint if this tool has no agent for a C library.
pub(crate) fn without_agent(library: CLibrary) -> Option<(String, String)> {
    agent_for(library).is_none().then(|| {
        let name = match library {
            CLibrary::Gnu => "glibc",
            CLibrary::Musl => "musl (Alpine Linux)",
        };
        let why = format!("the C library is {name}, and this clrscope has an agent for {} only", served());
        let image = match library {
            CLibrary::Gnu => "musl, such as Alpine's",
            CLibrary::Musl => "glibc, such as Debian's",
        };
        (why, format!("use a published build, which has agents for both, or run the program in an image with {image}"))
    })
}

/// Returns a sentence about the C library that programs in images or on other machines need; `None`
/// if the agent needs no particular version.
pub(crate) fn said_of_other_places(library: CLibrary) -> Option<String> {
    let (place, other) = match library {
        CLibrary::Gnu => (image(needed()?), "an older one"),
        CLibrary::Musl => ("an image with musl, such as Alpine's".to_owned(), "glibc"),
    };
    Some(format!("the program must run in {place}: with {other}, a runtime can't load the agent, and says nothing"))
}

/// Returns the agent for a process.
///
/// # Errors
/// When there is none for its C library, or the library is too old, with what is there and what is
/// needed; `what` names the action that is impossible.
pub(crate) fn agent_of_process(process: &Process, library: CLibrary, what: &str) -> Result<&'static Agent, Failure> {
    chosen(library, || provided(process), what)
}

/// Returns the agent for a program that is to be started.
///
/// # Errors
/// As [`agent_of_process`].
pub(crate) fn agent_of_program(program: &Program) -> Result<&'static Agent, Failure> {
    let given = Path::new(&program.executable);
    let is_path = program.executable.as_bytes().contains(&b'/');
    let found = if is_path { Some(given.to_owned()) } else { on_path(&program.executable) };
    let what = format!("cannot load the agent into {}", shown(given));
    agent_by_loader(loader_of(found.as_deref().unwrap_or(given)), &what)
}

/// Returns the C library of this machine's own programs.
pub(crate) fn of_machine() -> CLibrary {
    library_of(named_loader(Path::new(SYSTEMS_OWN)).as_deref())
}

/// Returns the agent for a C library, for programs in images or on other machines.
///
/// # Errors
/// When this tool has none.
pub(crate) fn agent_elsewhere(library: CLibrary) -> Result<&'static Agent, Failure> {
    chosen(library, || None, "cannot provide an agent for these programs")
}

/// Returns the agent for a C library, after a check that programs of this machine can load it.
///
/// # Errors
/// As [`agent_of_process`].
pub(crate) fn agent_of_machine(library: CLibrary) -> Result<&'static Agent, Failure> {
    let loader = named_loader(Path::new(SYSTEMS_OWN)).filter(|loader| library_of(Some(loader)) == library);
    let version = || provided_next_to(loader.as_deref()?);
    chosen(library, version, "cannot load the agent into programs of this machine")
}

fn agent_by_loader(loader: Option<PathBuf>, what: &str) -> Result<&'static Agent, Failure> {
    chosen(library_of(loader.as_deref()), || provided_next_to(loader.as_deref()?), what)
}

/// The C library of a dynamic loader. Where it is not known, the one that this tool was built with:
/// the runtime's own answer decides.
fn library_of(loader: Option<&Path>) -> CLibrary {
    let own = if cfg!(target_env = "musl") { CLibrary::Musl } else { CLibrary::Gnu };
    loader.and_then(CLibrary::of_file).unwrap_or(own)
}

/// The version of glibc that lies next to its dynamic loader.
fn provided_next_to(loader: &Path) -> Option<GlibcVersion> {
    GlibcVersion::provided_by(&loader.canonicalize().ok()?.with_file_name("libc.so.6"))
}

/// Returns the version of glibc of this machine's own programs.
pub(crate) fn provided_by_machine() -> Option<GlibcVersion> {
    provided_next_to(&named_loader(Path::new(SYSTEMS_OWN))?)
}

fn chosen(
    library: CLibrary,
    version: impl FnOnce() -> Option<GlibcVersion>,
    what: &str,
) -> Result<&'static Agent, Failure> {
    let refused = |(why, hint)| Failure::new(what, why, hint);
    let agent = match without_agent(library) {
        None => agent_for(library),
        Some(words) => return Err(refused(words)),
    };
    if library == CLibrary::Gnu
        && let Some(words) = version().zip(needed()).and_then(|(provided, needed)| obstacle(provided, needed))
    {
        return Err(refused(words));
    }
    agent.ok_or_else(|| Failure::new(what, "this clrscope has no agent", "use a published build"))
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
    fn programs_are_known_by_the_loader_that_they_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = std::fs::read("/proc/self/exe").expect("the test");
        let written = |name: &str, bytes: &[u8]| {
            let file = folder.path().join(name);
            std::fs::write(&file, bytes).expect("a file");
            file
        };
        let same = written("same", &own);
        let mut musl = own.clone();
        let at = musl.windows(11).position(|bytes| bytes == b"/ld-linux-x").expect("its loader's name");
        let start = musl[..at].iter().rposition(|&byte| byte == 0).expect("its beginning") + 1;
        let end = at + musl[at..].iter().position(|&byte| byte == 0).expect("its end");
        musl[start..end].fill(0);
        musl[start..start + 24].copy_from_slice(b"/lib/ld-musl-x86_64.so.1");
        let musl = written("musl", &musl);
        let script = written("script", format!("#! {} -x\n", musl.display()).as_bytes());
        let library = |program: &Path| library_of(loader_of(program).as_deref());
        assert_eq!([&same, &musl, &script].map(|path| library(path)), [CLibrary::Gnu, CLibrary::Musl, CLibrary::Musl]);
        // What names no loader counts as the system's own programs.
        let unknown = written("text", b"nothing of all that");
        assert_eq!(library(&unknown), of_machine());
        let by_name = named_loader(&written("by-name", b"#!/usr/bin/env sh\n"));
        assert!(by_name.is_some() && by_name == named_loader(Path::new("/bin/sh")), "{by_name:?}");
        let program = Program { executable: musl.into(), arguments: vec![], name: String::new() };
        let found = agent_of_program(&program);
        match agent_for(CLibrary::Musl) {
            Some(agent) => assert!(std::ptr::eq(found.expect("an agent"), agent)),
            None => {
                let said = found.expect_err("there is none").to_string();
                let why = "why: the C library is musl (Alpine Linux), and this clrscope has an agent for glibc only";
                assert!(said.contains(why) && said.contains("hint: use a published build"), "{said}");
            }
        }
    }

    #[test]
    fn the_version_of_a_program_is_that_next_to_its_loader() {
        let own = provided(&Process::open(std::process::id()).expect("this process"));
        let loader = named_loader(Path::new("/proc/self/exe")).expect("a loader");
        assert!(own.is_some() && provided_next_to(&loader) == own, "{own:?}");
        assert_eq!(provided_next_to(Path::new("/nowhere/ld.so")), None);
    }
}
