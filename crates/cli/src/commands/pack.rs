//! `clrscope pack`: packs a recording directory into one file.

use std::path::PathBuf;

use crate::errors::{Failure, shown};
use crate::output::{file_of, refuse_stdout};
use crate::pack;
use crate::terminal::messages_on_terminal;

/// Options of `pack`.
#[derive(Debug)]
pub(crate) struct PackOptions {
    /// The recording directory.
    pub(crate) directory: PathBuf,
    /// The file; next to the directory when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Whether to overwrite existing files.
    pub(crate) force: bool,
}

/// Packs and prints the file's name.
///
/// # Errors
/// When the directory is no recording or the file can't be written.
pub(crate) fn perform(options: &PackOptions) -> Result<(), Failure> {
    if !options.directory.is_dir() {
        let why = if options.directory.exists() { "it is not a folder" } else { "there is no such folder" };
        return Err(cannot_pack(options, why, "name a recording directory, such as app.clrs.d"));
    }
    let file = match &options.output {
        Some(file) => refuse_stdout(file).map(|()| file.clone())?,
        None => file_of(&options.directory)
            .ok_or_else(|| cannot_pack(options, "its name does not end in .clrs.d", "name the file with -o"))?,
    };
    pack::pack(&options.directory, &file, options.force, messages_on_terminal())?;
    super::print(&format!("{}\n", file.display()))
}

fn cannot_pack(options: &PackOptions, why: &str, hint: &str) -> Failure {
    Failure::new(format!("cannot pack {}", shown(&options.directory)), why, hint)
}
