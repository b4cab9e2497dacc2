//! The agents as files: the tool writes one into a private cache folder, and checks it. It carries
//! one for each C library that it can serve.
//!
//! The runtime loads this file into the user's program, so no other user may be able to change it.
//! The folders above it must belong to the user or to root and must not be writable for others (a
//! sticky folder such as `/tmp` is fine), and the file's bytes are compared with ours at every use.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use clrscope_contract::trust::{self, Who};
use clrscope_symbols::CLibrary;
use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::agent_cache;
use crate::dotnet::find::cache_folder;
use crate::errors::{Failure, reason, shown};

/// An agent, embedded in the tool at build time.
#[derive(Debug)]
pub(crate) struct Agent {
    /// The C library that the agent is linked with: no other can load it.
    pub(crate) c_library: CLibrary,
    /// Hash of the bytes.
    pub(crate) hash: &'static str,
    /// Bytes of the agent's file.
    pub(crate) bytes: &'static [u8],
}

/// All agents of this tool.
pub(crate) static AGENTS: &[Agent] = include!(concat!(env!("OUT_DIR"), "/agents.rs"));

/// Name of the agent's file.
pub(crate) const LIBRARY: &str = clrscope_contract::AGENT_LIBRARY;

/// Writes an agent to a place where the runtime can load it, and returns the path. Fast if the file
/// exists already.
///
/// With `trust_writable`, folders that others can write are accepted.
///
/// # Errors
/// When no folder can be used, or when others could change the file.
pub(crate) fn install(agent: &Agent, trust_writable: bool) -> Result<PathBuf, Failure> {
    let check = if trust_writable { accept } else { check_folders };
    match cache_folder().map(|root| install_in(agent, &root, check)) {
        Some(Ok(path)) => Ok(path),
        Some(Err(FolderRefusal::Unsafe(failure))) => Err(failure),
        Some(Err(FolderRefusal::Unusable(_))) | None => install_in_temp(agent, check),
    }
}

/// As [`install`], for a path that is stored somewhere: no later version removes the file.
///
/// # Errors
/// As [`install`], and when the folder can't be marked.
pub(crate) fn install_for_ever(agent: &Agent, trust_writable: bool) -> Result<PathBuf, Failure> {
    let file = install(agent, trust_writable)?;
    let marked = file.parent().map_or(Ok(()), agent_cache::keep);
    marked.map(|()| file.clone()).map_err(|e| {
        let hint = "set XDG_CACHE_HOME to your own folder on a disk with free space";
        Failure::new(format!("cannot keep the agent {}", shown(&file)), reason(&e), hint)
    })
}

/// Writes the agent into a folder of the caller's choice, where every user can read it and only the
/// owner can change it.
///
/// # Errors
/// When the folder can't be made or written, or others could change it, unless `trust_writable`
/// says that this is fine.
pub(crate) fn install_for_all(agent: &Agent, folder: &Path, trust_writable: bool) -> Result<PathBuf, Failure> {
    let failed = |error: io::Error| {
        let what = format!("cannot put the agent into {}", shown(folder));
        Failure::new(what, reason(&error), "name a writable folder with --install")
    };
    fs::DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(failed)?;
    let folder = fs::canonicalize(folder).map_err(failed)?;
    if !trust_writable {
        check_folders(&folder)?;
    }
    let file = folder.join(LIBRARY);
    let is_there = fs::symlink_metadata(&file).is_ok_and(|m| m.is_file() && m.mode() & 0o777 == 0o555)
        && fs::read(&file).is_ok_and(|bytes| bytes == agent.bytes);
    if !is_there {
        write_atomically(agent, &folder, &file).map_err(failed)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o555)).map_err(failed)?;
    }
    Ok(file)
}

/// Check of the folders above the agent.
type Check = fn(&Path) -> Result<(), Failure>;

fn accept(_path: &Path) -> Result<(), Failure> {
    Ok(())
}

enum FolderRefusal {
    /// Files can't be written or loaded there; another folder may work.
    Unusable(Failure),
    /// Others can write there; silently using another folder would hide the danger.
    Unsafe(Failure),
}

/// Installs into a temporary folder named after the user, so that a second run finds the file of
/// the first.
fn install_in_temp(agent: &Agent, check: Check) -> Result<PathBuf, Failure> {
    let name = format!("clrscope-{}", rustix::process::geteuid().as_raw());
    install_in(agent, &std::env::temp_dir().join(name), check)
        .map_err(|(FolderRefusal::Unusable(failure) | FolderRefusal::Unsafe(failure))| failure)
}

fn install_in(agent: &Agent, root: &Path, check: Check) -> Result<PathBuf, FolderRefusal> {
    if root.as_os_str().as_encoded_bytes().contains(&b'\\') {
        return Err(unusable(root, "the runtime reads the '\\' in its path as '/'"));
    }
    let folder = agent_cache::folder_in_use(root, agent.hash).map_err(|e| unusable(root, &reason(&e)))?;
    check(&folder).map_err(FolderRefusal::Unsafe)?;
    if statvfs(&folder).is_ok_and(|s| s.f_flag.contains(StatVfsMountFlags::NOEXEC)) {
        return Err(unusable(&folder, "its file system does not allow programs (mounted noexec)"));
    }
    let file = folder.join(LIBRARY);
    if !is_ours(agent, &file) {
        write_atomically(agent, &folder, &file).map_err(|e| unusable(&folder, &reason(&e)))?;
        agent_cache::remove_unused(root, LIBRARY);
    }
    Ok(file)
}

