//! Place of agent and recording for a process with another root, other mounts or other rights than
//! ours.
//!
//! Both are put into a folder of ours inside a temporary folder of the process. Our folder belongs
//! to the user of the process, because the agent trusts only its user's own files. The process is
//! not trusted: links and pipes that it could place there are not followed, and all work goes
//! through descriptors of folders that were created or checked. The descriptors stay usable when
//! the process, and with it `/proc/PID/root`, is gone.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clr_diagnostics::Process;
use rustix::fs::{
    AtFlags, Dir, Gid, Mode, OFlags, ResolveFlags, StatVfsMountFlags, Uid, fchmod, fchown, fstatvfs, mkdirat, open,
    openat, openat2, renameat, statat, unlinkat,
};
use rustix::rand::{GetRandomFlags, getrandom};

use super::powers;
use crate::agent_file::{Agent, LIBRARY};
use crate::errors::{Failure, reason};

/// A folder for one recording, in the file system that the process sees.
#[derive(Debug)]
pub(super) struct ForeignPlace {
    /// Path of the agent's file, as the process sees it.
    pub(super) agent: String,
    /// Path of the folder of the recording's directory, as the process sees it.
    pub(super) seen: String,
    /// Path of the same folder, as this process reaches it.
    pub(super) ours: PathBuf,
    base: OwnedFd,
    name: String,
    /// Keeps the folder reachable.
    _folder: OwnedFd,
    owner: (Uid, Gid),
}

impl ForeignPlace {
    /// Writes the agent's file and creates the folder.
    ///
    /// # Errors
    /// When none of the folders for temporary files can be used.
    pub(super) fn make(process: &Process, agent: &Agent) -> Result<Self, Failure> {
        let mut tried = Vec::new();
        let given = process.temporary_folder().unwrap_or_else(|_| PathBuf::from("/tmp"));
        for folder in [given.as_path(), Path::new("/tmp"), Path::new("/var/tmp"), Path::new("/dev/shm")] {
            match Self::make_in(process, agent, folder) {
                Ok(place) => return Ok(place),
                Err(error) => tried.push(format!("{}: {}", folder.display(), reason(&error))),
            }
        }
        tried.dedup();
        let what = format!("cannot put the agent where process {} can load it", process.pid());
        let hint = powers::as_whom(process).unwrap_or_else(|| {
            "give the process a writable folder for temporary files that is not mounted noexec".to_owned()
        });
        Err(Failure::new(what, tried.join("; "), hint))
    }

    fn make_in(process: &Process, agent: &Agent, folder: &Path) -> io::Result<Self> {
        let seen = folder.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        let root = open(process.root(), OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        // Links are resolved as for the process, and never lead outside its root.
        let temporary = openat2(&root, folder, flags, Mode::empty(), ResolveFlags::IN_ROOT)?;
        if fstatvfs(&temporary)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
            return Err(io::Error::other("mounted noexec"));
        }
        let owner = (Uid::from_raw(process.uid()), Gid::from_raw(process.gid()));
        let (base, base_name) = base_folder(&temporary, &format!("clrscope-attach-{}", process.uid()), owner)?;
        let agent_name = format!("agent-{}", agent.hash);
        put_agent(agent, &own_folder(&base, &agent_name, owner)?, owner)?;
        let name = format!("{}-{}", process.inner_pid(), std::process::id());
        let made = own_folder(&base, &name, owner)?;
        Ok(Self {
            agent: format!("{seen}/{base_name}/{agent_name}/{LIBRARY}"),
            seen: format!("{seen}/{base_name}/{name}"),
            ours: PathBuf::from(format!("/proc/self/fd/{}", made.as_raw_fd())),
            base,
            name,
            _folder: made,
            owner,
        })
    }

