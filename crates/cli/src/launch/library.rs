//! Checks whether the runtime could load a profiler library that is not ours.

use std::fs::{self, File};
use std::io::Read;
use std::path::{self, Path, PathBuf};

use crate::errors::{Failure, reason, shown};

/// Symbol that the runtime looks up in every profiler library.
const ENTRY: &[u8] = b"DllGetClassObject\0";
/// Type of a shared object in the file's header.
const SHARED_OBJECT: u16 = 3;
/// The processor of this tool, with its number in the file's header.
const MACHINE: (u16, &str) = if cfg!(target_arch = "aarch64") { (183, "arm64") } else { (62, "x86-64") };

/// Checks the library and returns its absolute path, because the runtime would search a bare name
/// in the system's folders.
///
/// # Errors
/// When it is no shared library for this machine with the entry point of a profiler.
pub(crate) fn check(library: &Path) -> Result<PathBuf, Failure> {
    let refuse = |why: &str, hint: &str| Failure::new(format!("cannot load {}", shown(library)), why, hint);
    let build = "give the library that 'cargo build --release' made, such as target/release/libmine.so";
    let absolute = path::absolute(library).map_err(|error| refuse(&reason(&error), build))?;
    if absolute.is_dir() {
        return Err(refuse("it is a folder", build));
    }
    let mut bytes = Vec::new();
    let read = File::open(&absolute).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map_err(|error| refuse(&reason(&error), build))?;
    let half = |at: usize| bytes.get(at..at + 2).map(|half| u16::from_le_bytes([half[0], half[1]]));
    if !bytes.starts_with(b"\x7fELF") || half(16) != Some(SHARED_OBJECT) {
        return Err(refuse("it is not a shared library", build));
    }
    if half(18) != Some(MACHINE.0) {
        return Err(refuse(
            &format!("it is not for this machine's processor, {}", MACHINE.1),
            "build it for this machine",
        ));
    }
    if !bytes.windows(ENTRY.len()).any(|part| part == ENTRY) {
        let hint = "export it (in Rust: clr_profiler::export_profiler!, and crate-type = [\"cdylib\"])";
        return Err(refuse("it has no DllGetClassObject, by which the runtime makes a profiler", hint));
    }
    Ok(absolute)
}

/// Parses a class id with or without braces. Returns it in the runtime's format.
pub(crate) fn parse_class_id(text: &str) -> Option<String> {
    let text = text.trim();
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(text);
    let groups: Vec<&str> = inner.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let digits = inner.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    (digits && lengths == [8, 4, 4, 4, 12]).then(|| format!("{{{}}}", inner.to_ascii_uppercase()))
}

/// Reads the load log that [`LOAD_LOG_VARIABLE`] named. Each line has the process, the kind and a
/// text.
pub(crate) fn read_load_log(file: &Path) -> Vec<LoadLogEntry> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(LoadLogEntry::parse).collect()
}

/// Environment variable that names the load log: libraries that use the crate `clr-profiler` write
/// an entry there when they are loaded.
pub(crate) const LOAD_LOG_VARIABLE: &str = "CLR_PROFILER_LOAD_LOG";

/// One entry of the load log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoadLogEntry {
    /// The process that loaded the library.
    pub(crate) pid: u32,
    /// `loaded`, `refused`, `class` or `ended`.
    pub(crate) kind: String,
    /// Details of the entry.
    pub(crate) words: String,
}

impl LoadLogEntry {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(3, ' ');
        let pid = parts.next()?.parse().ok()?;
        let kind = parts.next()?.to_owned();
        Some(Self { pid, kind, words: parts.next().unwrap_or_default().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_ids_are_read_with_and_without_braces() {
        let canonical = Some("{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A11}".to_owned());
        assert_eq!(parse_class_id("{c7e1a7d4-3b7b-4c2e-9b7f-0c15c09e5a11}"), canonical);
        assert_eq!(parse_class_id(" C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A11 "), canonical);
        for bad in
            ["", "{}", "C7E1A7D4", "{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A1}", "C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A1g"]
        {
            assert_eq!(parse_class_id(bad), None, "{bad}");
        }
    }

    #[test]
    fn entries_are_lines_and_others_are_passed_over() {
        let temp = tempfile::tempdir().expect("a folder");
        let file = temp.path().join("load-log");
        fs::write(&file, "7 loaded\nnonsense\n7 refused: no\n8 class {A} {B}\n").expect("a file");
        let entry = |pid, kind: &str, words: &str| LoadLogEntry { pid, kind: kind.into(), words: words.into() };
        assert_eq!(
            read_load_log(&file),
            [entry(7, "loaded", ""), entry(7, "refused:", "no"), entry(8, "class", "{A} {B}")]
        );
    }
}
