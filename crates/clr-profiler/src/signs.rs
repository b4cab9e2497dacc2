//! Signs of life: a line in a file when the library is loaded, refused or left, for whoever asks for them.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write as _;

use crate::{first_panic, panics_caught};

/// The environment variable that names the file. Without it nothing is written.
const VARIABLE: &str = "CLR_PROFILER_SIGNS";

/// Appends `PID TEXT` to the file. There is nobody to tell when that fails.
pub(crate) fn give(text: impl Display) {
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    let line = format!("{} {text}", std::process::id()).replace('\n', " ") + "\n";
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
        drop(file.write_all(line.as_bytes()));
    }
}

/// The sign at the end: with the panics there were, which nobody would see otherwise.
pub(crate) fn give_end() {
    match (panics_caught(), first_panic()) {
        (0, _) => give("ended"),
        (count, first) => {
            give(format_args!("ended {count} panics, the first: {}", first.unwrap_or_default()));
        }
    }
}
