//! Folders as targets: they get the recording itself, from which every export can be made.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clrscope_analysis::{Resource, observed_unix_ns};
use clrscope_recording::model::Recording;
use clrscope_recording::pack;
use jiff::Timestamp;

use crate::outcome::Tally;

/// Mode of the file: readers of the recording may be fewer than those of the folder.
const MODE: u32 = 0o600;
/// Longest name of a service in a name of a file.
const LONGEST: usize = 100;

/// Writes a recording into a folder. The file gets its name when it is complete. If the folder
/// already has the recording, nothing is written. Returns the file and what was written.
///
/// # Errors
/// When the file can't be written.
pub(crate) fn write(recording: &Recording, folder: &Path) -> io::Result<(PathBuf, Tally)> {
    fs::create_dir_all(folder)?;
    let file = folder.join(name(recording));
    let mut tally = Tally { requests: 1, profiles: recording.processes.len() as u64, ..Tally::default() };
    if !recording.run.id.is_empty() && file.is_file() {
        tally.bytes = fs::metadata(&file)?.len();
        return Ok((file, tally));
    }
    let mut builder = tempfile::Builder::new();
    let draft = builder.prefix(".clrscope-").permissions(fs::Permissions::from_mode(MODE)).tempfile_in(folder)?;
    let mut out = BufWriter::with_capacity(1 << 20, draft);
    pack::write(recording, &mut out)?;
    out.flush()?;
    let draft = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    draft.as_file().sync_data()?;
    tally.bytes = draft.as_file().metadata()?.len();
    draft.persist(&file).map_err(|error| error.error)?;
    Ok((file, tally))
}

/// `SERVICE-TIME-ID.clrs`: the service of the first process, the begin in UTC, and the beginning of
/// the identifier.
fn name(recording: &Recording) -> String {
    let service = recording
        .processes
        .first()
        .map_or_else(String::new, |process| Resource::from_process(recording, process).service().into_owned());
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let service: String = service.chars().map(plain).take(LONGEST).collect();
    let service = service.trim_start_matches('.');
    let service = if service.is_empty() { "unknown" } else { service };
    let begin = Timestamp::from_nanosecond(observed_unix_ns(recording).start.into()).unwrap_or_default();
    let id: String = recording.run.id.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    let id = if id.is_empty() { format!("{}", recording.run.started_unix_ns % 1_000_000_000) } else { id };
    format!("{service}-{}-{id}.clrs", begin.strftime("%Y%m%dT%H%M%SZ"))
}
