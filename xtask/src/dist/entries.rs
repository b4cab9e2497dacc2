//! Writes the files of packages so that the same files always give the same bytes: sorted, all with
//! the same time and owner.

use std::collections::BTreeSet;
use std::io::{Cursor, Write};

use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

/// The time of all files, 1980-01-01: archives of the form zip know no earlier one.
const TIME: u64 = 315_532_800;

/// A file in a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    /// Path in the package, with `/`.
    pub(super) path: String,
    /// Whether the file is executable.
    pub(super) is_program: bool,
    /// Contents of the file.
    pub(super) bytes: Vec<u8>,
}

impl Entry {
    /// Creates a file that is not executable.
    pub(super) fn file(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), is_program: false, bytes: bytes.into() }
    }

    /// Creates an executable file.
    pub(super) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), is_program: true, bytes: bytes.into() }
    }

    fn mode(&self) -> u32 {
        if self.is_program { 0o755 } else { 0o644 }
    }
}

/// Writes a tar archive with the files and their parent folders.
pub(super) fn tar(mut entries: Vec<Entry>) -> Result<Vec<u8>, String> {
    entries.sort();
    let mut archive = tar::Builder::new(Vec::new());
    let mut folders = BTreeSet::new();
    for entry in &entries {
        let ends = entry.path.match_indices('/').map(|(at, _)| &entry.path[..=at]);
        for folder in ends.filter(|folder| !folders.contains(*folder)).collect::<Vec<_>>() {
            append(&mut archive, EntryType::Directory, folder, 0o755, &[])?;
            folders.insert(folder.to_owned());
        }
        append(&mut archive, EntryType::Regular, &entry.path, entry.mode(), &entry.bytes)?;
    }
    archive.into_inner().map_err(|error| error.to_string())
}

fn append(
    archive: &mut tar::Builder<Vec<u8>>,
    kind: EntryType,
    path: &str,
    mode: u32,
    bytes: &[u8],
) -> Result<(), String> {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(TIME);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(bytes.len() as u64);
    archive.append_data(&mut header, path, bytes).map_err(|error| format!("{path}: {error}"))
}

/// Compresses with gzip, without a name or a time.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    out.write_all(bytes).map_err(|error| error.to_string())?;
    out.finish().map_err(|error| error.to_string())
}

/// Writes a zip archive with the files in this order.
pub(super) fn zip(entries: &[Entry]) -> Result<Vec<u8>, String> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(entry.mode());
        archive.start_file(entry.path.as_str(), options).map_err(|error| error.to_string())?;
        archive.write_all(&entry.bytes).map_err(|error| error.to_string())?;
    }
    Ok(archive.finish().map_err(|error| error.to_string())?.into_inner())
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    use clrscope_testkit::scratch;

    fn entries() -> Vec<Entry> {
        vec![Entry::program("a/bin/run", "#!/bin/sh\necho ran\n"), Entry::file("a/README", "text")]
    }

    #[test]
    fn the_order_in_which_files_are_given_changes_nothing() {
        let mut backwards = entries();
        backwards.reverse();
        assert_eq!(tar(entries()).expect("an archive"), tar(backwards).expect("an archive"));
    }

    /// The system's own programs read what is written.
    #[test]
    fn archives_are_read_by_others_with_modes_owner_and_time() {
        let place = scratch();
        let packed = gzip(&tar(entries()).expect("an archive")).expect("gzip");
        std::fs::write(place.path().join("a.tar.gz"), packed).expect("a file");
        let mut list = Command::new("tar");
        list.current_dir(place.path()).env("TZ", "UTC").args(["--numeric-owner", "-tvzf", "a.tar.gz"]);
        let listed = clrscope_testkit::run(list).stdout_text();
        let words: Vec<Vec<&str>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
        let expected = [
            ["drwxr-xr-x", "0/0", "0", "1980-01-01", "00:00", "a/"],
            ["-rw-r--r--", "0/0", "4", "1980-01-01", "00:00", "a/README"],
            ["drwxr-xr-x", "0/0", "0", "1980-01-01", "00:00", "a/bin/"],
            ["-rwxr-xr-x", "0/0", "19", "1980-01-01", "00:00", "a/bin/run"],
        ];
        assert_eq!(words, expected);
        let mut unpack = Command::new("tar");
        unpack.current_dir(place.path()).args(["-xzf", "a.tar.gz"]);
        clrscope_testkit::run(unpack).expect_success();
        let ran = clrscope_testkit::run(Command::new(place.path().join("a/bin/run")));
        assert_eq!(ran.stdout_text(), "ran\n");
    }

    #[test]
    fn zips_are_read_by_others() {
        let place = scratch();
        std::fs::write(place.path().join("a.zip"), zip(&entries()).expect("a zip")).expect("a file");
        let mut list = Command::new("python3");
        list.current_dir(place.path()).args(["-m", "zipfile", "-l", "a.zip"]);
        let listed = clrscope_testkit::run(list).stdout_text();
        let words: Vec<Vec<&str>> = listed.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        let expected = [["a/bin/run", "1980-01-01", "00:00:00", "19"], ["a/README", "1980-01-01", "00:00:00", "4"]];
        assert_eq!(words, expected);
    }
}
