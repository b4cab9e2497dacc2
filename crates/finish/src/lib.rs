//! Finishes recordings: gives them what only the machine knows on which they were made.
//!
//! The agent writes what it sees inside the program. Names of native code, what the counters of
//! coverage are of, and lines of closures stand in files of that machine: in libraries, assemblies
//! and PDBs. A packed recording carries the first two along.
//!
//! - [`pack`] makes one file of a recording's directory, with all that.
//! - [`open`] reads a recording of either form, with all that.

mod coverage_plans;
mod native_symbols;

use std::path::Path;

use clrscope_analysis::{name_native_code, tell_closures_apart};
use clrscope_recording::OpenError;
use clrscope_recording::model::Recording;
use clrscope_recording::pack::{PackError, PackOptions, PackProgress, PackReport, pack_completed};
use clrscope_symbols::Lines;

/// Opens `NAME.clrs`, `NAME.clrs.d`, or `NAME.clrs` where only the directory exists. Closures of
/// one method are told apart by the lines of their source, where this machine has them.
///
/// # Errors
/// When nothing of it can be read. A damaged recording is no error: its problems are in it.
pub fn open(path: &Path) -> Result<Recording, OpenError> {
    let mut recording = clrscope_recording::open(path)?;
    // A packed recording has been completed where it was made.
    if path.is_dir() || !path.exists() {
        complete(&mut recording);
    }
    name_native_code(&mut recording);
    let mut lines = Lines::default();
    tell_closures_apart(&mut recording, &mut |module, method| {
        lines.first(module, method).map(|line| (line.file, line.line))
    });
    Ok(recording)
}

/// Packs a recording's directory into one file, which any machine can read as this one does.
///
/// # Errors
/// See [`PackError`]. The directory stays as it is.
pub fn pack(
    folder: &Path,
    file: &Path,
    options: PackOptions,
    progress: &mut dyn FnMut(PackProgress),
) -> Result<PackReport, PackError> {
    pack_completed(folder, file, options, &mut complete, progress)
}

/// Adds names of native code and plans of coverage, as far as this machine knows them.
fn complete(recording: &mut Recording) {
    native_symbols::add_native_symbols(recording);
    coverage_plans::add_coverage_plans(recording);
}
