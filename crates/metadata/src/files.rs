//! Files of assemblies and PDBs: at their own paths, or inside a single-file program of the same
//! folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::bundle::Bundles;
use crate::{Assembly, MOST_BYTES, Obstacle, Pdb};

/// Reads files; the single-file programs of a folder are examined once.
#[derive(Debug, Default)]
pub struct Files {
    bundles: Bundles,
}

impl Files {
    /// The bytes of a file, of at most [`MOST_BYTES`]; `None` if it is neither a plain file nor in
    /// a single-file program.
    pub fn read(&mut self, path: &Path) -> Option<Vec<u8>> {
        read_bounded(path, MOST_BYTES).or_else(|| self.bundles.read(path))
    }

    /// Whether a file exists for [`read`](Self::read), of any size.
    pub fn has(&mut self, path: &Path) -> bool {
        path.is_file() || self.bundles.has(path)
    }

    /// Paths of the files in a folder, plain or inside a single-file program, in order.
    pub fn paths_in(&mut self, folder: &Path) -> BTreeSet<PathBuf> {
        let plain = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        self.bundles.paths_in(folder).into_iter().chain(plain).collect()
    }

    /// The PDB of the assembly at a path: embedded, next to the assembly, or where the compiler put
    /// it. A PDB from another build is ignored: its lines would be wrong.
    ///
    /// # Errors
    /// The [`Obstacle`] to finding lines.
    pub fn pdb_of(&mut self, assembly: &Assembly, path: &Path) -> Result<Pdb, Obstacle> {
        let (id, written) = assembly.pdb_id().ok_or(Obstacle::NoPdbNamed)?;
        let fitting = |bytes: Vec<u8>| Pdb::read(bytes).ok().filter(|pdb| pdb.id() == Some(id));
        if let Some(pdb) = assembly.embedded_pdb(MOST_BYTES).and_then(fitting) {
            return Ok(pdb);
        }
        let (beside, written) = (path.with_extension("pdb"), PathBuf::from(written));
        let mut of_another_build = None;
        for place in [&beside, &written].into_iter().filter(|place| place.is_absolute()) {
            let Some(bytes) = self.read(place) else { continue };
            match fitting(bytes) {
                Some(pdb) => return Ok(pdb),
                None => _ = of_another_build.get_or_insert_with(|| place.clone()),
            }
        }
        Err(match of_another_build {
            Some(place) => Obstacle::OtherBuild(place),
            None => Obstacle::NoPdb { beside, written },
        })
    }
}

/// The bytes of a plain file of at most `most` bytes.
#[must_use]
pub fn read_bounded(path: &Path, most: u64) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok()?;
    (metadata.is_file() && metadata.len() <= most).then(|| std::fs::read(path).ok())?
}
