//! Remembers names of native functions, and reads folders with symbol files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::elf::{library_symbols, symbols_of_build};
use super::{NativeRange, found, range_with};

/// Finds names of functions in libraries, and remembers them. If a recording is read again while it
/// grows, or period after period, each library is read again only for functions that are new.
#[derive(Debug, Default)]
pub struct NativeNames {
    /// By path and build id.
    libraries: HashMap<(PathBuf, String), KnownPlaces>,
}

impl NativeNames {
    /// Like [`library_symbols`], but remembers the functions.
    pub fn of_library(&mut self, path: &Path, build_id: &str, offsets: &[u32]) -> Vec<NativeRange> {
        let known = self.libraries.entry((path.to_owned(), build_id.to_owned())).or_default();
        let new: Vec<u32> = offsets.iter().copied().filter(|offset| !known.has(*offset)).collect();
        if !new.is_empty() {
            known.add(&new, library_symbols(path, build_id, &new));
        }
        found(offsets, |offset| known.range(u32::try_from(offset).ok()?).cloned())
    }
}

/// What is known of a library.
#[derive(Debug, Default)]
struct KnownPlaces {
    /// By their offsets.
    ranges: BTreeMap<u32, NativeRange>,
    /// Places in no range.
    without: BTreeSet<u32>,
}

impl KnownPlaces {
    fn range(&self, offset: u32) -> Option<&NativeRange> {
        range_with(&self.ranges, offset)
    }

    fn has(&self, offset: u32) -> bool {
        self.range(offset).is_some() || self.without.contains(&offset)
    }

    fn add(&mut self, offsets: &[u32], ranges: Vec<NativeRange>) {
        self.ranges.extend(ranges.into_iter().map(|range| (range.offset, range)));
        let without: Vec<u32> = offsets.iter().copied().filter(|offset| self.range(*offset).is_none()).collect();
        self.without.extend(without);
    }
}

/// A folder with symbol files. They contain the names that are missing from the installed
/// libraries, and are recognised by their build ids.
#[derive(Debug)]
pub struct SymbolFolder {
    folder: PathBuf,
    is_used: bool,
}

impl SymbolFolder {
    /// The folder at this path.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, is_used: false }
    }

    /// Whether the folder had a symbol file for any of the requested libraries.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.is_used
    }

    /// The functions of the library with this build id that contain the offsets, in ascending
    /// order. `name` is the name of the library's file. Empty if the folder has no symbol file of
    /// exactly this library, or if the build id is not known.
    pub fn symbols(&mut self, name: &str, build_id: &str, offsets: &[u32]) -> Vec<NativeRange> {
        let mut files = self.files(name, build_id).into_iter();
        let Some(mut ranges) = files.find_map(|file| symbols_of_build(&file, build_id, offsets)) else {
            return Vec::new();
        };
        ranges.retain(|range| !range.name.is_empty());
        self.is_used = true;
        ranges
    }

    /// Possible paths of the symbol file of a library, in the layouts of the tools that fetch such
    /// files: the names that `dotnet-symbol` writes, the folders of symbol servers, and `.build-id`
    /// of packages. Empty if `name` or `build_id` is invalid.
    fn files(&self, name: &str, build_id: &str) -> Vec<PathBuf> {
        // No path leads out of the folder.
        let is_plain = |text: &str| !text.is_empty() && !text.contains('/') && text != "..";
        let id = build_id.to_ascii_lowercase();
        if !is_plain(name) || id.len() < 3 || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Vec::new();
        }
        let (first, rest) = id.split_at(2);
        let places = [
            format!("{name}.dbg"),
            format!("{name}.debug"),
            name.to_owned(),
            format!(".build-id/{first}/{rest}.debug"),
            format!("{first}/{rest}.debug"),
            format!("_.debug/elf-buildid-sym-{id}/_.debug"),
            format!("{name}/elf-buildid-{id}/{name}"),
        ];
        places.into_iter().map(|place| self.folder.join(place)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use clrscope_testkit::stripped_library;
    use object::read::elf::ElfFile64;

    use super::super::elf::build_id;
    use super::*;

    /// A library without symbols, the file with its symbols, and a place in its function
    /// `find_price`.
    fn stripped(folder: &Path) -> (PathBuf, PathBuf, u32) {
        let [library, symbols] = ["liba.so", "liba.so.dbg"].map(|name| folder.join(name));
        let code = "static __attribute__((noinline)) int find_price(int n) { return n * 7 + 1; }\n\
            int price(int n) { return find_price(n) + find_price(n + 1); }\n";
        stripped_library(code, &library, &symbols);
        let listed = Command::new("nm").arg(&symbols).output().expect("nm").stdout;
        let listed = String::from_utf8(listed).expect("text");
        let line = listed.lines().find(|line| line.contains("find_price")).expect("the function");
        let place = u32::from_str_radix(line.split(' ').next().expect("a number"), 16).expect("a number");
        (library, symbols, place)
    }

    #[test]
    fn symbol_files_are_found_by_build_id_in_every_layout() {
        let made = tempfile::tempdir().expect("a folder");
        let (library, symbols, place) = stripped(made.path());
        let bytes = fs::read(&library).expect("the library");
        let id = build_id(&ElfFile64::parse(&*bytes).expect("a file")).expect("a build id");
        let unnamed = library_symbols(&library, &id, &[place]);
        assert!(unnamed.iter().all(|range| range.name.is_empty()), "{unnamed:?}");
        for at in [
            "liba.so.dbg".to_owned(),
            "liba.so".to_owned(),
            format!(".build-id/{}/{}.debug", &id[..2], &id[2..]),
            format!("_.debug/elf-buildid-sym-{id}/_.debug"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join(&at);
            fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            fs::copy(&symbols, &file).expect("copied");
            let mut known = SymbolFolder::new(folder.path().to_owned());
            let names = |known: &mut SymbolFolder, id: &str| -> Vec<String> {
                known.symbols("liba.so", id, &[place, place + 1]).into_iter().map(|range| range.name).collect()
            };
            assert_eq!(names(&mut known, &id.replace(['0', '1'], "2")), [""; 0], "another build");
            assert_eq!(names(&mut known, ""), [""; 0], "not known which");
            assert!(!known.is_used());
            assert_eq!(names(&mut known, &id.to_uppercase()), ["find_price"], "{at}");
            assert!(known.is_used());
        }
    }

    #[test]
    fn names_are_remembered() {
        let made = tempfile::tempdir().expect("a folder");
        let (_, library, place) = stripped(made.path());
        let mut names = NativeNames::default();
        let first = names.of_library(&library, "", &[place]);
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].name, "find_price");
        fs::remove_file(&library).expect("removed");
        assert_eq!(names.of_library(&library, "", &[place]), first);
        let others = [place, place + 1, 1];
        assert_eq!(names.of_library(&library, "", &others), first, "known are functions, not places");
    }
}
