//! Changes a packed file and recomputes its checksums and index, for tests of the reader.

use super::index::find;
use super::section::{HEAD, Head, pack};
use super::{START, TRAILER_MAGIC, checksum::checksum, section::kind};
use crate::packed::Source;

/// Fields of a section's head that describe its content. A test may change them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claims {
    /// Kind of section.
    pub kind: u16,
    /// Number of the process.
    pub process: u32,
    /// Item, see the specification of the format.
    pub item: u32,
    /// Part of the item.
    pub part: u32,
    /// Records, nodes or entries.
    pub count: u32,
    /// Stored bytes. A changed value is written unchecked; an unchanged one is replaced by the
    /// correct value.
    pub stored: u64,
    /// Bytes of content. A changed value is written unchecked; an unchanged one is replaced by the
    /// correct value.
    pub plain: u64,
}

/// Passes the claims and the content of every section to `change`, and writes a file whose
/// checksums and index match the result. `stored` and `plain` are written only if they were
/// changed.
pub(crate) fn reseal(packed: &[u8], change: &mut dyn FnMut(&mut Claims, &mut Vec<u8>)) -> Vec<u8> {
    let mut out = packed.get(..START as usize).unwrap_or(packed).to_vec();
    let Ok(mut compressor) = zstd::bulk::Compressor::new(1) else { return out };
    let mut index = Vec::new();
    for section in find(&Source::Bytes(packed.into())).sections {
        let body = section.body() as usize;
        let Some(stored) = packed.get(body..body + section.head.stored as usize) else { continue };
        let Ok(mut content) = section.head.unpack(stored) else { continue };
        let mut claims = section.head.claims();
        let before = claims;
        change(&mut claims, &mut content);
        let mut head = section.head;
        head.claim(&claims);
        let stored = pack(&mut head, &stored[..section.head.prefix()], &content, &mut compressor);
        if claims.stored != before.stored {
            head.stored = claims.stored;
        }
        if claims.plain != before.plain {
            head.plain = claims.plain;
        }
        index.extend_from_slice(&(out.len() as u64).to_le_bytes());
        index.extend_from_slice(&head.encode());
        append(&mut out, &head, &stored);
    }
    let at = out.len() as u64;
    let mut head = Head { kind: kind::INDEX, ..Head::default() };
    let stored = pack(&mut head, &[], &index, &mut compressor);
    append(&mut out, &head, &stored);
    let mut trailer = at.to_le_bytes().to_vec();
    trailer.extend_from_slice(&(out.len() as u64 - at).to_le_bytes());
    trailer.extend_from_slice(&checksum(&trailer).to_le_bytes());
    trailer.extend_from_slice(&TRAILER_MAGIC);
    out.extend_from_slice(&trailer);
    out
}

fn append(out: &mut Vec<u8>, head: &Head, stored: &[u8]) {
    out.extend_from_slice(&head.encode());
    out.extend_from_slice(stored);
    out.resize(HEAD.max(out.len()).next_multiple_of(8), 0);
}

impl Head {
    fn claims(&self) -> Claims {
        let &Self { kind, process, item, part, count, stored, plain, .. } = self;
        Claims { kind, process, item, part, count, stored, plain }
    }

    fn claim(&mut self, claims: &Claims) {
        (self.kind, self.process, self.item) = (claims.kind, claims.process, claims.item);
        (self.part, self.count) = (claims.part, claims.count);
    }
}
