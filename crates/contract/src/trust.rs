//! Trust in files: whether other users could change them. A file that is loaded into a user's
//! process, or that controls it, must be safe from other users.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file or folder that other users could change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weakness {
    /// The file or folder.
    pub path: PathBuf,
    /// Which users could change it.
    pub who: Who,
}

/// Users who could change a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Another user than root owns the file.
    Owner,
    /// Other users, by the file mode.
    Others,
}

impl fmt::Display for Who {
    /// Text that follows the path: `can be written by others`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Owner => "belongs to another user",
            Self::Others => "can be written by others",
        })
    }
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path.display(), self.who)
    }
}

/// Checks one file or folder: it must belong to this user or to root, and no other user may have
/// write access. A sticky folder such as `/tmp` is accepted: only the owner of a file can replace
/// it there. A path that can't be examined is accepted; opening it will report the error.
///
/// # Errors
/// How other users can change the file or folder.
pub fn check(path: &Path) -> Result<(), Weakness> {
    let Ok(meta) = std::fs::metadata(path) else { return Ok(()) };
    let weakness = |who| Err(Weakness { path: path.to_owned(), who });
    let me = rustix::process::geteuid().as_raw();
    if meta.uid() != me && meta.uid() != 0 {
        return weakness(Who::Owner);
    }
    let sticky = meta.is_dir() && meta.mode() & libc::S_ISVTX != 0;
    if meta.mode() & 0o022 != 0 && !sticky && !group_is_own(&meta) {
        return weakness(Who::Others);
    }
    Ok(())
}

/// Checks a file and every folder above it: a user with write access to one of the folders can
/// replace the file.
///
/// # Errors
/// The first path that other users can change.
pub fn check_with_folders(file: &Path) -> Result<(), Weakness> {
    let target = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    target.ancestors().try_for_each(check)?;
    // A user with write access to a symbolic link's folder decides where the link leads.
    file.ancestors().filter(|path| path.is_absolute()).try_for_each(check)
}

/// A group write bit is harmless where the group is the user's own or root's.
fn group_is_own(meta: &std::fs::Metadata) -> bool {
    let only_group = meta.mode() & 0o002 == 0;
    only_group && (meta.gid() == 0 || meta.gid() == meta.uid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_as_safe_as_the_folders_above_it() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = fs::canonicalize(temp.path()).expect("the folder").join("open");
        fs::create_dir(&folder).expect("a folder");
        let file = folder.join("file");
        fs::write(&file, "").expect("a file");
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        mode(&file, 0o644);
        assert_eq!(check_with_folders(&file), Ok(()));
        mode(&folder, 0o777);
        let open = |path: &Path| Err(Weakness { path: path.to_owned(), who: Who::Others });
        assert_eq!(check_with_folders(&file), open(&folder));
        assert_eq!(check(&file), Ok(()), "the file itself is safe");
        mode(&folder, 0o1777);
        assert_eq!(check_with_folders(&file), Ok(()), "sticky");
        mode(&file, 0o666);
        assert_eq!(check_with_folders(&file), open(&file));
    }
}
