//! Load log: writes a line to a file when the library is loaded, refused or unloaded, if an
//! environment variable names the file.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;

use crate::{first_panic, panics_caught};

/// The environment variable that names the file. If it is not set, nothing is written.
const VARIABLE: &str = "CLR_PROFILER_LOAD_LOG";

/// Appends `PID TEXT` to the file. A failure can't be reported anywhere and is ignored.
pub(crate) fn write(text: impl Display) {
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    let line = format!("{} {text}", std::process::id()).replace('\n', " ") + "\n";
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
        drop(file.write_all(line.as_bytes()));
    }
}

/// Writes the last entry, with the number of caught panics and the first of them, which are visible
/// nowhere else.
pub(crate) fn write_end() {
    match (panics_caught(), first_panic()) {
        (0, _) => write("ended"),
        (count, first) => {
            write(format_args!("ended {count} panics, the first: {}", first.unwrap_or_default()));
        }
    }
}