    /// Makes the user of the process the owner of a file that we created in the folder.
    ///
    /// # Errors
    /// Errors of the system.
    pub(super) fn give(&self, path: &Path) -> io::Result<()> {
        let file = open(path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        Ok(fchown(&file, Some(self.owner.0), Some(self.owner.1))?)
    }
}

impl Drop for ForeignPlace {
    fn drop(&mut self) {
        // The folder is removed only if it is empty: a recording that could not be packed stays.
        // The agent's file stays for the next attach.
        let _ = unlinkat(&self.base, &self.name, AtFlags::REMOVEDIR);
    }
}

/// The folder for all attaches to processes of `owner`, and its name. If another user has taken the
/// usual name, which we can't remove in a sticky folder, it is an alternative folder that was
/// created earlier, or a new one with an unpredictable name.
fn base_folder(parent: &OwnedFd, usual: &str, owner: (Uid, Gid)) -> io::Result<(OwnedFd, String)> {
    let refused = match own_folder(parent, usual, owner) {
        Ok(folder) => return Ok((folder, usual.to_owned())),
        Err(error) => error,
    };
    let owner_of = |name: &str| statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|there| there.st_uid);
    // Nothing can be created there under any name.
    if owner_of(usual).is_none() {
        return Err(refused);
    }
    let prefix = format!("{usual}-");
    let names =
        Dir::read_from(parent)?.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
    let known = names.filter(|name| name.starts_with(&prefix) && owner_of(name) == Some(owner.0.as_raw()));
    if let Some(found) = known.filter_map(|name| Some((own_folder(parent, &name, owner).ok()?, name))).next() {
        return Ok(found);
    }
    let mut word = [0; 8];
    getrandom(&mut word, GetRandomFlags::empty())?;
    let name = format!("{prefix}{:016x}", u64::from_ne_bytes(word));
    Ok((own_folder(parent, &name, owner)?, name))
}

/// A folder that belongs to `owner` alone; created if it is missing.
fn own_folder(parent: impl AsFd, name: &str, owner: (Uid, Gid)) -> io::Result<OwnedFd> {
    let is_new = match mkdirat(&parent, name, Mode::RWXU) {
        Ok(()) => true,
        Err(rustix::io::Errno::EXIST) => false,
        Err(error) => return Err(error.into()),
    };
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(&parent, name, flags, Mode::empty())?;
    if is_new {
        fchown(&folder, Some(owner.0), Some(owner.1))?;
    }
    let there = File::from(folder.try_clone()?).metadata()?;
    if there.uid() != owner.0.as_raw() || there.mode() & 0o077 != 0 {
        return Err(io::Error::other(format!("{name} there belongs to another user, or others can enter it")));
    }
    Ok(folder)
}

/// Writes the agent's file, unless it exists with its bytes.
fn put_agent(agent: &Agent, folder: &OwnedFd, owner: (Uid, Gid)) -> io::Result<()> {
    if is_ours(agent, folder, owner).unwrap_or(false) {
        return Ok(());
    }
    let draft = format!(".{LIBRARY}.{}", std::process::id());
    let written =
        write_draft(agent, folder, &draft, owner).and_then(|()| Ok(renameat(folder, &draft, folder, LIBRARY)?));
    if written.is_err() {
        let _ = unlinkat(folder, &draft, AtFlags::empty());
    }
    written
}

fn is_ours(agent: &Agent, folder: &OwnedFd, owner: (Uid, Gid)) -> io::Result<bool> {
    // Something other than a file is opened without blocking, and refused.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, LIBRARY, flags, Mode::empty())?);
    let there = file.metadata()?;
    if !there.is_file() || there.uid() != owner.0.as_raw() || there.mode() & 0o777 != 0o500 {
        return Ok(false);
    }
    let mut bytes = Vec::new();
    file.take(agent.bytes.len() as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes == agent.bytes)
}

fn write_draft(agent: &Agent, folder: &OwnedFd, draft: &str, owner: (Uid, Gid)) -> io::Result<()> {
    let _ = unlinkat(folder, draft, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, draft, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(agent.bytes)?;
    fchown(&file, Some(owner.0), Some(owner.1))?;
    Ok(fchmod(&file, Mode::RUSR | Mode::XUSR)?)
}
