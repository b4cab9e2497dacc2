//! Single-file programs: modules and PDBs in the program's own file, after the host's code.
//!
//! The host's code contains a known mark, and before the mark the offset of a file list. The format
//! is that of the .NET SDK's bundler, versions 2 (.NET 5) and 6 (.NET 6 and later).

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use crate::MOST_BYTES;

/// The mark in the code of hosts.
const MARK: [u8; 32] = [
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9,
    0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
];
/// Number of bytes of a host in which to search for the mark.
const MOST_OF_HOST: u64 = 64 << 20;
/// Maximum number of executables to examine in a folder.
const MOST_PROGRAMS: usize = 32;
/// Maximum number of folders to examine.
const MOST_FOLDERS: usize = 64;
/// Maximum size of a file list in bytes.
const MOST_OF_LIST: u64 = 4 << 20;

/// Finds files in single-file programs; the programs of each folder are examined once.
#[derive(Debug, Default)]
pub(crate) struct Bundles {
    folders: HashMap<PathBuf, Vec<Bundle>>,
}

impl Bundles {
    /// The file that would lie at `path` if the program in its folder were not a single file.
    pub(crate) fn read(&mut self, path: &Path) -> Option<Vec<u8>> {
        let name = path.file_name()?.to_str()?;
        self.bundles_in(path.parent()?).iter().find_map(|bundle| bundle.read(name))
    }

    /// Whether a program in the folder of `path` contains the file.
    pub(crate) fn has(&mut self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
            return false;
        };
        self.bundles_in(folder).iter().any(|bundle| bundle.files.contains_key(name))
    }

    /// Paths that files in the single-file programs of a folder would have, in order.
    pub(crate) fn paths_in(&mut self, folder: &Path) -> BTreeSet<PathBuf> {
        self.bundles_in(folder).iter().flat_map(|bundle| bundle.files.keys()).map(|name| folder.join(name)).collect()
    }

    fn bundles_in(&mut self, folder: &Path) -> &[Bundle] {
        if !self.folders.contains_key(folder) && self.folders.len() < MOST_FOLDERS {
            self.folders.insert(folder.to_owned(), programs(folder).filter_map(|path| Bundle::open(&path)).collect());
        }
        self.folders.get(folder).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Executables in a folder, in the order of their names.
fn programs(folder: &Path) -> impl Iterator<Item = PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    // A single-file program has no extension on Linux, but its name may contain dots. Only `.so`
    // and `.dll` mark a library.
    let is_library = |path: &Path| path.extension().is_some_and(|ending| ending == "so" || ending == "dll");
    let is_program = |path: &PathBuf| {
        let metadata = std::fs::metadata(path);
        !is_library(path) && metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let mut found: Vec<PathBuf> = entries.filter(is_program).take(MOST_PROGRAMS).collect();
    found.sort();
    found.into_iter()
}

/// A single-file program.
#[derive(Debug)]
struct Bundle {
    path: PathBuf,
    files: HashMap<String, Place>,
}

/// Position of a file in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    offset: u64,
    size: u64,
    /// Compressed size in bytes; 0 if the file is not compressed.
    packed: u64,
}

impl Bundle {
    /// The bundle in an executable; `None` if it is not a bundle.
    fn open(path: &Path) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        let at = list_offset(&mut file)?;
        file.seek(SeekFrom::Start(at)).ok()?;
        let mut list = Vec::new();
        file.take(MOST_OF_LIST).read_to_end(&mut list).ok()?;
        Some(Self { path: path.to_owned(), files: files_of(&list)? })
    }

    /// The whole content of the file with this name.
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        let Place { offset, size, packed } = *self.files.get(name)?;
        let stored = if packed == 0 { size } else { packed };
        if size.max(stored) > MOST_BYTES {
            return None;
        }
        let mut file = File::open(&self.path).ok()?;
        file.seek(SeekFrom::Start(offset)).ok()?;
        let mut bytes = Vec::new();
        file.take(stored).read_to_end(&mut bytes).ok()?;
        if packed > 0 {
            bytes = decompress_to_vec_with_limit(&bytes, usize::try_from(size).ok()?).ok()?;
        }
        (bytes.len() as u64 == size).then_some(bytes)
    }
}

