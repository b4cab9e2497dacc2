//! Source files on this machine.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use clr_metadata::{Pdb, read_bounded};

/// Largest source file that is read, bytes.
const MOST_BYTES: u64 = 16 << 20;
/// Maximum total size of sources extracted from a PDB, bytes.
const MOST_EMBEDDED: usize = 64 << 20;

/// Finds the text of source lines. Reads each file once, at the first request for one of its lines.
#[derive(Debug, Default)]
pub struct Sources {
    files: HashMap<String, Option<String>>,
    root: Option<PathBuf>,
}

impl Sources {
    /// Creates the index. `known` holds the texts of some files, by path. A file that is not at its
    /// path is searched for below `root`.
    #[must_use]
    pub fn new(known: HashMap<String, String>, root: Option<PathBuf>) -> Self {
        Self { files: known.into_iter().map(|(path, text)| (path, Some(text))).collect(), root }
    }

    /// Text of a line, without the line break. `line` counts from 1. `file` is the path that was
    /// given to the compiler. `None` if this machine has no such file, or the file has no such
    /// line.
    pub fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        self.text(file)?.lines().nth((line as usize).checked_sub(1)?)
    }

    /// Text of a file. `file` is the path that was given to the compiler. `None` if this machine
    /// has no such file.
    pub fn text(&mut self, file: &str) -> Option<&str> {
        let root = self.root.as_deref();
        let found = || read(Path::new(file)).or_else(|| below(root?, file));
        self.files.entry(file.to_owned()).or_insert_with(found).as_deref()
    }

    /// Whether the file was modified after `unix_ns`, nanoseconds since 1970 (UTC). `file` is the
    /// path that was given to the compiler.
    #[must_use]
    pub fn is_newer(file: &str, unix_ns: u64) -> bool {
        let written = std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
        let since = written.and_then(|written| written.duration_since(UNIX_EPOCH).ok());
        since.is_some_and(|since| since.as_nanos() > u128::from(unix_ns))
    }
}

/// The text of a file below `root`: the file that matches the longest possible tail of the path.
/// The path is from the machine that compiled the code, possibly a Windows machine, and often
/// begins with a placeholder (`/_/`).
fn below(root: &Path, file: &str) -> Option<String> {
    // No path leads out of the folder.
    let is_plain = |part: &&str| !matches!(*part, "" | "." | "..");
    let parts: Vec<&str> = file.split(['/', '\\']).filter(is_plain).collect();
    (0..parts.len()).find_map(|first| read(&root.join(parts[first..].iter().collect::<PathBuf>())))
}

/// The text of a regular file that is not too large.
fn read(path: &Path) -> Option<String> {
    read_bounded(path, MOST_BYTES).map(|bytes| text(&bytes))
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()
}

/// The source texts that a PDB contains, as path and text.
pub(crate) fn embedded(pdb: &Pdb) -> Vec<(String, String)> {
    let mut left = MOST_EMBEDDED;
    let read = |document: u32| {
        let bytes = pdb.embedded_source(document, left.min(MOST_BYTES as usize))?;
        left = left.saturating_sub(bytes.len());
        Some((pdb.document(document)?, text(&bytes)))
    };
    (1..=pdb.documents()).filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.cs");
        std::fs::write(&path, "\u{feff}first\r\nsecond\n").expect("written");
        let path = path.to_str().expect("a path");
        let mut sources = Sources::default();
        let mut line = |number| sources.line(path, number).map(str::to_owned);
        assert_eq!([line(0), line(1), line(2), line(3)], [None, Some("first".into()), Some("second".into()), None]);
        assert_eq!(sources.line("/nonexistent/a.cs", 1), None);
        assert_eq!(sources.line("/dev/zero", 1), None, "no plain file");
        assert_eq!(sources.text(path), Some("first\r\nsecond\n"));
        assert!(Sources::is_newer(path, 1) && !Sources::is_newer(path, u64::MAX));
        assert!(!Sources::is_newer("/nonexistent/a.cs", 1));
    }

    #[test]
    fn sources_that_are_not_at_their_paths_are_found_below_a_folder_by_the_end_of_their_paths() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("repository");
        std::fs::create_dir_all(root.join("src/App")).expect("folders");
        for (path, text) in [("src/App/Cart.cs", "whole"), ("Cart.cs", "short"), ("../Secret.cs", "outside")] {
            std::fs::write(root.join(path), text).expect("written");
        }
        let known = HashMap::from([("/_/Generated.cs".to_owned(), "generated".to_owned())]);
        let mut sources = Sources::new(known, Some(root));
        let mut line = |path: &str| sources.line(path, 1).map(str::to_owned);
        assert_eq!(line("/_/src/App/Cart.cs").as_deref(), Some("whole"));
        assert_eq!(line("C:\\build\\src\\App\\Cart.cs").as_deref(), Some("whole"));
        assert_eq!(line("/_/lib/Cart.cs").as_deref(), Some("short"), "by its name alone");
        assert_eq!(line("/_/../Secret.cs"), None, "no path leads out");
        assert_eq!(line("/_/Generated.cs").as_deref(), Some("generated"));
    }
}
