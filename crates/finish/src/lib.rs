//! Finishes recordings: adds the facts that only the recording machine knows.
//!
//! The agent writes what it sees inside the program. Other facts are in the machine's libraries,
//! assemblies and PDBs: names of native code, the meaning of coverage counters, and source lines of
//! closures. A packed recording includes the first two.
//!
//! - [`pack`] packs a recording's directory into one file, with these facts.
//! - [`open`] reads a recording in either form, with these facts.
//! - [`MachineFacts`] remembers the facts, for recordings that are read again and again.

mod coverage_plans;
mod native_symbols;

use std::path::{Path, PathBuf};

use clrscope_analysis::{name_native_code, tell_closures_apart};
use clrscope_recording::model::Recording;
use clrscope_recording::pack::{PackError, PackOptions, PackProgress, PackReport, pack_completed, pack_opened};
use clrscope_recording::{OpenError, Period, open_period};
use clrscope_symbols::{Lines, NativeNames, SymbolFolder};

pub use native_symbols::LibraryWithoutSymbols;

/// Like [`MachineFacts::open`], for a single recording.
///
/// # Errors
/// As [`MachineFacts::open`].
pub fn open(path: &Path) -> Result<Recording, OpenError> {
    MachineFacts::default().open(path)
}

/// Like [`open`], but takes names of native functions from the symbol files in the folder `symbols`
/// first. If the folder has no file for any library of the recording, also returns the libraries,
/// the most frequent on call stacks first; otherwise an empty list.
///
/// # Errors
/// As [`open`].
pub fn open_with_symbols(path: &Path, symbols: PathBuf) -> Result<(Recording, Vec<LibraryWithoutSymbols>), OpenError> {
    let mut folder = SymbolFolder::new(symbols);
    let mut without = Vec::new();
    let recording = MachineFacts::default().open_and(path, |recording| {
        without = native_symbols::use_symbol_folder(recording, &mut folder);
    })?;
    if folder.is_used() {
        without.clear();
    }
    Ok((recording, without))
}

/// Packs a recording's directory into one file, which every machine reads with the same result as
/// this one.
///
/// # Errors
/// See [`PackError`]. The directory is not changed.
pub fn pack(
    folder: &Path,
    file: &Path,
    options: PackOptions,
    progress: &mut dyn FnMut(PackProgress),
) -> Result<PackReport, PackError> {
    let mut names = NativeNames::default();
    pack_completed(folder, file, options, &mut |recording| complete(recording, &mut names), progress)
}

/// Remembers what was read from this machine's files, for several recordings.
#[derive(Debug, Default)]
pub struct MachineFacts {
    names: NativeNames,
    lines: Lines,
}

impl MachineFacts {
    /// Opens a recording: the file `NAME.clrs` or the directory `NAME.clrs.d`. If `path` is
    /// `NAME.clrs` and there is only the directory, the directory is opened. Closures of one method
    /// are distinguished by their source lines, if this machine has them.
    ///
    /// # Errors
    /// When nothing can be read. A damaged recording is not an error: the recording lists its
    /// problems.
    pub fn open(&mut self, path: &Path) -> Result<Recording, OpenError> {
        self.open_and(path, |_| ())
    }

    /// As [`open`](Self::open); `before_names` changes the recording before native functions get
    /// their names.
    fn open_and(&mut self, path: &Path, before_names: impl FnOnce(&mut Recording)) -> Result<Recording, OpenError> {
        let mut recording = clrscope_recording::open(path)?;
        // A packed recording was completed on the recording machine.
        if path.is_dir() || !path.exists() {
            complete(&mut recording, &mut self.names);
        }
        before_names(&mut recording);
        name_native_code(&mut recording);
        let lines = &mut self.lines;
        tell_closures_apart(&mut recording, &mut |module, method| {
            lines.first(module, method).map(|line| (line.file, line.line))
        });
        Ok(recording)
    }

    /// Packs a period of the recording in `folder` into one file, as a recording with its own
    /// identifier. Returns false, and writes nothing, if the period is empty.
    ///
    /// # Errors
    /// See [`PackError`]. The directory is not changed.
    pub fn pack_period(&mut self, folder: &Path, period: &Period<'_>, file: &Path) -> Result<bool, PackError> {
        if file.symlink_metadata().is_ok() {
            return Err(PackError::Exists(file.to_owned()));
        }
        let mut recording = open_period(folder, period).map_err(PackError::Open)?;
        if recording.processes.is_empty() {
            return Ok(false);
        }
        complete(&mut recording, &mut self.names);
        pack_opened(&recording, file, PackOptions::default(), &mut |_| ())?;
        Ok(true)
    }
}

/// Adds names of native code and plans of coverage, if known on this machine.
fn complete(recording: &mut Recording, names: &mut NativeNames) {
    native_symbols::add_native_symbols(recording, names);
    coverage_plans::add_coverage_plans(recording);
}
