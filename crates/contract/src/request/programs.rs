//! The programs to profile, if the environment variables reach more than one program.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use super::error::RequestError;
use super::glob::Glob;
use crate::trust;

/// Maximum size of a list in bytes. A longer one is a mistake, and every .NET program of the
/// machine would read it.
const LONGEST_LIST: u64 = 1 << 20;

/// The programs to profile. Without patterns, all programs are profiled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Programs {
    /// Patterns for a program's executable or its entry assembly.
    pub only: Vec<Glob>,
    /// Absolute paths of files with such patterns, which each program reads when it starts.
    pub only_from: Vec<String>,
}

impl Programs {
    /// Whether only some programs are profiled, not all.
    #[must_use]
    pub fn are_limited(&self) -> bool {
        !self.only.is_empty() || !self.only_from.is_empty()
    }

    /// All patterns, including those in the files. With `trust_writable`, files that other users
    /// can write are accepted too.
    ///
    /// # Errors
    /// For the first file that can't be used: the file and the reason, on one line.
    pub fn patterns(&self, trust_writable: bool) -> Result<Vec<Glob>, RequestError> {
        let mut all = self.only.clone();
        for file in &self.only_from {
            let list = read_list(Path::new(file), trust_writable);
            all.extend(list.map_err(|why| RequestError(format!("only-from={file}: {why}")))?);
        }
        Ok(all)
    }
}

/// Reads the patterns in a file, one per line. A `#` at the start of a line or after a blank begins
/// a comment.
fn read_list(path: &Path, trust_writable: bool) -> Result<Vec<Glob>, String> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::InvalidData => "it is not text in UTF-8".to_owned(),
        _ => error.to_string(),
    };
    // Reading a pipe would block the program's start.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err("it is not a plain file".to_owned());
    }
    if !trust_writable {
        trust::check_with_folders(path).map_err(|weakness| weakness.to_string())?;
    }
    let mut text = String::new();
    File::open(path).map_err(failed)?.take(LONGEST_LIST + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > LONGEST_LIST {
        return Err("it is longer than 1 MiB".to_owned());
    }
    Ok(text.lines().map(without_comment).filter(|line| !line.is_empty()).map(Glob::new).collect())
}

fn without_comment(line: &str) -> &str {
    let comment = line.match_indices('#').map(|(at, _)| at);
    let mut starts = comment.filter(|&at| line[..at].is_empty() || line[..at].ends_with([' ', '\t']));
    line[..starts.next().unwrap_or(line.len())].trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn list(bytes: &[u8], mode: u32) -> Result<Vec<Glob>, RequestError> {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("programs");
        fs::write(&path, bytes).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
        let only_from = vec![path.to_string_lossy().into_owned()];
        Programs { only: vec![Glob::new("first")], only_from }.patterns(false)
    }

    #[test]
    fn a_file_has_one_pattern_a_line_and_comments() {
        let text = "# the shop\n\nShop*   # all of it\n  /srv/C#/app.dll\r\n#Old\n\t# more\n/opt/my app/*";
        let expected = ["first", "Shop*", "/srv/C#/app.dll", "/opt/my app/*"].map(Glob::new);
        assert_eq!(list(text.as_bytes(), 0o644), Ok(expected.to_vec()));
        assert_eq!(list(b"", 0o644).map(|all| all.len()), Ok(1));
    }

    #[test]
    fn files_that_cannot_be_used_say_why() {
        let why = |bytes: &[u8], mode| list(bytes, mode).expect_err("no list").0;
        assert!(why(b"Shop", 0o666).ends_with("programs can be written by others"));
        assert!(why(b"\xff\xfe", 0o644).contains("UTF-8"));
        assert!(why(&[b'a'; LONGEST_LIST as usize + 1], 0o644).ends_with("longer than 1 MiB"));
        let missing = Programs { only: Vec::new(), only_from: vec!["/no/such/file".to_owned()] };
        assert!(missing.patterns(false).expect_err("no file").0.starts_with("only-from=/no/such/file: No such file"));
        let folder = Programs { only: Vec::new(), only_from: vec!["/".to_owned()] };
        assert!(folder.patterns(true).expect_err("a folder").0.ends_with("not a plain file"));
    }
}
