//! Files and lines of managed code, from portable PDBs: embedded in the module, or beside it. Names of native code, from the
//! symbols of libraries and of the kernel.
//!
//! ```no_run
//! use clrscope_symbols::Lines;
//!
//! let mut lines = Lines::default();
//! if let Some(place) = lines.find("/app/Shop.dll", 0x0600_0001, 0) {
//!     println!("{}:{}", place.file, place.line);
//! }
//! ```
//!
//! Modules and PDBs are read on the machine where the lines are looked up, at most [`MOST_BYTES`] of each: at the module's path, or
//! in a single-file program in that folder; the PDB in the module, beside it, in the program, or where the compiler wrote it. A PDB
//! that was not made together with the module is passed over: its lines would be wrong. Files that are damaged, missing or too
//! large give no lines and no error: a line is an extra, and what asks for one shows the method without. [`Lines::obstacle`] says
//! why a module has none.

mod bundle;
mod debug;
mod native;
mod obstacle;
mod sources;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use symbolic_ppdb::{PortablePdb, PortablePdbCache, PortablePdbCacheConverter};

use bundle::Bundles;
use debug::DebugInformation;

pub use native::{NativeRange, kernel_symbols, library_symbols};
pub use obstacle::Obstacle;
pub use sources::Sources;

/// Largest module and largest PDB that are read, bytes.
pub const MOST_BYTES: u64 = 256 << 20;

/// Bytes of code before the first line of a method that are passed over.
const MOST_BEFORE: u32 = 256;

/// A place in a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// Path of the file, as the compiler was given it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// Finds lines; each module and its PDB are read once, when the first line of the module is asked for.
#[derive(Debug, Default)]
pub struct Lines {
    /// The converted PDB by the module's path, or what keeps the module from having one.
    modules: HashMap<PathBuf, Result<Vec<u8>, Obstacle>>,
    bundles: Bundles,
}

impl Lines {
    /// The first line of the method with the metadata token `method`, in the module at the path `module`, otherwise as
    /// [`find`](Self::find). Code that the compiler put before the first line, as in state machines, is passed over.
    pub fn first(&mut self, module: impl AsRef<Path>, method: u32) -> Option<SourceLine> {
        let module = module.as_ref();
        (0..MOST_BEFORE).find_map(|at| self.find(module, method, at))
    }

    /// The line of the instruction at `il_offset` of the method with the metadata token `method`, in the module at the path
    /// `module`. `None` where there is no PDB, or the PDB has no line for the instruction; an empty path and a token of row 0
    /// (dynamic methods have them) have none.
    pub fn find(&mut self, module: impl AsRef<Path>, method: u32, il_offset: u32) -> Option<SourceLine> {
        let module = module.as_ref();
        // The top byte of a method's token names the table, the rest is the row.
        let row = method & 0x00FF_FFFF;
        if module.as_os_str().is_empty() || row == 0 {
            return None;
        }
        if !self.modules.contains_key(module) {
            let converted = self.pdb(module).and_then(|pdb| converted(&pdb).ok_or(Obstacle::NoPdbNamed));
            self.modules.insert(module.to_owned(), converted);
        }
        let cache = PortablePdbCache::parse(self.modules.get(module)?.as_deref().ok()?).ok()?;
        let found = cache.lookup(row, il_offset)?;
        Some(SourceLine { file: found.file_name.to_owned(), line: found.line })
    }

    /// Obstacle to lines of the module at the path `module`; `None` where it has lines, or none were asked for.
    #[must_use]
    pub fn obstacle(&self, module: impl AsRef<Path>) -> Option<&Obstacle> {
        self.modules.get(module.as_ref())?.as_ref().err()
    }

    /// Sources that compilers put into the PDBs of the modules that lines were found of, by the paths of their files: what
    /// generators wrote lies nowhere else.
    #[must_use]
    pub fn embedded_sources(&mut self) -> HashMap<String, String> {
        let has_lines = |(path, pdb): (&PathBuf, &Result<Vec<u8>, Obstacle>)| pdb.is_ok().then(|| path.clone());
        let modules: Vec<PathBuf> = self.modules.iter().filter_map(has_lines).collect();
        let pdbs = modules.iter().filter_map(|module| self.pdb(module).ok());
        pdbs.flat_map(|pdb| sources::embedded(&pdb)).collect()
    }

    /// The PDB of the module at a path, of one build with the module.
    fn pdb(&mut self, module: &Path) -> Result<Vec<u8>, Obstacle> {
        let image = read_bounded(module).or_else(|| self.bundles.read(module)).ok_or(Obstacle::NoModule)?;
        let DebugInformation { guid, path, embedded } = debug::information(&image).ok_or(Obstacle::NoPdbNamed)?;
        let is_same = |pdb: &Vec<u8>| {
            let id = PortablePdb::parse(pdb).ok().and_then(|pdb| pdb.pdb_id());
            id.is_some_and(|id| id.uuid().to_bytes_le() == guid)
        };
        if let Some(embedded) = embedded.filter(is_same) {
            return Ok(embedded);
        }
        let (beside, written) = (module.with_extension("pdb"), PathBuf::from(path));
        let mut of_another_build = None;
        for place in [&beside, &written].into_iter().filter(|place| place.is_absolute()) {
            let Some(pdb) = read_bounded(place).or_else(|| self.bundles.read(place)) else { continue };
            if is_same(&pdb) {
                return Ok(pdb);
            }
            of_another_build.get_or_insert_with(|| place.clone());
        }
        Err(match of_another_build {
            Some(place) => Obstacle::OtherBuild(place),
            None => Obstacle::NoPdb { beside, written },
        })
    }
}

