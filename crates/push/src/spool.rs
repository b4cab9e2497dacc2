//! The spool: parcels on disk that wait for their receivers.
//!
//! A parcel is a file: a line of JSON, then the profiles. The file gets its name when it is
//! complete, and is removed when the receiver has answered. Names are times, so that the oldest
//! parcel comes first. A process that sends a parcel holds a lock on the file. Several processes
//! can use one spool.

use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use clrscope_contract::trust::check;

use crate::outcome::Tally;
use crate::parcel::{Label, Parcel};

/// Ending of the files.
const ENDING: &str = ".parcel";
/// Beginning of the names of incomplete files.
const DRAFT: &str = ".draft-";
/// File whose lock orders changes of the spool's size.
const LOCK: &str = "lock";
/// File with what was dropped since the spool exists.
const LOST: &str = "lost.json";
/// Longest line of JSON.
const LONGEST_LINE: u64 = 1 << 20;

/// A folder of parcels, with a limit on its size.
#[derive(Debug, Clone)]
pub struct Spool {
    folder: PathBuf,
    /// Most bytes of all parcels.
    bound: u64,
}

/// A parcel in the spool. No other process sends the parcel as long as this value lives.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) path: PathBuf,
    pub(crate) parcel: Parcel,
    /// Has the lock.
    _file: File,
}