fn unusable(folder: &Path, why: &str) -> FolderRefusal {
    FolderRefusal::Unusable(Failure::new(
        format!("cannot put the agent into {}", shown(folder)),
        why,
        "set XDG_CACHE_HOME to your own folder on a disk with free space",
    ))
}

/// Whether the file exists with the agent's bytes, and only its owner can change it.
fn is_ours(agent: &Agent, file: &Path) -> bool {
    let closed = fs::symlink_metadata(file).is_ok_and(|m| m.is_file() && owned(&m) && m.mode() & 0o777 == 0o500);
    closed && fs::read(file).is_ok_and(|bytes| bytes == agent.bytes)
}

/// Writes the file atomically: a loader sees either no file or the whole file, even if two runs
/// start at once.
fn write_atomically(agent: &Agent, folder: &Path, file: &Path) -> io::Result<()> {
    let draft = folder.join(format!(".{LIBRARY}.{}", std::process::id()));
    let written = write_draft(agent, &draft).and_then(|()| fs::rename(&draft, file));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

fn write_draft(agent: &Agent, draft: &Path) -> io::Result<()> {
    let _ = fs::remove_file(draft);
    let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    out.write_all(agent.bytes)?;
    out.set_permissions(fs::Permissions::from_mode(0o500))
}

fn owned(metadata: &fs::Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

/// Refuses a path if others could change a part of it, by the same rule as the agent itself.
///
/// # Errors
/// The error names the folder, the users who can change it, and the command that fixes it.
fn check_folders(path: &Path) -> Result<(), Failure> {
    trust::check_with_folders(path).map_err(|weakness| {
        let cure = match weakness.who {
            Who::Others => format!("chmod go-w {}, or ", shown(&weakness.path)),
            Who::Owner => String::new(),
        };
        Failure::new(
            format!("will not load the agent from {}", shown(path)),
            format!("{} {}", shown(&weakness.path), weakness.who),
            format!("{cure}set XDG_CACHE_HOME to a folder that only you can write"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(parent: &Path, name: &str, mode: u32) -> PathBuf {
        let path = parent.join(name);
        fs::create_dir(&path).expect("a folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
        path
    }

    fn installed(root: &Path) -> PathBuf {
        match install_in(&AGENTS[0], root, check_folders) {
            Ok(path) => path,
            Err(FolderRefusal::Unusable(failure) | FolderRefusal::Unsafe(failure)) => panic!("{failure}"),
        }
    }

    #[test]
    fn the_file_is_ours_and_private() {
        let temp = tempfile::tempdir().expect("a folder");
        let file = installed(&temp.path().join("deep/cache"));
        assert_eq!(fs::read(&file).expect("the agent"), AGENTS[0].bytes);
        assert_eq!(fs::metadata(&file).expect("the agent").mode() & 0o777, 0o500);
        let parent = file.parent().expect("a folder");
        assert_eq!(fs::metadata(parent).expect("its folder").mode() & 0o777, 0o700);
        assert!(parent.ends_with(format!("agent-{}", AGENTS[0].hash)));
    }

    #[test]
    fn each_agent_is_linked_with_the_library_that_it_is_for() {
        for agent in AGENTS {
            assert_eq!(CLibrary::needed_by(agent.bytes), Some(agent.c_library));
        }
        let libraries: std::collections::BTreeSet<_> = AGENTS.iter().map(|agent| agent.c_library).collect();
        assert!(!libraries.is_empty() && libraries.len() == AGENTS.len(), "{libraries:?}");
    }

    #[test]
    fn a_changed_file_is_replaced_and_a_good_one_is_kept() {
        let temp = tempfile::tempdir().expect("a folder");
        let file = installed(temp.path());
        let first = fs::metadata(&file).expect("the agent").ino();
        assert_eq!(fs::metadata(installed(temp.path())).expect("the agent").ino(), first);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).expect("its mode");
        fs::write(&file, b"something else").expect("a write");
        assert_eq!(fs::read(installed(temp.path())).expect("the agent"), AGENTS[0].bytes);
        let files = fs::read_dir(file.parent().expect("a folder")).expect("a listing").count();
        assert_eq!(files, 1, "no draft stays behind");
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        let temp = tempfile::tempdir().expect("a folder");
        let open = folder(temp.path(), "open", 0o777);
        match install_in(&AGENTS[0], &open, check_folders) {
            Err(FolderRefusal::Unsafe(failure)) => {
                let text = failure.to_string();
                assert!(text.contains("can be written by others") && text.contains("hint: chmod go-w"), "{text}");
            }
            _ => panic!("an open folder was accepted"),
        }
    }

    #[test]
    fn a_sticky_folder_above_is_fine() {
        let temp = tempfile::tempdir().expect("a folder");
        let sticky = folder(temp.path(), "sticky", 0o1777);
        installed(&sticky.join("mine"));
    }
}
