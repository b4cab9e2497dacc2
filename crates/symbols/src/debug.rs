//! The debug directory of a module: which PDB belongs to the module, and the PDB itself where it is embedded.

use std::io::Read;

use flate2::read::DeflateDecoder;
use object::LittleEndian;
use object::pe::{
    DebugType, IMAGE_DIRECTORY_ENTRY_DEBUG, IMAGE_NT_OPTIONAL_HDR32_MAGIC, IMAGE_NT_OPTIONAL_HDR64_MAGIC,
    ImageDebugDirectory, ImageNtHeaders32, ImageNtHeaders64,
};
use object::pod::slice_from_all_bytes;
use object::read::Object;
use object::read::pe::{ImageNtHeaders, PeFile, optional_header_magic};

use crate::MOST_BYTES;

/// A module's entry about its PDB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DebugInformation {
    /// The id that module and PDB share.
    pub(crate) guid: [u8; 16],
    /// Path that the compiler wrote the PDB to; a bare name where paths were to be left out.
    pub(crate) path: String,
    /// The PDB, where it is embedded.
    pub(crate) embedded: Option<Vec<u8>>,
}

/// The type of the debug directory entry that holds a portable PDB; the crate `object` has no name for it.
const EMBEDDED_PORTABLE_PDB: DebugType = DebugType(17);
/// Entries of a debug directory that are looked at.
const MOST_ENTRIES: usize = 64;

/// The debug directory of a PE image; `None` where there is none or the image is damaged.
pub(crate) fn information(image: &[u8]) -> Option<DebugInformation> {
    match optional_header_magic(image).ok()? {
        IMAGE_NT_OPTIONAL_HDR32_MAGIC => information_in::<ImageNtHeaders32>(image),
        IMAGE_NT_OPTIONAL_HDR64_MAGIC => information_in::<ImageNtHeaders64>(image),
        _ => None,
    }
}

fn information_in<Headers: ImageNtHeaders>(image: &[u8]) -> Option<DebugInformation> {
    let file = PeFile::<Headers>::parse(image).ok()?;
    let pdb = file.pdb_info().ok()??;
    let (guid, path) = (pdb.guid(), String::from_utf8_lossy(pdb.path()).into_owned());
    let directory = file.data_directory(IMAGE_DIRECTORY_ENTRY_DEBUG)?.data(image, &file.section_table()).ok()?;
    let entries = slice_from_all_bytes::<ImageDebugDirectory>(directory).ok()?;
    let embedded = |entry: &ImageDebugDirectory| {
        let (at, size) = (entry.pointer_to_raw_data.get(LittleEndian), entry.size_of_data.get(LittleEndian));
        let data = image.get(at as usize..)?.get(..size as usize)?;
        inflated(data.strip_prefix(b"MPDB")?)
    };
    let mut entries = entries.iter().take(MOST_ENTRIES);
    let embedded = entries.find(|entry| entry.typ.get(LittleEndian) == EMBEDDED_PORTABLE_PDB).and_then(embedded);
    Some(DebugInformation { guid, path, embedded })
}

/// A deflated PDB behind its size.
fn inflated(packed: &[u8]) -> Option<Vec<u8>> {
    let (size, packed) = packed.split_first_chunk::<4>()?;
    let size = u64::from(u32::from_le_bytes(*size)).min(MOST_BYTES);
    let mut bytes = Vec::new();
    DeflateDecoder::new(packed).take(size).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
