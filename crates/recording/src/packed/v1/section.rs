//! Sections: the head of each section, and the bounded compression of its content.

use zstd::zstd_safe::DCtx;

use super::checksum::checksum;
use crate::layout::{u32_at, u64_at};

/// Bytes of a section's head.
pub(super) const HEAD: usize = 56;
/// First four bytes of a section's head.
pub(super) const MARKER: [u8; 4] = *b"SECT";
/// Content may be at most this many times as large as its stored form. The writer pads content that
/// compresses better, so that a reader knows how much memory a file can make it allocate.
pub(super) const RATIO: u64 = 8;

/// Kinds of sections.
pub(super) mod kind {
    /// The run.
    pub(in super::super) const RUN: u16 = 1;
    /// A process: everything except its tables.
    pub(in super::super) const PROCESS: u16 = 2;
    /// Functions; `item` is the index of the first.
    pub(in super::super) const FUNCTIONS: u16 = 3;
    /// Modules; `item` is the index of the first.
    pub(in super::super) const MODULES: u16 = 4;
    /// Threads; `item` is the index of the first.
    pub(in super::super) const THREADS: u16 = 5;
    /// Remarks.
    pub(in super::super) const REMARKS: u16 = 6;
    /// Part of a thread's tree; `item` is the thread's index.
    pub(in super::super) const TREE: u16 = 7;
    /// A chunk of events; `item` is the index of its arena.
    pub(in super::super) const EVENTS: u16 = 8;
    /// Problems found during packing.
    pub(in super::super) const PROBLEMS: u16 = 9;
    /// The index.
    pub(in super::super) const INDEX: u16 = 10;
    /// Nodes of the stack table; `item` is the number of the first.
    pub(in super::super) const STACKS: u16 = 11;
    /// Names of places in native code.
    pub(in super::super) const NATIVE_SYMBOLS: u16 = 12;
    /// Types of objects; `item` is the index of the first.
    pub(in super::super) const OBJECT_TYPES: u16 = 15;
    /// Plans of coverage.
    pub(in super::super) const COVERAGE_PLANS: u16 = 13;
    /// Part of a tree with a thread's gains in a part of the recording; `item` is the index of that
    /// part.
    pub(in super::super) const PART_TREE: u16 = 14;
}

/// Uncompressed bytes at the start of a part-tree section: `u32` thread.
pub(super) const PART_TREE_PREFIX: usize = 4;
/// Uncompressed bytes at the start of an events section: `u32` thread, `u64` sequence.
pub(super) const EVENTS_PREFIX: usize = 12;
/// Storage forms of content.
const RAW: u16 = 0;
const ZSTD: u16 = 1;
/// Bit of `part` that marks the last part.
pub(super) const LAST_PART: u32 = 1 << 31;

/// The head of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Head {
    pub(super) kind: u16,
    pub(super) codec: u16,
    pub(super) process: u32,
    pub(super) item: u32,
    pub(super) part: u32,
    pub(super) count: u32,
    pub(super) stored: u64,
    pub(super) plain: u64,
    pub(super) checksum: u64,
}

impl Head {
    pub(super) fn encode(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..4].copy_from_slice(&MARKER);
        bytes[4..6].copy_from_slice(&self.kind.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.codec.to_le_bytes());
        for (at, value) in [(8, self.process), (12, self.item), (16, self.part), (20, self.count)] {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        for (at, value) in [(24, self.stored), (32, self.plain), (40, self.checksum)] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let own = checksum(&bytes[..48]);
        bytes[48..].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// The head in `bytes`; `None` if there is none or it is damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEAD)?;
        if !bytes.starts_with(&MARKER) || u64_at(bytes, 48) != checksum(&bytes[..48]) {
            return None;
        }
        Some(Self {
            kind: u32_at(bytes, 4) as u16,
            codec: (u32_at(bytes, 4) >> 16) as u16,
            process: u32_at(bytes, 8),
            item: u32_at(bytes, 12),
            part: u32_at(bytes, 16),
            count: u32_at(bytes, 20),
            stored: u64_at(bytes, 24),
            plain: u64_at(bytes, 32),
            checksum: u64_at(bytes, 40),
        })
    }

    /// Bytes from the head to the next section's head; `None` for a length that no file can have.
    pub(super) fn reach(&self) -> Option<u64> {
        self.stored.checked_next_multiple_of(8)?.checked_add(HEAD as u64)
    }

    /// Whether the checksum of `stored` is correct.
    pub(super) fn vouches_for(&self, stored: &[u8]) -> bool {
        stored.len() as u64 == self.stored && checksum(stored) == self.checksum
    }

    /// Number of uncompressed bytes before the content.
    pub(super) fn prefix(&self) -> usize {
        match self.kind {
            kind::EVENTS => EVENTS_PREFIX,
            kind::PART_TREE => PART_TREE_PREFIX,
            _ => 0,
        }
    }

