//! One watch at a time: a lock that the system releases however the watch ends.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

use crate::errors::{EXIT_TAKEN, Failure, reason, shown};

/// The lock, while this value lives.
#[derive(Debug)]
pub(super) struct HostLock {
    _file: File,
}

impl HostLock {
    /// Takes the lock that this user has on this host, or the lock in the file that the user named.
    ///
    /// # Errors
    /// When another watch has it, and when the file can't be used.
    pub(super) fn take(given: Option<&Path>) -> Result<Self, Failure> {
        let path = given.map_or_else(usual, Path::to_owned);
        let cannot = |why: String| {
            let what = format!("cannot lock {}", shown(&path));
            Failure::new(what, why, "name another file with --lock")
        };
        let mut file = open_own(&path).map_err(|error| cannot(reason(&error)))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(taken(&mut file, &path)),
            Err(fs::TryLockError::Error(error)) => return Err(cannot(reason(&error))),
        }
        let noted = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        noted.map_err(|error| cannot(reason(&error)))?;
        Ok(Self { _file: file })
    }
}

/// The failure where another watch has the lock.
fn taken(file: &mut File, path: &Path) -> Failure {
    let mut text = String::new();
    // The other watch writes its number right after it took the lock.
    let _ = file.rewind().and_then(|()| file.take(32).read_to_string(&mut text));
    let (who, end) = match text.trim().parse::<u32>() {
        Ok(pid) => (format!("process {pid}"), format!("end that one: kill {pid}")),
        Err(_) => ("another process".to_owned(), "end that one".to_owned()),
    };
    let why = format!("{who} already watches, and holds the lock {}", shown(path));
    let hint = format!("{end}; or name another lock with --lock, to watch other programs");
    Failure::new("cannot watch this host", why, hint).with_code(EXIT_TAKEN)
}

/// Opens the file, which must belong to this user: in a folder for all users another one may have
/// taken its name.
fn open_own(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::RUSR | Mode::WUSR)?);
    let about = file.metadata()?;
    if !about.is_file() || about.uid() != own_user() {
        return Err(io::Error::other("it belongs to another user, or is not a file"));
    }
    Ok(file)
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The usual file: the same for every process of this user on this host, whatever its environment
/// says.
fn usual() -> PathBuf {
    let user = own_user();
    if user == 0 {
        let folder = Path::new("/run/clrscope");
        let made = DirBuilder::new().mode(0o755).create(folder);
        if made.is_ok() || folder.is_dir() {
            return folder.join("watch.lock");
        }
    }
    let of_user = PathBuf::from(format!("/run/user/{user}"));
    match fs::metadata(&of_user).is_ok_and(|about| about.is_dir() && about.uid() == user) {
        true => of_user.join("clrscope-watch.lock"),
        false => PathBuf::from(format!("/tmp/clrscope-watch-{user}.lock")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_of_the_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        let first = HostLock::take(Some(&path)).expect("it is free");
        let failure = HostLock::take(Some(&path)).expect_err("it is taken");
        let own = format!("process {} already watches", std::process::id());
        assert!(failure.code() == EXIT_TAKEN && failure.why().starts_with(&own), "{failure}");
        drop(first);
        HostLock::take(Some(&path)).expect("it is free again");
        std::os::unix::fs::symlink(&path, folder.path().join("link")).expect("a link");
        assert!(HostLock::take(Some(&folder.path().join("link"))).is_err());
        assert!(HostLock::take(Some(folder.path())).is_err());
    }
}
