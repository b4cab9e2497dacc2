//! A file that gets its final name only when it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::writer::bounds::{Bound, leaves_reserve};

/// Maximum number of names tried for the temporary file.
const TRIES: u32 = 100;

/// Maximum length of a file name in bytes.
const LONGEST_NAME: usize = 255;
/// Bytes reserved in a draft's name for the text before and after the file's name.
const AROUND_NAME: usize = 32;
/// Ending of a draft's name.
const DRAFT: &str = ".part";

/// Prefix of the names of this process's drafts of the file `name`; a long name is shortened.
fn draft_prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(OsStr::from_bytes(&name.as_bytes()[..name.len().min(LONGEST_NAME - AROUND_NAME)]));
    prefix.push(format!(".{}-", std::process::id()));
    prefix
}

/// Whether `entry` is the name of a draft that this process made of the file `name`.
#[must_use]
pub fn is_draft(entry: &OsStr, name: &OsStr) -> bool {
    let bytes = entry.as_bytes();
    bytes.starts_with(draft_prefix(name).as_bytes()) && bytes.ends_with(DRAFT.as_bytes())
}

/// A file under a temporary name in the folder where it will stay. Dropping this value removes the
/// file.
#[derive(Debug)]
pub(super) struct NewFile {
    file: File,
    temporary: PathBuf,
    name: PathBuf,
    kept: bool,
    /// Bytes that `RLIMIT_FSIZE` permits: exceeding it would raise a signal that ends the process.
    room: u64,
}

impl NewFile {
    /// Creates a draft of the file `name`.
    pub(super) fn create(name: &Path) -> io::Result<Self> {
        let base = name.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        for attempt in 0..TRIES {
            let mut temporary = draft_prefix(base);
            temporary.push(format!("{attempt}{DRAFT}"));
            let temporary = name.with_file_name(temporary);
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary) {
                Ok(file) => {
                    let room = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
                    return Ok(Self {
                        file,
                        temporary,
                        name: name.to_owned(),
                        kept: false,
                        room: room.unwrap_or(u64::MAX),
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Flushes the file to disk and gives it its final name.
    pub(super) fn keep(mut self, overwrite: bool) -> io::Result<()> {
        self.file.sync_all()?;
        if overwrite {
            fs::rename(&self.temporary, &self.name)?;
        } else {
            self.name_anew()?;
        }
        self.kept = true;
        // The name must survive a power failure too; but a file system that can't guarantee this is
        // not an error.
        let folder = self.name.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let _ = File::open(folder).and_then(|folder| folder.sync_all());
        Ok(())
    }

    /// Gives the file its name unless the name exists, atomically if the file system supports that.
    fn name_anew(&self) -> io::Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, &self.temporary, CWD, &self.name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                if self.name.symlink_metadata().is_ok() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                fs::rename(&self.temporary, &self.name)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.room {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if !leaves_reserve(&self.temporary, bytes.len() as u64) {
            return Err(Bound::Reserve.error());
        }
        let written = self.file.write(bytes)?;
        self.room -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept {
            // Nothing more can be done about a file that can't be removed.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_of_names_as_long_as_names_may_be_have_room_for_theirs() {
        let folder = tempfile::tempdir().expect("a folder");
        for length in [1, 200, 240, 250, LONGEST_NAME] {
            let path = folder.path().join("n".repeat(length));
            let mut file = NewFile::create(&path).expect("a draft");
            let draft = file.temporary.file_name().expect("a name").to_owned();
            assert!(is_draft(&draft, path.file_name().expect("a name")), "{}", draft.display());
            file.write_all(b"content").expect("written");
            file.keep(false).expect("kept");
            assert_eq!(fs::read(&path).expect("the file"), b"content");
        }
    }
}
