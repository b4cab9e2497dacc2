//! A data set of many recordings: a folder of Parquet files for queries over a fleet.
//!
//! `recordings` has a row for each process of a recording, with its labels. `amounts` has what was
//! measured, by stack. `stacks` and `symbols` have each stack and each function once, whatever the
//! number of recordings. `recordings` and `amounts` are partitioned by date and service in the way
//! of Hive: `amounts/date=2026-11-30/service=shop/NAME.parquet`. `docs/fleet.md` describes the
//! columns and has queries.
//!
//! Stacks and functions are identified by numbers that are computed from their names, so they are
//! the same in every data set.

mod commit;
mod day;
mod gather;
mod identify;
mod tables;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use clrscope_recording::model::Recording;

use crate::ExportError;
use crate::parquet::Column;
use commit::Commit;
use gather::{Gathered, OfProcess, Partition, ProcessKey, gathered};
use tables::{AMOUNTS, RECORDINGS, STACKS, SYMBOLS, Shape, merged};

/// Name of the format on the command line.
pub const NAME: &str = "dataset";
/// Description of the format in one line.
pub const DESCRIPTION: &str = "a folder of tables of many recordings, for databases; recordings are added to it";

/// File that says what the folder is.
const MARKER: &str = "_clrscope.json";
/// Its contents.
const MARK: &str = "{\"schema\":\"clrscope.dataset/1\"}\n";
/// File that the one who writes has locked.
const LOCK: &str = "_lock";
/// Small files of a partition before they become one.
const MOST_FILES: usize = 8;
/// Files of this size and more are not small.
const SMALL: u64 = 16 << 20;
/// Rows that are held in memory before they are written.
const MOST_ROWS: usize = 1_000_000;

/// A data set that is open for writing. Only one process at a time writes to it.
#[derive(Debug)]
pub struct Dataset {
    folder: PathBuf,
    /// Mode of new files.
    mode: u32,
    /// Holds the lock.
    _lock: File,
    stacks: HashSet<u64>,
    symbols: HashSet<u64>,
    /// Processes of the partitions that were looked at, those that wait included.
    processes: HashMap<Partition, HashSet<ProcessKey>>,
    waiting: Waiting,
    added: u64,
}

/// What was added and is not yet written.
#[derive(Debug, Default)]
struct Waiting {
    partitions: BTreeMap<Partition, Vec<OfProcess>>,
    stacks: HashMap<u64, gather::Stack>,
    symbols: HashMap<u64, gather::Symbol>,
    rows: usize,
}

/// Sizes of a data set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatasetSize {
    /// Number of recordings that were added.
    pub added: u64,
    /// Number of Parquet files.
    pub files: u64,
    /// Size of these files in bytes.
    pub bytes: u64,
}

/// Reason why a data set can't be written.
#[derive(Debug)]
#[non_exhaustive]
pub enum DatasetError {
    /// An error of the file system, with the file.
    Io(PathBuf, io::Error),
    /// The folder has files that are not part of a data set.
    NotADataset(PathBuf),
    /// Another process writes to the data set.
    Busy(PathBuf),
    /// A file of the data set is damaged.
    Damaged(PathBuf, &'static str),
    /// A recording has nothing to add.
    Recording(ExportError),
}

impl fmt::Display for DatasetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NotADataset(path) => write!(f, "{} has files, but is not a data set of clrscope", path.display()),
            Self::Busy(path) => write!(f, "another clrscope writes to {}", path.display()),
            Self::Damaged(path, why) => write!(f, "{}: {why}", path.display()),
            Self::Recording(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DatasetError {}

impl Dataset {
    /// Opens a data set; creates it if the folder is empty or does not exist. A change that another
    /// process had begun is completed or removed. New files get the mode `mode`.
    ///
    /// # Errors
    /// If the folder has other content, another process writes to it, or a file can't be read.
    pub fn open(folder: &Path, mode: u32) -> Result<Self, DatasetError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| DatasetError::Io(path, error)
        };
        fs::create_dir_all(folder).map_err(failed(folder))?;
        let marker = folder.join(MARKER);
        if !marker.is_file() {
            let mut entries = fs::read_dir(folder).map_err(failed(folder))?.flatten();
            if entries.any(|entry| entry.file_name() != LOCK) {
                return Err(DatasetError::NotADataset(folder.to_owned()));
            }
        }
        let lock = commit::create(&folder.join(LOCK), mode).map_err(failed(&folder.join(LOCK)))?;
        if lock.try_lock().is_err() {
            return Err(DatasetError::Busy(folder.to_owned()));
        }
        if !marker.is_file() {
            commit::write(&marker, MARK.as_bytes(), mode).map_err(failed(&marker))?;
        }
        commit::recover(folder).map_err(failed(folder))?;
        let known = |shape: &Shape| known_ids(&folder.join(shape.name), shape);
        let (stacks, symbols) = (known(&STACKS)?, known(&SYMBOLS)?);
        let folder = folder.to_owned();
        Ok(Self {
            folder,
            mode,
            _lock: lock,
            stacks,
            symbols,
            processes: HashMap::new(),
            waiting: Waiting::default(),
            added: 0,
        })
    }

