//! Changes of several files that take effect together: new files are written under hidden names, a
//! list says what is to be done, and only then files are renamed and removed. If the process is
//! killed, the next process completes the change if the list exists, and otherwise removes the new
//! files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Name of the list.
const LIST: &str = "_commit";
/// Last line of a complete list.
const END: &str = "end";

/// A change that is being prepared.
pub(super) struct Commit {
    folder: PathBuf,
    mode: u32,
    new: Vec<PathBuf>,
    old: Vec<PathBuf>,
}

impl Commit {
    pub(super) fn new(folder: &Path, mode: u32) -> Self {
        Self { folder: folder.to_owned(), mode, new: Vec::new(), old: Vec::new() }
    }

    /// Writes a file under its hidden name; `file` is the final path, relative to the folder.
    pub(super) fn stage(&mut self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        let place = self.folder.join(file);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        write(&staged(&place), bytes, self.mode)?;
        self.new.push(file.to_owned());
        Ok(())
    }

    /// Notes a file to be removed.
    pub(super) fn remove(&mut self, file: &Path) {
        self.old.push(file.to_owned());
    }

    /// Makes the change. On an error, also returns the file concerned.
    pub(super) fn perform(self) -> Result<(), (PathBuf, io::Error)> {
        let list = self.folder.join(LIST);
        let line = |word: &str, file: &PathBuf| format!("{word} {}\n", file.display());
        // A file that stays under its name is not old.
        let old = self.old.iter().filter(|file| !self.new.contains(file)).map(|file| line("old", file));
        let text: String = self.new.iter().map(|file| line("new", file)).chain(old).collect();
        let hidden = staged(&list);
        write(&hidden, format!("{text}{END}\n").as_bytes(), self.mode).map_err(|error| (hidden.clone(), error))?;
        fs::rename(&hidden, &list).map_err(|error| (list.clone(), error))?;
        apply(&self.folder).map_err(|error| (self.folder.clone(), error))
    }
}

/// Completes a change that was listed, and removes files that were only prepared.
pub(super) fn recover(folder: &Path) -> io::Result<()> {
    apply(folder)?;
    remove_staged(folder)
}

/// Does what the list says, as far as it is not done, and removes the list.
fn apply(folder: &Path) -> io::Result<()> {
    let list = folder.join(LIST);
    let text = match fs::read_to_string(&list) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // The list has its name only when it is complete.
    for line in text.lines().filter(|line| *line != END) {
        let Some((word, file)) = line.split_once(' ') else { continue };
        let place = folder.join(file);
        let done = if word == "new" { fs::rename(staged(&place), &place) } else { fs::remove_file(&place) };
        match done {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_file(list)
}

fn remove_staged(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            remove_staged(&path)?;
        } else if path.extension().is_some_and(|ending| ending == "staged") {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The hidden name of a file.
fn staged(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!(".{name}.staged"))
}

/// Opens a file for writing; creates the file if it does not exist.
pub(super) fn create(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(mode).open(path)
}

/// Writes a file and waits until it is on the disk.
pub(super) fn write(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_change_that_was_cut_off_is_completed_or_undone() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path();
        fs::write(folder.join("old.parquet"), "1").expect("a file");
        // Nothing was listed: the file that was prepared is removed.
        let mut commit = Commit::new(folder, 0o600);
        commit.stage(Path::new("a/new.parquet"), b"2").expect("staged");
        drop(commit);
        recover(folder).expect("recovered");
        assert_eq!((names(folder), names(&folder.join("a"))), (vec!["a".into(), "old.parquet".into()], Vec::new()));
        // It was listed, and half of it was done.
        let mut commit = Commit::new(folder, 0o600);
        for name in ["a/b.parquet", "a/c.parquet"] {
            commit.stage(Path::new(name), b"3").expect("staged");
        }
        fs::rename(folder.join("a/.b.parquet.staged"), folder.join("a/b.parquet")).expect("renamed");
        fs::write(folder.join(LIST), "new a/b.parquet\nnew a/c.parquet\nold old.parquet\nend\n").expect("a list");
        recover(folder).expect("recovered");
        assert_eq!(
            (names(folder), names(&folder.join("a"))),
            (vec!["a".into()], vec!["b.parquet".into(), "c.parquet".into()])
        );
        // As a whole, with a file that is replaced.
        let mut commit = Commit::new(folder, 0o600);
        commit.stage(Path::new("a/b.parquet"), b"4").expect("staged");
        commit.remove(Path::new("a/b.parquet"));
        commit.remove(Path::new("a/c.parquet"));
        commit.perform().expect("done");
        assert_eq!(names(&folder.join("a")), ["b.parquet"]);
        assert_eq!(fs::read(folder.join("a/b.parquet")).expect("a file"), b"4");
    }
}