    /// Bytes of content; an error if the number of stored bytes does not permit that many.
    pub(super) fn content(&self) -> Result<usize, &'static str> {
        let allowed = Some(self.plain).filter(|&plain| plain <= self.stored.saturating_mul(RATIO));
        allowed.and_then(|plain| usize::try_from(plain).ok()).ok_or("claims more content than its size allows")
    }

    /// The decompressed content of `stored`; an error unless it has exactly the size that the head
    /// gives.
    pub(super) fn unpack(&self, stored: &[u8]) -> Result<Vec<u8>, &'static str> {
        let plain = self.content()?;
        let stored = stored.get(self.prefix()..).ok_or("is too short")?;
        let content = match self.codec {
            RAW => stored.to_vec(),
            ZSTD => {
                let mut bytes = Vec::with_capacity(plain);
                context()?.decompress(&mut bytes, stored).map_err(|_| "does not decompress")?;
                bytes
            }
            _ => return Err("is compressed in an unknown way"),
        };
        if content.len() == plain { Ok(content) } else { Err("is not of the size it claims") }
    }
}

/// Maximum memory of a decompression context of the zstd library in bytes.
const CONTEXT: usize = 256 << 10;

/// State of a decompression. The zstd library allocates from the system, and on failure can only
/// panic. If its allocation fails, this function allocates the same amount with the program's own
/// allocator, which handles such a failure, and then tries again.
fn context() -> Result<DCtx<'static>, &'static str> {
    let ask = || drop(std::hint::black_box(Vec::<u8>::with_capacity(CONTEXT)));
    DCtx::try_create()
        .or_else(|| {
            ask();
            DCtx::try_create()
        })
        .ok_or("finds no memory to be decompressed in")
}

/// Compresses content, filling in the fields of `head` that describe it. The result begins with
/// `prefix` and respects [`RATIO`].
pub(super) fn pack(
    head: &mut Head,
    prefix: &[u8],
    content: &[u8],
    compressor: &mut zstd::bulk::Compressor<'_>,
) -> Vec<u8> {
    let compressed = compressor.compress(content).ok().map(|found| pad(found, content.len()));
    let compressed = compressed.filter(|found| found.len() < content.len());
    let codec = if compressed.is_some() { ZSTD } else { RAW };
    let stored = [prefix, compressed.as_deref().unwrap_or(content)].concat();
    head.codec = codec;
    head.plain = content.len() as u64;
    head.stored = stored.len() as u64;
    head.checksum = checksum(&stored);
    stored
}

/// Appends a frame that decompressors skip, if the content is more than [`RATIO`] times as large as
/// the compressed form.
fn pad(mut compressed: Vec<u8>, plain: usize) -> Vec<u8> {
    const SKIPPABLE: u32 = 0x184D_2A50;
    const FRAME_HEAD: usize = 8;
    let least = plain.div_ceil(RATIO as usize);
    if compressed.len() < least {
        let size = (least - compressed.len()).saturating_sub(FRAME_HEAD);
        compressed.extend_from_slice(&SKIPPABLE.to_le_bytes());
        compressed.extend_from_slice(&u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes());
        compressed.resize(compressed.len() + size, 0);
    }
    compressed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(content: &[u8]) -> Head {
        let mut head = Head { kind: kind::TREE, count: 7, ..Head::default() };
        let mut compressor = zstd::bulk::Compressor::new(3).expect("a compressor");
        let stored = pack(&mut head, &[], content, &mut compressor);
        assert!(head.vouches_for(&stored));
        assert_eq!(head.unpack(&stored).as_deref(), Ok(content));
        assert!(head.plain <= head.stored * RATIO);
        assert_eq!(Head::decode(&head.encode()), Some(head));
        head
    }

    #[test]
    fn content_comes_back_and_obeys_the_ratio() {
        round_trip(b"");
        round_trip(b"x");
        assert_eq!(round_trip(&[0; 1 << 20]).stored, (1 << 20) / RATIO);
        for size in 100..400 {
            round_trip(&vec![7; size]);
        }
    }

    #[test]
    fn a_head_with_any_bit_flipped_is_none() {
        let bytes = Head { kind: kind::RUN, ..Head::default() }.encode();
        for bit in 0..HEAD * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Head::decode(&bytes), None, "{bit}");
        }
    }

    #[test]
    fn content_of_another_size_than_claimed_is_refused() {
        let mut head = Head::default();
        let mut compressor = zstd::bulk::Compressor::new(3).expect("a compressor");
        let stored = pack(&mut head, &[], &[1; 200], &mut compressor);
        for plain in [0, 199, 201, 1 << 20, u64::MAX] {
            assert!(Head { plain, ..head }.unpack(&stored).is_err(), "{plain}");
        }
    }
}
