//! File and line of a place in the IL, from portable PDBs: embedded in the module, or beside it.
//!
//! Modules and PDBs are read on the machine where the report is made. A PDB that was not made together
//! with the module is passed over: its lines would be wrong.

mod pe;

use std::collections::HashMap;
use std::path::Path;

use clrscope_analysis::{Frame, FunctionRef};
use symbolic_ppdb::{PortablePdb, PortablePdbCache, PortablePdbCacheConverter};

/// Most bytes read of a module or a PDB.
const MOST_BYTES: u64 = 256 << 20;

/// A place in a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The file as the compiler was told.
    pub(crate) file: String,
    /// The line, from 1.
    pub(crate) line: u32,
}

/// Looks lines up, each module's PDB being read once.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The converted PDB by the module's path; `None` where there is none at hand.
    modules: HashMap<String, Option<Vec<u8>>>,
}

impl Lines {
    /// Where the frame stands, if that can be known.
    pub(crate) fn of(&mut self, frame: &Frame<'_>) -> Option<Spot> {
        self.at(&frame.function, frame.il_offset?)
    }

    /// Where an offset in a function's IL stands.
    pub(crate) fn at(&mut self, function: &FunctionRef<'_>, il_offset: u32) -> Option<Spot> {
        let path = &function.module.path;
        // The top byte of a method's token says that it is one, the rest is its row.
        let row = function.token() & 0x00FF_FFFF;
        if path.is_empty() || row == 0 {
            return None;
        }
        let known = self.modules.entry(path.clone()).or_insert_with(|| read(Path::new(path)));
        let cache = PortablePdbCache::parse(known.as_deref()?).ok()?;
        let found = cache.lookup(row, il_offset)?;
        Some(Spot { file: found.file_name.to_owned(), line: found.line })
    }
}

/// The module's PDB, converted for looking up.
fn read(module: &Path) -> Option<Vec<u8>> {
    let image = bounded(module)?;
    let debug = pe::debug_information(&image)?;
    let pdb = match debug.embedded {
        Some(embedded) => embedded,
        None => bounded(&module.with_extension("pdb"))?,
    };
    let pdb = PortablePdb::parse(&pdb).ok()?;
    let same = pdb.pdb_id().is_some_and(|id| id.uuid().to_bytes_le() == debug.guid);
    if !same {
        return None;
    }
    let mut converter = PortablePdbCacheConverter::new();
    converter.process_portable_pdb(&pdb).ok()?;
    let mut converted = Vec::new();
    converter.serialize(&mut converted).ok()?;
    Some(converted)
}

fn bounded(path: &Path) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok()?;
    (metadata.is_file() && metadata.len() <= MOST_BYTES).then(|| std::fs::read(path).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_pdb_of_a_fixture_is_found_and_read() {
        let module = clrscope_testkit::fixture("Exceptions");
        let image = std::fs::read(&module).expect("the fixture");
        assert!(pe::debug_information(&image).expect("debug information").embedded.is_some());
        let converted = read(&module).expect("a PDB");
        let cache = PortablePdbCache::parse(&converted).expect("converted");
        let main = (1..200).find_map(|row| cache.lookup(row, 0)).expect("a method with lines");
        assert!(main.file_name.ends_with(".cs") && main.line > 0, "{main:?}");
    }

    #[test]
    fn damaged_modules_have_no_lines() {
        let image = std::fs::read(clrscope_testkit::fixture("Exceptions")).expect("the fixture");
        for length in (0..image.len()).step_by(97) {
            // Whatever comes of it, it comes back.
            let _ = pe::debug_information(&image[..length]);
        }
        assert!(pe::debug_information(b"MZ").is_none());
        assert_eq!(read(Path::new("/nonexistent/module.dll")), None);
    }
}
