//! Parts of the page for browsers that are made of sections: rows packed as columns, and the
//! summary that is read without script.

mod packed;
mod plain;

pub(crate) use packed::{Pool, SectionPacker, said};
pub(crate) use plain::{Plain, escaped};
