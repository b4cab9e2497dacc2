//! Reads assemblies and portable PDBs as files, without the runtime: metadata tables, method
//! bodies, attributes, documents and lines. Contains no `unsafe`.
//!
//! ```no_run
//! use clr_metadata::{Assembly, Files};
//! use std::path::Path;
//!
//! let (path, mut files) = (Path::new("/app/Shop.dll"), Files::default());
//! let assembly = Assembly::read(files.read(path).unwrap()).unwrap();
//! let pdb = files.pdb_of(&assembly, path).unwrap();
//! let (line, document) = pdb.sequence_points(1).first().map(|point| (point.start_line, point.document)).unwrap();
//! println!("{}:{line}", pdb.document(document).unwrap());
//! ```
//!
//! Files are hostile input. Each offset is checked, memory use is bounded by the file's length, and
//! damaged parts give `None` or an empty list. An error means only that a file is not an assembly
//! or PDB at all.

mod assembly;
mod attributes;
mod blob;
mod bundle;
mod files;
mod image;
mod names;
mod obstacle;
mod pdb;
mod references;
mod schema;
mod tables;

pub use assembly::{Assembly, FieldFact, MemberFact};
pub use blob::Blob;
pub use files::{Files, read_bounded};
pub use obstacle::Obstacle;
pub use pdb::{Pdb, SequencePoint};
pub use references::MethodKey;
pub use tables::{Table, Tables};

/// Maximum size of an assembly or PDB in bytes.
pub const MOST_BYTES: u64 = 256 << 20;

/// The bytes are not an assembly, or not a portable PDB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the bytes are not in the format")
    }
}

impl std::error::Error for Damaged {}

/// Entry points for fuzzing. They accept arbitrary bytes.
#[doc(hidden)]
pub mod fuzzing {
    use std::hint::black_box;

    use crate::{Assembly, Pdb, Table};

    /// Maximum size of an embedded PDB in bytes.
    const MOST_EMBEDDED: u64 = 16 << 20;

    /// Reads bytes as an assembly, as a portable PDB and as the file list of a single-file program,
    /// and calls every query. The results don't matter; every call must return.
    pub fn read_file(bytes: &[u8]) {
        crate::bundle::read_list(bytes);
        if let Ok(assembly) = Assembly::read(bytes.to_vec()) {
            ask_assembly(&assembly);
            assembly.embedded_pdb(MOST_EMBEDDED).into_iter().for_each(ask_pdb);
        }
        ask_pdb(bytes.to_vec());
    }

    fn ask_assembly(assembly: &Assembly) {
        black_box((assembly.name(), assembly.mvid(), assembly.entry_point(), assembly.pdb_id()));
        for row in 0..=assembly.count(Table::METHOD_DEF).saturating_add(1) {
            let token = Table::METHOD_DEF.token(row);
            black_box((assembly.method_name(row), assembly.method_signature(row), assembly.code_from(row)));
            black_box((assembly.method(token), assembly.display_method(row), assembly.display_parameters(row)));
            if let Some(owner) = assembly.type_of_method(row) {
                black_box((assembly.display_type(owner), assembly.methods_of(owner)));
                black_box((assembly.with_enclosing(owner).count(), assembly.interfaces(owner).count()));
            }
        }
        for table in [Table::MEMBER_REF, Table::FIELD, Table::METHOD_SPEC] {
            for token in (0..=assembly.count(table)).map(|row| table.token(row)) {
                black_box((assembly.field(token), assembly.method(token)));
            }
        }
    }

    fn ask_pdb(bytes: Vec<u8>) {
        let Ok(pdb) = Pdb::read(bytes) else { return };
        let most = MOST_EMBEDDED as usize;
        (0..=pdb.documents()).for_each(|row| _ = black_box((pdb.document(row), pdb.embedded_source(row, most))));
        (0..=pdb.methods()).for_each(|row| _ = black_box((pdb.sequence_points(row), pdb.kickoff(row))));
        black_box(pdb.state_machines().count());
    }
}
