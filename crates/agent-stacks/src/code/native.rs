//! Native modules and other places with code, found in the system's list of mappings.
//!
//! Reads the list and never asks the dynamic loader: a thread may hold the loader's lock for as
//! long as a constructor runs.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clrscope_agent_base::os::memory;
use clrscope_agent_base::os::process::Mapping;

use super::elf::Elf;

/// What an executable range of addresses contains.
#[derive(Debug, Clone)]
pub(crate) enum Contents {
    /// A native library, the main executable, or the system's page of functions (vDSO).
    Library(Arc<Library>),
    /// Code that only the runtime knows: compiled methods and stubs. If `is_image`, an image of an
    /// assembly with methods compiled at build time.
    Runtime { is_image: bool },
}

/// A loaded library.
#[derive(Debug)]
pub struct Library {
    /// File name of the library.
    pub name: String,
    /// Path of the file, as mapped by the process.
    pub path: PathBuf,
    /// Address at which the file's lowest segment is loaded.
    pub base: usize,
    pub(crate) elf: Elf,
    /// Whether this is the program's own file.
    pub(crate) is_main: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct MappedRange {
    addresses: Range<usize>,
    contents: Contents,
}

impl PartialEq for Contents {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Library(one), Self::Library(other)) => Arc::ptr_eq(one, other),
            (Self::Runtime { is_image: one }, Self::Runtime { is_image: other }) => one == other,
            _ => false,
        }
    }
}

/// The system's list of mappings, as it was last read.
#[derive(Default)]
pub(crate) struct NativeMap {
    mapped: Vec<MappedRange>,
    libraries: HashMap<(PathBuf, usize), Option<Arc<Library>>>,
    main: PathBuf,
}

impl NativeMap {
    /// Takes over the current list. Returns whether any executable range is gone or has other
    /// contents.
    pub(super) fn update(&mut self, list: &str) -> bool {
        if self.main.as_os_str().is_empty() {
            self.main = clrscope_agent_base::os::process::executable();
        }
        let mut bases: HashMap<&str, usize> = HashMap::new();
        let mut mapped = Vec::new();
        for line in list.lines().filter_map(Mapping::parse) {
            if line.offset == 0 && !line.path.is_empty() {
                bases.insert(line.path, line.addresses.start);
            }
            if line.can_run() {
                let base = bases.get(line.path).copied().unwrap_or(line.addresses.start);
                let contents = self.contents(&line, base);
                mapped.push(MappedRange { addresses: line.addresses, contents });
            }
        }
        let before = std::mem::replace(&mut self.mapped, mapped);
        // Code is added all the time, and adjacent ranges become one.
        !before.iter().all(|mapped| self.still_has(mapped))
    }

    /// Whether all addresses of an earlier mapping still have the same contents.
    fn still_has(&self, before: &MappedRange) -> bool {
        let mut at = before.addresses.start;
        while at < before.addresses.end {
            match self.mapping(at) {
                Some(now) if now.contents == before.contents => at = now.addresses.end,
                _ => return false,
            }
        }
        true
    }

    fn mapping(&self, address: usize) -> Option<&MappedRange> {
        let after = self.mapped.partition_point(|mapped| mapped.addresses.start <= address);
        self.mapped.get(after.checked_sub(1)?).filter(|found| found.addresses.contains(&address))
    }

    /// What an address contains; `None` if the list does not say that the address is executable.
    pub(crate) fn at(&self, address: usize) -> Option<&Contents> {
        self.mapping(address).map(|mapped| &mapped.contents)
    }

    fn contents(&mut self, line: &Mapping<'_>, base: usize) -> Contents {
        if line.path == "[vdso]" {
            return self.library(Path::new("[vdso]"), line.addresses.start, || image(&line.addresses));
        }
        let is_file = line.is_file();
        if !is_file || line.path.ends_with(".dll") {
            return Contents::Runtime { is_image: is_file };
        }
        let path = line.path.strip_suffix(" (deleted)").unwrap_or(line.path);
        let found = self.library(Path::new(path), base, || Elf::of_file(Path::new(path)));
        match &found {
            // In a single-file program, assemblies lie behind the program.
            Contents::Library(library) if !library.holds(line.addresses.start) => Contents::Runtime { is_image: true },
            _ => found,
        }
    }

    fn library(&mut self, path: &Path, base: usize, read: impl FnOnce() -> Option<Elf>) -> Contents {
        let main = &self.main;
        let known = self.libraries.entry((path.to_owned(), base)).or_insert_with(|| {
            let elf = read()?;
            let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
            Some(Arc::new(Library { name, path: path.to_owned(), base, elf, is_main: path == main }))
        });
        known.clone().map_or(Contents::Runtime { is_image: true }, Contents::Library)
    }
}

impl Library {
    /// Whether an address lies in the loaded part of the file.
    fn holds(&self, address: usize) -> bool {
        let bytes = self.elf.loaded.end - self.elf.loaded.start;
        address >= self.base && ((address - self.base) as u64) < bytes
    }

    /// The addresses at which the library is loaded.
    pub(crate) fn addresses(&self) -> Range<usize> {
        self.base..self.base + (self.elf.loaded.end - self.elf.loaded.start) as usize
    }
}

fn image(addresses: &Range<usize>) -> Option<Elf> {
    let mut bytes = vec![0; addresses.len()];
    memory::copy_if_there(addresses.start, &mut bytes).then(|| Elf::of_image(&bytes))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_libraries_and_of_the_program_are_found_where_they_are_loaded() {
        let mut map = NativeMap::default();
        assert!(!map.update(&clrscope_agent_base::os::process::mappings()), "nothing is gone");
        let library = |address: usize| match map.at(address) {
            Some(Contents::Library(library)) => Arc::clone(library),
            other => panic!("{other:?}"),
        };
        let libc = library(libc::getpid as *const () as usize);
        assert!(libc.name.starts_with("libc") && !libc.is_main, "{}", libc.name);
        let own =
            library(functions_of_libraries_and_of_the_program_are_found_where_they_are_loaded as *const () as usize);
        assert!(own.is_main && own.elf.eh_frame.is_some());
        assert_eq!(own.elf.loaded.start, 0, "tests are linked to be loaded anywhere");
        assert!(map.at((&raw const *Box::new(1)).addr()).is_none(), "data can't be run");
        assert!(map.at(0).is_none() && map.at(usize::MAX).is_none());
    }

    #[test]
    fn code_that_comes_leaves_what_was_there_and_code_that_goes_does_not() {
        let mut map = NativeMap::default();
        let list = |code: &[&str]| {
            let lines =
                code.iter().map(|addresses| format!("{addresses} r-xs 00000000 00:01 7 /memfd:code (deleted)\n"));
            lines.chain(["7000-9000 r-xp 00001000 fd:01 7 /a/b.dll\n".to_owned()]).collect::<String>()
        };
        assert!(!map.update(&list(&["1000-2000"])), "nothing was there");
        assert!(!map.update(&list(&["1000-3000", "3000-5000", "5000-6000"])), "more");
        assert!(!map.update(&list(&["1000-6000"])), "pieces that became one");
        assert!(map.update(&list(&["2000-6000"])), "the first piece is gone");
        assert!(map.update(&list(&[])) && !map.update(&list(&["2000-6000"])), "all of it is gone, and comes again");
        let other = list(&["2000-6000"]).replace("/memfd:code (deleted)", "/a/c.dll");
        assert!(map.update(&other), "something else lies there");
    }
}