impl Spool {
    /// Opens the spool in a folder. If the folder does not exist, it is made, for this user only.
    ///
    /// # Errors
    /// When the folder can't be made or written.
    pub fn open(folder: &Path, bound: u64) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // Who can write there could have us send anything.
        check(folder).map_err(|weakness| io::Error::other(format!("the folder {}", weakness.who)))?;
        let spool = Self { folder: folder.to_owned(), bound };
        let _lock = spool.lock()?;
        // What a killed process left: no process holds it.
        for entry in fs::read_dir(folder)?.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(DRAFT.as_bytes()) {
                let file = File::open(entry.path());
                if file.is_ok_and(|file| file.try_lock().is_ok()) {
                    fs::remove_file(entry.path())?;
                }
            }
        }
        Ok(spool)
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn lock(&self) -> io::Result<File> {
        let lock = File::options().create(true).append(true).mode(0o600).open(self.folder.join(LOCK))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Puts a parcel into the spool. Returns what was dropped to keep the size limit: the oldest
    /// parcels, or the parcel itself if it alone exceeds the limit.
    ///
    /// # Errors
    /// If the disk does not accept the parcel.
    pub(crate) fn put(&self, parcel: &Parcel) -> io::Result<Tally> {
        let _lock = self.lock()?;
        let (draft, file) = self.draft(parcel)?;
        let size = file.metadata()?.len();
        let dropped = self.make_room(size)?;
        if size > self.bound {
            self.note_lost(parcel.tally())?;
            fs::remove_file(draft)?;
            let mut all = dropped;
            all += parcel.tally();
            return Ok(all);
        }
        fs::rename(draft, self.folder.join(format!("{}{ENDING}", new_name())))?;
        Ok(dropped)
    }

    /// Replaces a parcel by parts of it, which keep the parcel's place in the order. Returns the
    /// paths of the parts.
    ///
    /// # Errors
    /// If the disk does not accept the parts; the spool then still has the parcel.
    pub(crate) fn replace(&self, held: &Held, parts: &[Parcel]) -> io::Result<Vec<PathBuf>> {
        let _lock = self.lock()?;
        let drafts = parts.iter().map(|part| self.draft(part)).collect::<io::Result<Vec<_>>>()?;
        let name = held.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let first = name.split('.').next().unwrap_or_default();
        // The first part comes last: it takes the place of the whole.
        let mut paths = vec![held.path.clone()];
        for (draft, _) in drafts.iter().skip(1) {
            // A part can be divided again, and each of its parts has a name of its own.
            let path = self.folder.join(format!("{first}.{}{ENDING}", new_name()));
            fs::rename(draft, &path)?;
            paths.push(path);
        }
        if let Some((draft, _)) = drafts.first() {
            fs::rename(draft, &held.path)?;
        }
        Ok(paths)
    }

    /// Removes a parcel because its receiver has answered.
    ///
    /// # Errors
    /// When the file can't be removed.
    pub(crate) fn remove(&self, held: &Held) -> io::Result<()> {
        fs::remove_file(&held.path)
    }

    /// Paths of all parcels, the oldest first.
    pub(crate) fn paths(&self) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.folder)?.flatten().map(|entry| entry.path());
        let is_parcel = |path: &PathBuf| path.to_string_lossy().ends_with(ENDING);
        let mut paths: Vec<PathBuf> = entries.filter(is_parcel).collect();
        paths.sort();
        Ok(paths)
    }

    /// Description and size of a parcel; `None` if the parcel no longer exists or was not made by
    /// this crate.
    pub(crate) fn label(&self, path: &Path) -> Option<(Label, u64)> {
        let file = File::open(path).ok()?;
        let bytes = file.metadata().ok()?.len();
        let mut line = Vec::new();
        BufReader::new(file).take(LONGEST_LINE).read_until(b'\n', &mut line).ok()?;
        let label = serde_json::from_slice(&line).ok()?;
        Some((label, bytes.saturating_sub(line.len() as u64)))
    }

    /// Locks a parcel for sending; `None` if the parcel no longer exists, another process sends it,
    /// or it was not made by this crate.
    pub(crate) fn hold(&self, path: &Path) -> Option<Held> {
        let file = File::open(path).ok()?;
        file.try_lock().ok()?;
        // Another process may have sent it before the lock.
        if !path.exists() {
            return None;
        }
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line).ok()?;
        let label = serde_json::from_slice(&line).ok()?;
        let mut body = Vec::new();
        reader.read_to_end(&mut body).ok()?;
        Some(Held { path: path.to_owned(), parcel: Parcel { label, body }, _file: file })
    }

    /// What was ever dropped from the spool.
    #[must_use]
    pub fn lost_ever(&self) -> Tally {
        let text = fs::read(self.folder.join(LOST)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// A complete file under a temporary name, on disk. The lock on it lasts as long as the file is
    /// open.
    fn draft(&self, parcel: &Parcel) -> io::Result<(PathBuf, File)> {
        let path = self.folder.join(format!("{DRAFT}{}", new_name()));
        let mut file = File::options().create_new(true).write(true).mode(0o600).open(&path)?;
        file.lock()?;
        let mut head = serde_json::to_vec(&parcel.label)?;
        head.push(b'\n');
        let written = file.write_all(&head).and_then(|()| file.write_all(&parcel.body)).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // A full disk: what is there would only take room.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok((path, file))
    }

    /// Drops the oldest parcels until there is room, except those that a process is sending.
    fn make_room(&self, bytes: u64) -> io::Result<Tally> {
        let paths = self.paths()?;
        let size = |path: &PathBuf| fs::metadata(path).map_or(0, |found| found.len());
        let mut total: u64 = paths.iter().map(size).fold(bytes, u64::saturating_add);
        let mut dropped = Tally::default();
        for path in &paths {
            if total <= self.bound || bytes > self.bound {
                break;
            }
            let size = size(path);
            let Some(file) = File::open(path).ok().filter(|file| file.try_lock().is_ok()) else { continue };
            let lost = self
                .label(path)
                .map_or(Tally { requests: 1, bytes: size, ..Tally::default() }, |(of, bytes)| of.tally(bytes));
            // Counted first: a kill in between must not hide a loss.
            self.note_lost(lost)?;
            fs::remove_file(path)?;
            drop(file);
            total = total.saturating_sub(size);
            dropped += lost;
        }
        Ok(dropped)
    }

    /// Adds `lost` to what was ever dropped from the spool.
    pub(crate) fn note_lost(&self, lost: Tally) -> io::Result<()> {
        let mut all = self.lost_ever();
        all += lost;
        let draft = self.folder.join(format!("{DRAFT}{}", new_name()));
        fs::write(&draft, serde_json::to_vec(&all)?)?;
        fs::rename(draft, self.folder.join(LOST))
    }
}

/// A name that no other file of the spool has: the time, the process and a number.
fn new_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{time:020}-{}-{:06}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel(name: &str, bytes: usize) -> Parcel {
        let label = Label { to: "otlp=http://a".to_owned(), name: name.to_owned(), samples: 3, ..Label::default() };
        Parcel { label, body: vec![7; bytes] }
    }

    fn names(spool: &Spool) -> Vec<String> {
        let paths = spool.paths().expect("a folder");
        paths.iter().filter_map(|path| Some(spool.label(path)?.0.name)).collect()
    }

    #[test]
    fn the_oldest_go_when_there_is_no_room_and_are_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path(), 5_000).expect("a spool");
        for name in ["a", "b", "c"] {
            assert_eq!(spool.put(&parcel(name, 1_000)).expect("room"), Tally::default());
        }
        let paths = spool.paths().expect("a folder");
        let held = spool.hold(&paths[0]).expect("it is there");
        assert!(spool.hold(&paths[0]).is_none(), "one sends it");
        let lost = spool.put(&parcel("d", 3_000)).expect("room");
        assert_eq!(lost, Tally { requests: 2, profiles: 0, samples: 6, bytes: 2_000 });
        assert_eq!(names(&spool), ["a", "d"], "what is being sent stays");
        spool.remove(&held).expect("it goes");
        // Larger than the spool: it alone is lost.
        assert_eq!(spool.put(&parcel("e", 9_000)).expect("counted").bytes, 9_000);
        assert_eq!(names(&spool), ["d"]);
        let again = Spool::open(folder.path(), 5_000).expect("a spool");
        assert_eq!(again.lost_ever(), Tally { requests: 3, profiles: 0, samples: 9, bytes: 11_000 });
    }

    #[test]
    fn parts_take_the_place_of_the_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Spool::open(folder.path(), 1 << 20).expect("a spool");
        for name in ["a", "b"] {
            spool.put(&parcel(name, 10)).expect("room");
        }
        let held = spool.hold(&spool.paths().expect("a folder")[0]).expect("it is there");
        assert_eq!(held.parcel, parcel("a", 10));
        let held_path = held.path.clone();
        spool.replace(&held, &["a1", "a2", "a3"].map(|name| parcel(name, 3))).expect("parts");
        drop(held);
        let mut found = names(&spool);
        assert_eq!(found.pop().as_deref(), Some("b"));
        found.sort();
        assert_eq!(found, ["a1", "a2", "a3"]);
        // The first part again, which has the name of the whole.
        let held = spool.hold(&held_path).expect("it is there");
        assert_eq!(held.parcel.label.name, "a1");
        spool.replace(&held, &["a11", "a12"].map(|name| parcel(name, 3))).expect("parts");
        let mut found = names(&spool);
        found.sort();
        assert_eq!(found, ["a11", "a12", "a2", "a3", "b"]);
    }

    #[test]
    fn what_a_killed_process_left_half_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(".draft-1"), "half").expect("a file");
        let held = File::create(folder.path().join(".draft-2")).expect("a file");
        held.lock().expect("a lock");
        fs::write(folder.path().join("odd.parcel"), "no JSON").expect("a file");
        let spool = Spool::open(folder.path(), 1 << 20).expect("a spool");
        assert!(!folder.path().join(".draft-1").exists() && folder.path().join(".draft-2").exists());
        assert!(spool.hold(&folder.path().join("odd.parcel")).is_none());
    }
}
