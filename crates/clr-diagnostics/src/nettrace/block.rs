//! Blocks of events: a header, then events whose headers are written in full or as what changed since the one before.

use crate::Error;
use crate::wire::Reader;

/// The flag of a block whose headers are compressed.
const COMPRESSED: u16 = 1;
/// Bytes of the header's fixed part: its size, flags, and two times.
const HEADER: usize = 20;

/// Parts that a compressed header has beside the time.
mod has {
    pub(super) const DESCRIPTION: u8 = 1;
    pub(super) const SEQUENCE: u8 = 2;
    pub(super) const THREAD: u8 = 4;
    pub(super) const STACK: u8 = 8;
    pub(super) const ACTIVITY: u8 = 16;
    pub(super) const RELATED: u8 = 32;
    pub(super) const SIZE: u8 = 128;
}

/// An event as it lies in a block.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Blob<'a> {
    pub(super) description: u32,
    pub(super) thread_id: u64,
    pub(super) timestamp: u64,
    pub(super) stack: u32,
    pub(super) payload: &'a [u8],
}

/// Calls `visit` for each event of a block.
pub(super) fn each<'a>(block: &'a [u8], mut visit: impl FnMut(Blob<'a>) -> Result<(), Error>) -> Result<(), Error> {
    let mut header = Reader(block);
    let (size, flags) = (usize::from(header.u16()?), header.u16()?);
    if size < HEADER {
        return Err(Error::nonsense("a block with too small a header"));
    }
    let mut rest = Reader(block);
    rest.take(size)?;
    let mut blob = Blob::default();
    let mut payload_size = 0;
    while !rest.0.is_empty() {
        if flags & COMPRESSED != 0 {
            compressed(&mut rest, &mut blob, &mut payload_size)?;
        } else {
            blob = full(&mut rest)?;
        }
        visit(blob)?;
    }
    Ok(())
}

/// The upper bit of a description's number says that events are sorted.
const SORTED: u32 = 1 << 31;

fn full<'a>(from: &mut Reader<'a>) -> Result<Blob<'a>, Error> {
    let size = from.u32()? as usize;
    let mut event = Reader(from.take(size)?);
    let description = event.u32()? & !SORTED;
    let _sequence = event.u32()?;
    let thread_id = event.u64()?;
    let _captured = (event.u64()?, event.u32()?);
    let (stack, timestamp) = (event.u32()?, event.u64()?);
    let _activities = event.take(32)?;
    let bytes = event.u32()? as usize;
    let payload = event.take(bytes)?;
    // What fills up to four bytes may be missing behind the last one.
    let fill = (size.next_multiple_of(4) - size).min(from.0.len());
    from.take(fill)?;
    Ok(Blob { description, thread_id, timestamp, stack, payload })
}

fn compressed<'a>(from: &mut Reader<'a>, blob: &mut Blob<'a>, payload_size: &mut usize) -> Result<(), Error> {
    let flags = from.u8()?;
    let with = |part| flags & part != 0;
    if with(has::DESCRIPTION) {
        blob.description = from.variable()? as u32;
    }
    if with(has::SEQUENCE) {
        let _captured = (from.variable()?, from.variable()?, from.variable()?);
    }
    if with(has::THREAD) {
        blob.thread_id = from.variable()?;
    }
    if with(has::STACK) {
        blob.stack = from.variable()? as u32;
    }
    blob.timestamp = blob.timestamp.wrapping_add(from.variable()?);
    if with(has::ACTIVITY) {
        from.take(16)?;
    }
    if with(has::RELATED) {
        from.take(16)?;
    }
    if with(has::SIZE) {
        let size = from.variable()?;
        *payload_size = usize::try_from(size).map_err(|_| Error::nonsense("an event larger than memory"))?;
    }
    blob.payload = from.take(*payload_size)?;
    Ok(())
}
