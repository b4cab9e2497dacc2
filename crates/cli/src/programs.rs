//! `--only` and `--only-from`: checks the given files and patterns.

use std::io;
use std::path::Path;

use clrscope_contract::request::{Programs, RequestError};
use clrscope_contract::trust::{self, Weakness, Who};

use crate::errors::{Failure, reason, shown};
use crate::terminal::say;

/// Checks the files in the same way as each program will at its start.
///
/// # Errors
/// For the first file that can't be used.
pub(crate) fn check(programs: &Programs, trust_writable: bool) -> Result<(), Failure> {
    for file in &programs.only_from {
        let path = Path::new(file);
        let one = Programs { only: Vec::new(), only_from: vec![file.clone()] };
        let patterns = one.patterns(trust_writable).map_err(|error| unusable(path, &error))?;
        if patterns.is_empty() {
            say(&format!("clrscope: {} has no pattern yet; it chooses no program until it has one", shown(path)));
        }
    }
    Ok(())
}

fn unusable(path: &Path, RequestError(why): &RequestError) -> Failure {
    let why = why.split_once(": ").map_or(why.as_str(), |(_, why)| why);
    let what = format!("cannot choose programs from {}", shown(path));
    Failure::new(what, reason(&io::Error::other(why)), cure(path))
}

/// The command that fixes the file's permissions, or else a description of a valid file.
pub(crate) fn cure(path: &Path) -> String {
    match trust::check_with_folders(path) {
        Err(Weakness { path, who: Who::Owner }) => {
            format!("chown root {}, or give a file that belongs to you or root", shown(&path))
        }
        Err(Weakness { path, who: Who::Others }) => format!("chmod go-w {}", shown(&path)),
        Ok(()) => "give a text file with one pattern a line, such as 'MyApp*', that every program can read".to_owned(),
    }
}