/// A PDB converted for looking up.
fn converted(pdb: &[u8]) -> Option<Vec<u8>> {
    let mut converter = PortablePdbCacheConverter::new();
    converter.process_portable_pdb(&PortablePdb::parse(pdb).ok()?).ok()?;
    let mut converted = Vec::new();
    converter.serialize(&mut converted).ok()?;
    Some(converted)
}

/// The bytes of a plain file of at most [`MOST_BYTES`].
fn read_bounded(path: &Path) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok()?;
    (metadata.is_file() && metadata.len() <= MOST_BYTES).then(|| std::fs::read(path).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first method of a module that has a line.
    fn first_line(module: &Path) -> Option<SourceLine> {
        let mut lines = Lines::default();
        (1..200).find_map(|row| lines.find(module, 0x0600_0000 | row, 0))
    }

    #[test]
    fn the_embedded_pdb_of_a_fixture_is_found_and_read() {
        let module = clrscope_testkit::fixture("Exceptions");
        let image = std::fs::read(&module).expect("the fixture");
        assert!(debug::information(&image).expect("debug information").embedded.is_some());
        let main = first_line(&module).expect("a method with lines");
        assert!(main.file.ends_with(".cs") && main.line > 0, "{main:?}");
    }

    /// Takes the embedded PDB of a fixture out, puts it beside a module whose own is damaged, and finds the lines there.
    #[test]
    fn a_pdb_beside_its_module_is_found_and_one_of_another_module_is_not() {
        let image = std::fs::read(clrscope_testkit::fixture("Exceptions")).expect("the fixture");
        let embedded = debug::information(&image).and_then(|debug| debug.embedded).expect("an embedded PDB");
        let other = std::fs::read(clrscope_testkit::fixture("Throws")).expect("the other fixture");
        let other = debug::information(&other).and_then(|debug| debug.embedded).expect("an embedded PDB");
        let folder = tempfile::tempdir().expect("a folder");
        let module = folder.path().join("Beside.dll");
        std::fs::write(&module, without_embedded(&image)).expect("written");
        assert_eq!(first_line(&module), None, "nothing is beside it");
        let mut lines = Lines::default();
        assert_eq!((lines.find(&module, 0x0600_0001, 0), lines.obstacle("/other")), (None, None));
        let words = lines.obstacle(&module).expect("an obstacle").to_string();
        assert!(words.contains(&format!("no PDB at {}", module.with_extension("pdb").display())), "{words}");
        std::fs::write(folder.path().join("Beside.pdb"), &embedded).expect("written");
        assert_eq!(first_line(&module), first_line(&clrscope_testkit::fixture("Exceptions")));
        std::fs::write(folder.path().join("Beside.pdb"), &other).expect("written");
        assert_eq!(first_line(&module), None, "the PDB of another module");
        assert_eq!(lines.find(&module, 0x0600_0001, 0), None);
        let mut lines = Lines::default();
        assert_eq!(lines.find(&module, 0x0600_0001, 0), None);
        let words = lines.obstacle(&module).expect("an obstacle").to_string();
        assert!(words.contains("is of another build"), "{words}");
    }

    /// A single-file program has its modules behind the host's code, and its PDB there, or beside it.
    #[test]
    fn lines_of_a_single_file_program_are_found() {
        let image = std::fs::read(clrscope_testkit::fixture("Exceptions")).expect("the fixture");
        let embedded = debug::information(&image).and_then(|debug| debug.embedded).expect("an embedded PDB");
        let without = without_embedded(&image);
        let expected = first_line(&clrscope_testkit::fixture("Exceptions"));
        let folder = tempfile::tempdir().expect("a folder");
        let (module, program) = (folder.path().join("Alone.dll"), folder.path().join("Alone"));
        assert_eq!(first_line(&module), None, "there is no module");
        let put = |files: &[(&str, &[u8], bool)]| bundle::tests::put(&program, &bundle::tests::bundle(6, files));
        put(&[("Alone.dll", &image, true)]);
        assert_eq!(first_line(&module), expected, "embedded in the module");
        put(&[("Alone.dll", &without, false), ("Alone.pdb", &embedded, true)]);
        assert_eq!(first_line(&module), expected, "in the program");
        put(&[("Alone.dll", &without, false)]);
        assert_eq!(first_line(&module), None, "nowhere");
        std::fs::write(folder.path().join("Alone.pdb"), &embedded).expect("written");
        assert_eq!(first_line(&module), expected, "beside the program");
    }

    /// The image with a damaged signature of its embedded PDB, which is then no embedded PDB.
    fn without_embedded(image: &[u8]) -> Vec<u8> {
        let mut image = image.to_vec();
        let places: Vec<usize> = (0..image.len() - 4).filter(|&at| &image[at..at + 4] == b"MPDB").collect();
        places.iter().for_each(|&at| image[at] = b'X');
        assert!(debug::information(&image).expect("debug information").embedded.is_none());
        image
    }

    #[test]
    fn damaged_modules_have_no_lines() {
        let image = std::fs::read(clrscope_testkit::fixture("Exceptions")).expect("the fixture");
        for length in (0..image.len()).step_by(97) {
            // The answer doesn't matter: the call returns.
            let _ = debug::information(&image[..length]);
        }
        assert!(debug::information(b"MZ").is_none());
        assert_eq!(first_line(Path::new("/nonexistent/module.dll")), None);
    }
}
