//! Packing: turns a recording directory, or a recording in memory, into one file.
//!
//! `clrscope run` calls [`pack`] at its end, `clrscope pack` at any time: the directory may still
//! be written to. Packing only reads the directory. The packed file gets its name only when it is
//! complete and on disk.

mod file;

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::model::{Problem, Recording};
use crate::open_error::OpenError;
use crate::packed::v1;
use crate::reader;
use file::NewFile;
pub use file::is_draft;

/// Options of packing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackOptions {
    /// Replace an existing file. Off by default.
    pub overwrite: bool,
    /// Compression level of zstd, 1 (fast) to 19 (small).
    pub level: i32,
}

impl Default for PackOptions {
    fn default() -> Self {
        Self { overwrite: false, level: 3 }
    }
}

/// Progress of packing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackProgress {
    /// Number of threads whose trees are packed already.
    pub threads: u64,
    /// Total number of threads.
    pub threads_total: u64,
    /// Bytes written so far.
    pub bytes_written: u64,
}

/// Contents of a packed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackReport {
    /// Size of the file.
    pub bytes: u64,
    /// Number of processes in it.
    pub processes: u64,
    /// Number of threads in it.
    pub threads: u64,
    /// Number of nodes in all trees.
    pub nodes: u64,
    /// Parts of the directory that could not be read; the file lists these problems, too.
    pub problems: Vec<Problem>,
}

/// Reason why there is no packed file. The directory is unchanged.
#[derive(Debug)]
#[non_exhaustive]
pub enum PackError {
    /// The directory can't be read.
    Open(OpenError),
    /// The file exists, and [`PackOptions::overwrite`] is off.
    Exists(PathBuf),
    /// The file can't be written: a full disk, a limit, missing permission.
    Write(PathBuf, io::Error),
}

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Exists(path) => write!(f, "{} exists already", path.display()),
            Self::Write(path, error) => write!(f, "{} can't be written: {error}", path.display()),
        }
    }
}

impl std::error::Error for PackError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(error) => Some(error),
            Self::Exists(_) => None,
            Self::Write(_, error) => Some(error),
        }
    }
}

/// Packs the directory `dir` into the new file `out`; [`pack_with`] with default options.
///
/// # Errors
/// See [`PackError`].
pub fn pack(dir: &Path, out: &Path, progress: &mut dyn FnMut(PackProgress)) -> Result<PackReport, PackError> {
    pack_with(dir, out, PackOptions::default(), progress)
}

/// Packs `dir` into the file `out`; `dir` is a directory, or a packed file that is to be packed
/// again. `progress` is called many times a second. Memory use is bounded by the tree of one
/// thread.
///
/// # Errors
/// See [`PackError`]. No file is left at `out` or next to it.
pub fn pack_with(
    dir: &Path,
    out: &Path,
    options: PackOptions,
    progress: &mut dyn FnMut(PackProgress),
) -> Result<PackReport, PackError> {
    pack_completed(dir, out, options, &mut |_| (), progress)
}

/// Like [`pack_with`], but `complete` can first add facts to the recording that only this machine
/// knows, such as names of native code.
///
/// # Errors
/// See [`PackError`]. No file is left at `out` or next to it.
pub fn pack_completed(
    dir: &Path,
    out: &Path,
    options: PackOptions,
    complete: &mut dyn FnMut(&mut Recording),
    progress: &mut dyn FnMut(PackProgress),
) -> Result<PackReport, PackError> {
    if !options.overwrite && out.symlink_metadata().is_ok() {
        return Err(PackError::Exists(out.to_owned()));
    }
    let mut recording = reader::open_exactly(dir).map_err(PackError::Open)?;
    complete(&mut recording);
    pack_opened(&recording, out, options, progress)
}

/// Packs an open recording into the file `out`.
///
/// # Errors
/// See [`PackError`]. No file is left at `out` or next to it.
pub fn pack_opened(
    recording: &Recording,
    out: &Path,
    options: PackOptions,
    progress: &mut dyn FnMut(PackProgress),
) -> Result<PackReport, PackError> {
    let failed = |error| PackError::Write(out.to_owned(), error);
    let file = NewFile::create(out).map_err(failed)?;
    let mut buffered = BufWriter::with_capacity(1 << 20, file);
    let report = write_with(recording, &mut buffered, options.level, progress).map_err(failed)?;
    let file = buffered.into_inner().map_err(|error| failed(error.into_error()))?;
    match file.keep(options.overwrite) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(PackError::Exists(out.to_owned())),
        other => other.map(|()| report).map_err(failed),
    }
}

/// Writes an in-memory recording in the packed form.
///
/// # Errors
/// Errors of `out`.
pub fn write(recording: &Recording, out: &mut impl Write) -> io::Result<PackReport> {
    write_with(recording, out, PackOptions::default().level, &mut |_| ())
}

fn write_with(
    recording: &Recording,
    out: &mut dyn Write,
    level: i32,
    progress: &mut dyn FnMut(PackProgress),
) -> io::Result<PackReport> {
    let threads_total = recording.processes.iter().map(|process| process.threads.len() as u64).sum();
    let written = v1::write(recording, out, level, &mut |v1::Written { threads, bytes, .. }| {
        progress(PackProgress { threads, threads_total, bytes_written: bytes });
    })?;
    Ok(PackReport {
        bytes: written.bytes,
        processes: recording.processes.len() as u64,
        threads: written.threads,
        nodes: written.nodes,
        problems: recording.problems.iter().chain(recording.late_problems()).cloned().collect(),
    })
}
