//! Finishes recordings: adds the facts that only the recording machine knows.
//!
//! The agent writes what it sees inside the program. Other facts are in the machine's libraries,
//! assemblies and PDBs: names of native code, the meaning of coverage counters, and source lines of
//! closures. A packed recording includes the first two.
//!
//! - [`pack`] packs a recording's directory into one file, with these facts.
//! - [`open`] reads a recording in either form, with these facts.

mod coverage_plans;
mod native_symbols;

use std::path::Path;

use clrscope_analysis::{name_native_code, tell_closures_apart};
use clrscope_recording::OpenError;
use clrscope_recording::model::Recording;
use clrscope_recording::pack::{PackError, PackOptions, PackProgress, PackReport, pack_completed};
use clrscope_symbols::Lines;

/// Opens `NAME.clrs`, `NAME.clrs.d`, or `NAME.clrs` if only the directory exists. Closures of one
/// method are distinguished by their source lines, if this machine has them.
///
/// # Errors
/// When nothing can be read. A damaged recording is not an error: the recording lists its problems.
pub fn open(path: &Path) -> Result<Recording, OpenError> {
    let mut recording = clrscope_recording::open(path)?;
    // A packed recording was completed on the recording machine.
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
    pack_completed(folder, file, options, &mut complete, progress)
}

/// Adds names of native code and plans of coverage, as far as this machine knows them.
fn complete(recording: &mut Recording) {
    native_symbols::add_native_symbols(recording);
    coverage_plans::add_coverage_plans(recording);
}
