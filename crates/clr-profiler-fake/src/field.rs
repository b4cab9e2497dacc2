//! A field of a fake class, and the layout of objects: all fields are references, one after
//! another.

use std::ffi::CString;

use clr_profiler::Token;

/// Bytes before an object's first field, which hold the reference to its class.
pub(super) const HEAD: usize = 8;
/// Bytes of the smallest object.
pub(super) const LEAST: usize = 24;
/// Flags of a field in the metadata: public, and static.
const PUBLIC: u32 = 0x06;
const STATIC: u32 = 0x10;
/// Signature of a field whose type is `object`.
pub(super) const OBJECT: [u8; 2] = [0x06, 0x1c];

pub(super) struct Field {
    pub(super) token: Token,
    pub(super) name: CString,
    /// The address of a static field's value.
    pub(super) place: Option<usize>,
}

impl Field {
    pub(super) fn attributes(&self) -> u32 {
        if self.place.is_some() { PUBLIC | STATIC } else { PUBLIC }
    }
}
