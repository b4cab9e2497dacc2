//! Assemblies and portable PDBs, read as files and not through the runtime: metadata tables, bodies of methods, attributes,
//! documents and lines. Without `unsafe`.
//!
//! ```no_run
//! use clr_metadata::{Assembly, MOST_BYTES, files};
//! use std::path::Path;
//!
//! let path = Path::new("/app/Shop.dll");
//! let assembly = Assembly::read(files::read_bounded(path, MOST_BYTES).unwrap()).unwrap();
//! let pdb = files::pdb_of(&assembly, path).unwrap();
//! let (line, document) = pdb.sequence_points(1).first().map(|point| (point.start_line, point.document)).unwrap();
//! println!("{}:{line}", pdb.document(document).unwrap());
//! ```
//!
//! Files are hostile input: each offset is checked, what is made of a file is bounded by the file's length, and what is
//! damaged is `None` or an empty list. Only what says that a file is no assembly or PDB at all is an error.

mod assembly;
mod attributes;
mod blob;
mod image;
mod names;
mod pdb;
mod schema;
mod tables;

pub mod files;

pub use assembly::{Assembly, FieldFact, MemberFact};
pub use blob::Blob;
pub use pdb::{Pdb, SequencePoint};
pub use tables::{Table, Tables};

/// Largest assembly and largest PDB that are read, bytes.
pub const MOST_BYTES: u64 = 256 << 20;

/// Bytes that are no assembly, or no portable PDB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the bytes are not in the format")
    }
}

impl std::error::Error for Damaged {}
