//! Packs a recording directory, with a progress bar and the option to abandon it.

use std::fs;
use std::path::Path;
use std::process;
use std::time::Instant;

use clrscope_recording::pack::{PackError, PackOptions, PackProgress, is_draft};
use indicatif::{ProgressBar, ProgressStyle};

use crate::errors::{Failure, reason, shown};
use crate::progress::BETWEEN;
use crate::recording_file::open_failure;
use crate::terminal::say;

/// Packs `folder` into `file`. The file lists the parts of the folder that could not be read.
///
/// # Errors
/// When nothing can be read or the file can't be written; the folder stays as it is.
pub(crate) fn pack(folder: &Path, file: &Path, overwrite: bool, progress: bool) -> Result<(), Failure> {
    let (began, mut bar) = (Instant::now(), ProgressBar::hidden());
    let options = PackOptions { overwrite, ..PackOptions::default() };
    let result = clrscope_finish::pack(folder, file, options, &mut |now| {
        // A bar for a short time would only flicker.
        if progress && bar.is_hidden() && began.elapsed() > BETWEEN {
            bar = progress_bar();
        }
        show(&bar, now);
    });
    bar.finish_and_clear();
    result.map(|_| ()).map_err(|error| failure(folder, error))
}

fn progress_bar() -> ProgressBar {
    let style = ProgressStyle::with_template("clrscope: packing {wide_bar} {pos}/{len} threads")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(0).with_style(style)
}

fn show(bar: &ProgressBar, now: PackProgress) {
    bar.set_length(now.threads_total);
    bar.set_position(now.threads);
}

fn failure(folder: &Path, error: PackError) -> Failure {
    let what = format!("cannot pack {}", shown(folder));
    let hint = format!("free some space, then: clrscope pack {}", shown(folder));
    match error {
        PackError::Open(error) => open_failure(folder, error),
        PackError::Exists(file) => {
            let hint = "choose another name with -o, or overwrite it with --force";
            Failure::new(what, format!("{} exists", shown(&file)), hint)
        }
        PackError::Write(file, error) => Failure::new(what, format!("{}: {}", shown(&file), reason(&error)), hint),
        other => Failure::new(what, other.to_string(), hint),
    }
}

/// Abandons packing because the user does not want to wait. The folder stays as an equivalent
/// recording, and the process exits with the program's exit code.
pub(crate) fn abandon(folder: &Path, file: &Path, code: u8) -> ! {
    remove_drafts(file);
    say(&format!("clrscope: not packed; the recording is {}", shown(folder)));
    #[expect(clippy::disallowed_methods, reason = "the packing that goes on meanwhile has nothing to close")]
    process::exit(i32::from(code))
}

/// Ends the process after the recording is complete: the user does not want to wait for what comes
/// after it.
pub(crate) fn leave(code: u8) -> ! {
    #[expect(clippy::disallowed_methods, reason = "what goes on meanwhile has nothing to close")]
    process::exit(i32::from(code))
}

/// Removes unfinished files, which lie next to the final file under a hidden name with our process
/// id.
fn remove_drafts(file: &Path) {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if is_draft(&entry.file_name(), name) {
            // A draft that can't be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_drafts_are_removed() {
        let temp = tempfile::tempdir().expect("a folder");
        let ours = temp.path().join(format!(".a.clrs.{}-0.part", process::id()));
        let others = [".a.clrs.1-0.part", "a.clrs", ".b.clrs.1-0.part"].map(|name| temp.path().join(name));
        for file in others.iter().chain([&ours]) {
            fs::write(file, b"x").expect("a file");
        }
        remove_drafts(&temp.path().join("a.clrs"));
        assert!(!ours.exists() && others.iter().all(|file| file.exists()));
    }
}
