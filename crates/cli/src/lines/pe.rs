//! The debug directory of a module: which PDB belongs to it, and the PDB itself where it is embedded.

use std::io::Read;

use flate2::read::DeflateDecoder;

use super::MOST_BYTES;

/// What a module says about its PDB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DebugInformation {
    /// The PDB's own id.
    pub(super) guid: [u8; 16],
    /// The PDB, where it is embedded.
    pub(super) embedded: Option<Vec<u8>>,
}

const CODE_VIEW: u32 = 2;
const EMBEDDED_PDB: u32 = 17;
/// Entries of a debug directory that are looked at.
const MOST_ENTRIES: usize = 64;

/// Reads the debug directory of a PE image; `None` where there is none or it is damaged.
pub(super) fn debug_information(image: &[u8]) -> Option<DebugInformation> {
    let (start, bytes) = debug_directory(image)?;
    let mut guid = None;
    let mut embedded = None;
    for entry in image.get(start..start.checked_add(bytes)?)?.chunks_exact(28).take(MOST_ENTRIES) {
        let (kind, size, at) = (u32_at(entry, 12)?, u32_at(entry, 16)? as usize, u32_at(entry, 24)? as usize);
        let Some(data) = image.get(at..at.checked_add(size)?) else { continue };
        match kind {
            CODE_VIEW if data.starts_with(b"RSDS") => guid = data.get(4..20).and_then(|guid| guid.try_into().ok()),
            EMBEDDED_PDB if data.starts_with(b"MPDB") => embedded = inflate(data.get(8..)?, u32_at(data, 4)?),
            _ => {}
        }
    }
    Some(DebugInformation { guid: guid?, embedded })
}

fn inflate(packed: &[u8], size: u32) -> Option<Vec<u8>> {
    let size = u64::from(size).min(MOST_BYTES);
    let mut bytes = Vec::new();
    DeflateDecoder::new(packed).take(size).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Place in the file and length of the debug directory.
fn debug_directory(image: &[u8]) -> Option<(usize, usize)> {
    let header = u32_at(image, 0x3C)? as usize;
    if image.get(header..header.checked_add(4)?)? != b"PE\0\0" {
        return None;
    }
    let sections = usize::from(u16_at(image, header + 6)?);
    let optional = header + 24;
    let optional_bytes = usize::from(u16_at(image, header + 20)?);
    let directories = match u16_at(image, optional)? {
        0x10B => optional + 96,
        0x20B => optional + 112,
        _ => return None,
    };
    // The seventh directory is the one for debugging.
    let (rva, bytes) = (u32_at(image, directories + 48)?, u32_at(image, directories + 52)? as usize);
    let section = |index: usize| -> Option<usize> {
        let at = optional + optional_bytes + index * 40;
        let (start, raw_bytes, raw) = (u32_at(image, at + 12)?, u32_at(image, at + 16)?, u32_at(image, at + 20)?);
        let within = rva.checked_sub(start).filter(|&within| within < raw_bytes)?;
        Some(raw as usize + within as usize)
    };
    (0..sections).find_map(section).map(|start| (start, bytes))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}