/// Offset of the file list, which the host stores before the mark; `None` if there is no mark or no
/// offset.
fn list_offset(file: &mut File) -> Option<u64> {
    let mut magic = [0; 4];
    file.read_exact(&mut magic).ok()?;
    if magic != *b"\x7fELF" {
        return None;
    }
    const BLOCK: u64 = 1 << 20;
    const BEFORE: usize = 8;
    let mut block = Vec::new();
    let mut left = MOST_OF_HOST;
    while left > 0 {
        // Keep the end of the previous block: the mark may cross the border.
        block.drain(..block.len().saturating_sub(MARK.len() + BEFORE));
        let read = file.by_ref().take(BLOCK.min(left)).read_to_end(&mut block).ok()?;
        if let Some(at) = position(&block, &MARK).filter(|&at| at >= BEFORE) {
            let offset = u64::from_le_bytes(*block[at - BEFORE..].first_chunk()?);
            return (offset > 0).then_some(offset);
        }
        if read == 0 {
            return None;
        }
        left = left.saturating_sub(read as u64);
    }
    None
}

/// Position of the first occurrence of `wanted`.
fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let (&first, last) = (wanted.first()?, bytes.len().checked_sub(wanted.len())?);
    let mut at = 0;
    while at <= last {
        at += bytes[at..=last].iter().position(|&byte| byte == first)?;
        if bytes[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Positions of the files in a list, by name; `None` if the list is damaged or has an unknown
/// format.
fn files_of(list: &[u8]) -> Option<HashMap<String, Place>> {
    List(list).files()
}

/// Parses bytes as a file list, for fuzzing.
pub(crate) fn read_list(bytes: &[u8]) {
    std::hint::black_box(files_of(bytes));
}

/// The unread rest of a file list.
struct List<'a>(&'a [u8]);

impl List<'_> {
    /// The files by their names.
    fn files(mut self) -> Option<HashMap<String, Place>> {
        let (version, _minor, count) = (self.u32()?, self.u32()?, self.u32()?);
        self.text()?;
        if version < 2 {
            return None;
        }
        // Two offsets that hosts need early, and flags.
        (0..5).try_for_each(|_| self.u64().map(drop))?;
        let mut files = HashMap::new();
        for _ in 0..count {
            let (offset, size) = (self.u64()?, self.u64()?);
            let packed = if version >= 6 { self.u64()? } else { 0 };
            self.read_bytes(1)?;
            files.insert(self.text()?, Place { offset, size, packed });
        }
        Some(files)
    }

    fn read_bytes(&mut self, bytes: usize) -> Option<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.read_bytes(4)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn u64(&mut self) -> Option<u64> {
        self.read_bytes(8)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// A text with its length in front. Each byte of the length holds seven bits.
    fn text(&mut self) -> Option<String> {
        let mut length = 0_usize;
        for shift in [0, 7, 14] {
            let byte = self.read_bytes(1)?[0];
            length |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return String::from_utf8(self.read_bytes(length)?.to_vec()).ok();
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clrscope_testkit::single_file;

    use super::*;

    #[test]
    fn files_of_a_single_file_program_are_read_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("program");
        let read = |name: &str| Bundles::default().read(&folder.path().join(name));
        for version in [2, 6] {
            let long = vec![7; 100_000];
            single_file(&program, version, &[("A.dll", &long, version == 6), ("B.dll", b"short", false)]);
            assert_eq!((read("A.dll"), read("B.dll"), read("C.dll")), (Some(long), Some(b"short".to_vec()), None));
            let whole = fs::read(&program).expect("the program");
            for length in (0..whole.len()).rev().step_by(whole.len() / 50) {
                fs::write(&program, &whole[..length]).expect("written");
                assert_eq!(read("B.dll").filter(|bytes| bytes != b"short"), None, "cut at {length}");
            }
        }
        single_file(&program, 1, &[("B.dll", b"short", false)]);
        assert_eq!(read("B.dll"), None, "a format that is not known");
    }
}
