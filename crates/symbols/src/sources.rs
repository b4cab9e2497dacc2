//! Source files, as far as they are on this machine.

use std::collections::HashMap;
use std::path::Path;

/// Largest source file that is read, bytes.
const MOST_BYTES: u64 = 16 << 20;

/// Finds the text of lines; each file is read once, when its first line is asked for.
#[derive(Debug, Default)]
pub struct Sources {
    files: HashMap<String, Option<String>>,
}

impl Sources {
    /// Text of a line, from 1, of the file at a path as the compiler was given it; without its end. `None` where this
    /// machine has no such file, or the file has no such line.
    pub fn line(&mut self, file: &str, line: u32) -> Option<&str> {
        let known = self.files.entry(file.to_owned()).or_insert_with(|| read(Path::new(file)));
        known.as_deref()?.lines().nth((line as usize).checked_sub(1)?)
    }
}

/// The text of a plain file that is not too large.
fn read(path: &Path) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    let bytes = (metadata.is_file() && metadata.len() <= MOST_BYTES).then(|| std::fs::read(path).ok())??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.cs");
        std::fs::write(&path, "first\r\nsecond\n").expect("written");
        let path = path.to_str().expect("a path");
        let mut sources = Sources::default();
        let mut line = |number| sources.line(path, number).map(str::to_owned);
        assert_eq!([line(0), line(1), line(2), line(3)], [None, Some("first".into()), Some("second".into()), None]);
        assert_eq!(sources.line("/nonexistent/a.cs", 1), None);
        assert_eq!(sources.line("/dev/zero", 1), None, "no plain file");
    }
}