    /// Adds a recording. Returns false if the data set already has it. [`finish`](Self::finish)
    /// writes the rows; many rows are written earlier.
    ///
    /// # Errors
    /// When the recording has no metric of call paths, or a file can't be read or written.
    pub fn add(&mut self, recording: &Recording) -> Result<bool, DatasetError> {
        let (processes, mut new) = (gather::processes(recording), HashSet::new());
        for process in &processes {
            let key = process.key();
            if !self.known(&process.partition())?.contains(&key) {
                new.insert(key);
            }
        }
        if new.is_empty() {
            return Ok(false);
        }
        let gathered = gathered(recording, processes).map_err(DatasetError::Recording)?;
        let Gathered { processes, stacks, symbols } = gathered;
        for process in processes.into_iter().filter(|process| new.contains(&process.key())) {
            self.waiting.rows += process.amounts.len();
            let partition = process.partition();
            self.known(&partition)?.insert(process.key());
            self.waiting.partitions.entry(partition).or_default().push(process);
        }
        self.waiting.stacks.extend(stacks.into_iter().filter(|(id, _)| !self.stacks.contains(id)));
        self.waiting.symbols.extend(symbols.into_iter().filter(|(id, _)| !self.symbols.contains(id)));
        self.added += 1;
        if self.waiting.rows >= MOST_ROWS {
            self.write()?;
        }
        Ok(true)
    }

    /// Writes what was added. Returns the sizes of the data set.
    ///
    /// # Errors
    /// When a file can't be read or written.
    pub fn finish(mut self) -> Result<DatasetSize, DatasetError> {
        self.write()?;
        let mut size = DatasetSize { added: self.added, ..DatasetSize::default() };
        for shape in [&RECORDINGS, &AMOUNTS, &STACKS, &SYMBOLS] {
            for file in files_below(&self.folder.join(shape.name)) {
                size.files += 1;
                size.bytes += fs::metadata(&file).map_or(0, |about| about.len());
            }
        }
        Ok(size)
    }

    /// The processes of a partition, read when it is looked at first: no other process writes
    /// meanwhile.
    fn known(&mut self, partition: &Partition) -> Result<&mut HashSet<ProcessKey>, DatasetError> {
        if !self.processes.contains_key(partition) {
            let known = processes_in(&self.folder.join(RECORDINGS.partition(partition)))?;
            self.processes.insert(partition.clone(), known);
        }
        Ok(self.processes.entry(partition.clone()).or_default())
    }

    fn write(&mut self) -> Result<(), DatasetError> {
        let Waiting { partitions, stacks, symbols, .. } = std::mem::take(&mut self.waiting);
        if partitions.is_empty() {
            return Ok(());
        }
        let name = identify::name_of(partitions.values().flatten().map(OfProcess::key));
        let mut commit = Commit::new(&self.folder, self.mode);
        let (new_stacks, new_symbols): (Vec<u64>, Vec<u64>) =
            (stacks.keys().copied().collect(), symbols.keys().copied().collect());
        self.put(&mut commit, &SYMBOLS, Path::new(SYMBOLS.name), &name, tables::symbols(symbols))?;
        self.put(&mut commit, &STACKS, Path::new(STACKS.name), &name, tables::stacks(stacks))?;
        for (partition, processes) in partitions {
            self.put(&mut commit, &AMOUNTS, &AMOUNTS.partition(&partition), &name, tables::amounts(&processes))?;
            self.put(
                &mut commit,
                &RECORDINGS,
                &RECORDINGS.partition(&partition),
                &name,
                tables::recordings(&processes),
            )?;
        }
        commit.perform().map_err(|(path, error)| DatasetError::Io(path, error))?;
        self.stacks.extend(new_stacks);
        self.symbols.extend(new_symbols);
        Ok(())
    }

    /// Stages a file with these rows in a folder, together with the small files there where they
    /// are many.
    fn put(
        &self,
        commit: &mut Commit,
        shape: &Shape,
        folder: &Path,
        name: &str,
        rows: tables::Rows,
    ) -> Result<(), DatasetError> {
        if rows.is_empty() {
            return Ok(());
        }
        let is_small = |file: &PathBuf| fs::metadata(file).is_ok_and(|about| about.len() < SMALL);
        let small: Vec<PathBuf> = files_in(&self.folder.join(folder)).into_iter().filter(is_small).collect();
        let old = if small.len() + 1 > MOST_FILES { &small[..] } else { &[] };
        let bytes = merged(shape, old, rows)?;
        let file = folder.join(format!("{name}.parquet"));
        commit.stage(&file, &bytes).map_err(|error| DatasetError::Io(self.folder.join(&file), error))?;
        old.iter().filter_map(|old| old.strip_prefix(&self.folder).ok()).for_each(|old| commit.remove(old));
        Ok(())
    }
}

/// The processes in the files of a partition.
fn processes_in(folder: &Path) -> Result<HashSet<ProcessKey>, DatasetError> {
    let mut known = HashSet::new();
    for file in files_in(folder) {
        let columns = tables::read_file(&file, &RECORDINGS.columns[..2])?;
        let [Column::Texts(ids), Column::Numbers(pids)] = &columns[..] else { continue };
        let pids = pids.iter().filter_map(|pid| u32::try_from(*pid).ok());
        known.extend(ids.iter().map(|id| id.to_string()).zip(pids));
    }
    Ok(known)
}

/// Identifiers in the first column of all files of a table.
fn known_ids(folder: &Path, shape: &Shape) -> Result<HashSet<u64>, DatasetError> {
    let mut known = HashSet::new();
    for file in files_in(folder) {
        if let [Column::Numbers(ids)] = &tables::read_file(&file, &shape.columns[..1])?[..] {
            known.extend(ids);
        }
    }
    Ok(known)
}

/// The Parquet files in a folder, by name.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_table = |path: &PathBuf| {
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !is_hidden && path.extension().is_some_and(|ending| ending == "parquet")
    };
    let mut files: Vec<PathBuf> = entries.filter(is_table).collect();
    files.sort();
    files
}

/// The Parquet files in a folder and in the folders of its partitions.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = files_in(folder);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        files.extend(files_below(&entry.path()));
    }
    files
}
