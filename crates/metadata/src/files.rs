//! Files of assemblies and PDBs.

use std::path::Path;

use crate::{Assembly, MOST_BYTES, Pdb};

/// The bytes of a plain file of at most `most` bytes.
#[must_use]
pub fn read_bounded(path: &Path, most: u64) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok()?;
    (metadata.is_file() && metadata.len() <= most).then(|| std::fs::read(path).ok())?
}

/// The PDB of the assembly at a path: embedded, beside the assembly, or where the compiler put it. A PDB that was not made
/// together with the assembly is passed over: its lines would be wrong.
#[must_use]
pub fn pdb_of(assembly: &Assembly, path: &Path) -> Option<Pdb> {
    let (id, written) = assembly.pdb_id()?;
    let fitting = |bytes: Vec<u8>| Pdb::read(bytes).ok().filter(|pdb| pdb.id() == Some(id));
    let read = |path: &Path| read_bounded(path, MOST_BYTES).and_then(fitting);
    let written = Path::new(written);
    assembly
        .embedded_pdb(MOST_BYTES)
        .and_then(fitting)
        .or_else(|| read(&path.with_extension("pdb")))
        .or_else(|| written.is_absolute().then(|| read(written))?)
}
