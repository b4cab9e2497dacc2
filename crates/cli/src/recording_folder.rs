//! The recordings in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::output::file_of;

/// File extension of recordings.
const ENDING: &str = "clrs";

/// Recordings in a folder and in the folders directly below it, as `clrscope watch` has one for
/// each program, ordered by path: files `NAME.clrs`, and directories `NAME.clrs.d` without such a
/// file. `None` if the folder is a recording itself, or has no recordings.
pub(crate) fn recordings_in(folder: &Path) -> Option<Vec<PathBuf>> {
    if !folder.is_dir() || is_recording(folder) {
        return None;
    }
    let mut found = directly_in(folder);
    for below in entries(folder).filter(|path| path.is_dir() && file_of(path).is_none() && !is_recording(path)) {
        found.extend(directly_in(&below));
    }
    found.sort();
    (!found.is_empty()).then_some(found)
}

fn directly_in(folder: &Path) -> Vec<PathBuf> {
    let is_one = |path: &PathBuf| match file_of(path) {
        // The packed file is the same recording.
        Some(file) => path.is_dir() && file.extension().is_some_and(|ending| ending == ENDING) && !file.is_file(),
        None => path.extension().is_some_and(|ending| ending == ENDING) && path.is_file(),
    };
    entries(folder).filter(is_one).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Whether a directory is a recording.
fn is_recording(folder: &Path) -> bool {
    let has_process =
        || fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(|of| of.path().join("process.log").exists()));
    // A recording with a launcher has its log; a recording without one has only processes.
    folder.join("run.log").exists() || file_of(folder).is_some() && has_process()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folder of a watch was "no recording".
    #[test]
    fn recordings_of_a_watch_are_in_folders_of_their_programs() {
        let place = clrscope_testkit::scratch();
        let file = |path: &str| {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(&path, "").expect("a file");
            path
        };
        let packed = [file("Shop/Shop-1.clrs"), file("Web/Web-1.clrs"), file("loose.clrs")];
        file("watch.json");
        file("Web/Web-1.clrs.d/run.log");
        file("Web/deeper/Web-2.clrs");
        file("Web/Web-3.clrs.d/run.log");
        let under_way = place.path().join("Web/Web-3.clrs.d");
        let [shop, web, loose] = packed;
        assert_eq!(recordings_in(place.path()), Some(vec![shop, web, under_way, loose]));
        assert_eq!(recordings_in(&place.path().join("Web/deeper/none")), None);
    }
}
