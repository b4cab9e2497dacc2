//! Parts of the page for browsers that are made from sections: rows packed as columns, and the
//! summary for readers without script.

mod packed;
mod plain;

pub(crate) use packed::{Pool, SectionPacker, said};
pub(crate) use plain::{Plain, escaped};
