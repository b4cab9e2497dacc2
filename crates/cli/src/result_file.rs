//! Writes result files: exports and pages.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::errors::{Failure, shown};

/// Refuses a file that must not be written: the recording itself and, without `force`, an existing
/// file.
///
/// # Errors
/// The path names the recording, or the file exists.
pub(crate) fn check(file: &Path, recording: &Path, force: bool) -> Result<(), Failure> {
    // A slip of the finger must not cost the recording.
    let same = fs::canonicalize(file).is_ok_and(|file| fs::canonicalize(recording).is_ok_and(|rec| rec == file));
    if same {
        return Err(Failure::usage(
            format!("will not write to {}", shown(file)),
            "it is the recording itself",
            "choose another name with -o",
        ));
    }
    if !force && fs::symlink_metadata(file).is_ok_and(|found| !is_passed_through(file, &found)) {
        // As `run` and `pack` do: an existing entry of any kind counts.
        let (what, why) = (format!("cannot write {}", shown(file)), format!("{} exists", shown(file)));
        return Err(Failure::new(what, why, "choose another name with -o, or overwrite it with --force"));
    }
    Ok(())
}

/// Whether the file is a device, a pipe or a link to one, such as `/dev/stdout`: these are written
/// to in place.
fn is_passed_through(file: &Path, found: &fs::Metadata) -> bool {
    !found.is_file() && fs::metadata(file).is_ok_and(|behind| !behind.is_file())
}

/// Permission bits of a new file, before the user's mask is applied.
pub(crate) const PLAIN: u32 = 0o666;

/// Permission bits for a file with data of these recordings: users who can't read one of the
/// recordings can't read the file either.
pub(crate) fn mode_of<'r>(recordings: impl IntoIterator<Item = &'r Path>) -> u32 {
    let modes = recordings.into_iter().filter_map(|recording| {
        let about = fs::metadata(recording).ok()?;
        // Directories also have execute bits.
        Some(about.permissions().mode() & PLAIN)
    });
    modes.fold(PLAIN, |all, mode| all & mode) | 0o600
}

/// Writes a file. The file appears under its name when it is complete. A target that is not a plain
/// file, such as `/dev/stdout`, is written to directly.
///
/// # Errors
/// Errors of `write`, and of creating the file.
pub(crate) fn write<E: From<io::Error>>(
    file: &Path,
    force: bool,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    if fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
        let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(file)?);
        return write(&mut out).and_then(|()| Ok(out.flush()?));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let draft = tempfile::Builder::new().permissions(fs::Permissions::from_mode(mode)).tempfile_in(folder)?;
    let mut out = BufWriter::new(draft);
    write(&mut out)?;
    let draft = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let kept = if force { draft.persist(file) } else { draft.persist_noclobber(file) };
    kept.map_err(|error| error.error)?;
    Ok(())
}
