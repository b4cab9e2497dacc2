//! Reads assemblies and PDBs, from plain files or from a single-file program in the same folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::bundle::Bundles;
use crate::{Assembly, MOST_BYTES, Obstacle, Pdb};

/// Reads plain files and files inside single-file programs. The programs of a folder are examined
/// only once.
#[derive(Debug, Default)]
pub struct Files {
    bundles: Bundles,
}

impl Files {
    /// The bytes of a file, from a plain file or from a single-file program. `None` if there is no
    /// such file, or it is longer than [`MOST_BYTES`].
    pub fn read(&mut self, path: &Path) -> Option<Vec<u8>> {
        read_bounded(path, MOST_BYTES).or_else(|| self.bundles.read(path))
    }

    /// Whether [`read`](Self::read) would find a file, whatever its size.
    pub fn has(&mut self, path: &Path) -> bool {
        path.is_file() || self.bundles.has(path)
    }

    /// Paths of the files in a folder, plain or inside a single-file program, in order.
    pub fn paths_in(&mut self, folder: &Path) -> BTreeSet<PathBuf> {
        let plain = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        self.bundles.paths_in(folder).into_iter().chain(plain).collect()
    }

    /// The PDB of an assembly: embedded, next to the assembly, or where the compiler put it. A PDB
    /// from another build is ignored, since its lines would be wrong.
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

/// The bytes of a plain file; `None` if it is longer than `most` bytes or can't be read.
#[must_use]
pub fn read_bounded(path: &Path, most: u64) -> Option<Vec<u8>> {
    let metadata = std::fs::metadata(path).ok()?;
    (metadata.is_file() && metadata.len() <= most).then(|| std::fs::read(path).ok())?
}
