//! Blocks of events: a block header, then events. The headers of events are written in full, or
//! compressed: as differences from the header before.

use crate::Error;
use crate::wire::Reader;

/// The flag of a block whose headers are compressed.
const COMPRESSED: u16 = 1;
/// Bytes of the header's fixed part: its size, flags, and two times.
const HEADER: usize = 20;

/// Flags for the fields that a compressed header has in addition to the time.
mod has {
    pub(super) const DESCRIPTION: u8 = 1;
    pub(super) const SEQUENCE: u8 = 2;
    pub(super) const THREAD: u8 = 4;
    pub(super) const STACK: u8 = 8;
    pub(super) const ACTIVITY: u8 = 16;
    pub(super) const RELATED: u8 = 32;
    pub(super) const SIZE: u8 = 128;
}

/// The used fields of an event's header.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Header {
    pub(super) description: u32,
    pub(super) thread_id: u64,
    pub(super) timestamp: u64,
    pub(super) stack: u32,
}

/// Events of a block, one after another: a block of a few megabytes may hold a million of them.
#[derive(Debug)]
pub(super) struct Events {
    block: Vec<u8>,
    /// Number of bytes of the block that were read.
    read: usize,
    is_compressed: bool,
    /// Header of the previous event.
    before: Header,
    payload_size: usize,
}

impl Events {
    pub(super) fn new(block: Vec<u8>) -> Result<Self, Error> {
        let mut header = Reader(&block);
        let (size, flags) = (usize::from(header.u16()?), header.u16()?);
        if size < HEADER {
            return Err(Error::nonsense("a block with too small a header"));
        }
        Reader(&block).read_bytes(size)?;
        let is_compressed = flags & COMPRESSED != 0;
        Ok(Self { block, read: size, is_compressed, before: Header::default(), payload_size: 0 })
    }

    /// The next event with its payload; `None` at the end of the block.
    pub(super) fn next(&mut self) -> Result<Option<(Header, &[u8])>, Error> {
        let Self { block, read, is_compressed, before, payload_size } = self;
        let mut rest = Reader(&block[*read..]);
        if rest.0.is_empty() {
            return Ok(None);
        }
        let payload = match is_compressed {
            true => compressed(&mut rest, before, payload_size)?,
            false => full(&mut rest, before)?,
        };
        *read = block.len() - rest.0.len();
        Ok(Some((*before, payload)))
    }
}

/// The upper bit of a description's number means that events are sorted.
const SORTED: u32 = 1 << 31;

/// Reads an event with a full header; returns the payload.
fn full<'a>(from: &mut Reader<'a>, header: &mut Header) -> Result<&'a [u8], Error> {
    let size = from.u32()? as usize;
    let mut event = Reader(from.read_bytes(size)?);
    let description = event.u32()? & !SORTED;
    let _sequence = event.u32()?;
    let thread_id = event.u64()?;
    let _captured = (event.u64()?, event.u32()?);
    let (stack, timestamp) = (event.u32()?, event.u64()?);
    let _activities = event.read_bytes(32)?;
    let bytes = event.u32()? as usize;
    let payload = event.read_bytes(bytes)?;
    // The padding to a multiple of four bytes may be missing after the last event.
    let fill = (size.next_multiple_of(4) - size).min(from.0.len());
    from.read_bytes(fill)?;
    *header = Header { description, thread_id, timestamp, stack };
    Ok(payload)
}

/// Reads an event with a compressed header; returns the payload.
fn compressed<'a>(from: &mut Reader<'a>, header: &mut Header, payload_size: &mut usize) -> Result<&'a [u8], Error> {
    let flags = from.u8()?;
    let with = |part| flags & part != 0;
    if with(has::DESCRIPTION) {
        header.description = from.variable()? as u32;
    }
    if with(has::SEQUENCE) {
        let _captured = (from.variable()?, from.variable()?, from.variable()?);
    }
    if with(has::THREAD) {
        header.thread_id = from.variable()?;
    }
    if with(has::STACK) {
        header.stack = from.variable()? as u32;
    }
    header.timestamp = header.timestamp.wrapping_add(from.variable()?);
    if with(has::ACTIVITY) {
        from.read_bytes(16)?;
    }
    if with(has::RELATED) {
        from.read_bytes(16)?;
    }
    if with(has::SIZE) {
        let size = from.variable()?;
        *payload_size = usize::try_from(size).map_err(|_| Error::nonsense("an event larger than memory"))?;
    }
    from.read_bytes(*payload_size)
}
