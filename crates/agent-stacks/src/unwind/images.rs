//! Images of assemblies with precompiled code that the runtime has laid out in memory itself.
//!
//! The framework's images are mapped from their files, and the system's list of mappings names
//! them. Others, usually an application's own images, have sections that are not aligned to pages.
//! The runtime copies these into memory without a file, where they look like just-in-time compiled
//! code.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use clr_profiler::{ModuleId, ProfilerInfo};
use clrscope_agent_base::os::memory::copy_if_there;

/// Bytes at the beginning of an image that hold its headers.
const HEADERS: usize = 1024;
/// Indices of the tables with the unwind information and the header of managed code.
const EXCEPTIONS: usize = 3;
const MANAGED: usize = 14;

/// An image of an assembly with precompiled code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    pub addresses: Range<usize>,
    /// Addresses of the table of code pieces with their unwind information.
    pieces: Range<usize>,
    /// The table, once it was needed.
    rows: OnceLock<Vec<ImagePiece>>,
}

/// A piece of an image's code. Addresses are relative to the image's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImagePiece {
    pub begin: u32,
    pub end: u32,
    pub(crate) unwind_info: u32,
}

impl ImagePiece {
    /// Bytes of a row in the image's table of pieces.
    pub(crate) const BYTES: usize = 12;

    /// The pieces that the bytes of a table describe.
    pub(crate) fn all(bytes: &[u8]) -> impl Iterator<Item = Self> {
        let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let piece =
            move |row: &[u8]| Self { begin: number(row), end: number(&row[4..]), unwind_info: number(&row[8..]) };
        bytes.chunks_exact(Self::BYTES).map(piece)
    }
}

impl Image {
    /// Pieces that begin within a part of the image, in ascending order.
    pub(crate) fn pieces_in(&self, code: Range<u32>) -> &[ImagePiece] {
        let rows = self.rows();
        let first = |address: u32| rows.partition_point(|row| row.begin < address);
        rows.get(first(code.start)..first(code.end)).unwrap_or_default()
    }

    /// The table; empty if it can't be read, or while there is no memory for it.
    fn rows(&self) -> &[ImagePiece] {
        self.rows.get().or_else(|| self.read().map(|rows| self.rows.get_or_init(|| rows))).map_or(&[], Vec::as_slice)
    }

    /// Reads the table; `None` if there is no memory for it. The table of a large image has more
    /// than a megabyte, and this code may run because of an out-of-memory exception.
    fn read(&self) -> Option<Vec<ImagePiece>> {
        let (mut bytes, mut rows) = (Vec::new(), Vec::new());
        bytes.try_reserve_exact(self.pieces.len()).ok()?;
        rows.try_reserve_exact(self.pieces.len() / ImagePiece::BYTES).ok()?;
        bytes.resize(self.pieces.len(), 0);
        if copy_if_there(self.pieces.start, &mut bytes) {
            rows.extend(ImagePiece::all(&bytes));
        }
        Some(rows)
    }

    /// The address range of the piece that contains an address.
    pub(crate) fn piece_around(&self, address: usize) -> Option<Range<usize>> {
        let base = self.addresses.start;
        let at = u32::try_from(address.checked_sub(base)?).ok()?;
        let piece = self.pieces_in(0..at.checked_add(1)?).last().filter(|piece| at < piece.end)?;
        Some(base + piece.begin as usize..base + piece.end as usize)
    }

    #[cfg(test)]
    pub(crate) fn from_ranges(addresses: Range<usize>, pieces: Range<usize>) -> Self {
        Self { addresses, pieces, rows: OnceLock::new() }
    }
}

/// The images seen so far.
#[derive(Default)]
pub(crate) struct Images {
    /// Each module's image, if it has precompiled code.
    known: HashMap<ModuleId, Option<Image>>,
    /// Number of loaded modules when all modules were last listed; `None` if never.
    asked_at: Option<u64>,
}

impl Images {
    /// The image with precompiled code that contains an address. `loads` is the number of modules
    /// loaded so far; whenever it has changed, the runtime is asked for all modules.
    pub(crate) fn around(&mut self, info: &ProfilerInfo, loads: u64, address: usize) -> Option<&Image> {
        let image_of = |module| image_at(info.module_info(module).ok()?.base_address);
        self.around_or_list(loads, address, || info.modules().ok(), image_of)
    }

    fn around_or_list(
        &mut self,
        loads: u64,
        address: usize,
        list: impl FnOnce() -> Option<Vec<ModuleId>>,
        image_of: impl Fn(ModuleId) -> Option<Image>,
    ) -> Option<&Image> {
        if self.find(address).is_none()
            && self.asked_at != Some(loads)
            && let Some(modules) = list()
        {
            for module in modules {
                self.known.entry(module).or_insert_with(|| image_of(module));
            }
            self.asked_at = Some(loads);
        }
        self.find(address)
    }

    /// Like [`around`](Self::around), but without asking the runtime.
    pub(crate) fn find(&self, address: usize) -> Option<&Image> {
        self.known.values().flatten().find(|image| image.addresses.contains(&address))
    }

    /// Call it when a module was unloaded, as its identifier and addresses may be reused.
    pub(crate) fn forget(&mut self) {
        (self.known, self.asked_at) = (HashMap::new(), None);
    }
}

/// The image that begins at `base`. `None` if it has no precompiled code, or if its layout in
/// memory is the same as in its file.
pub(crate) fn image_at(base: usize) -> Option<Image> {
    /// Beginning of the header of precompiled code.
    const SIGNATURE: [u8; 4] = *b"RTR\0";
    if base == 0 {
        return None;
    }
    let mut headers = [0; HEADERS];
    if !copy_if_there(base, &mut headers) || !headers.starts_with(b"MZ") {
        return None;
    }
    let number = |at: usize| Some(u32::from_le_bytes(*headers.get(at..)?.first_chunk()?) as usize);
    let signature = number(0x3C)?;
    let optional = signature + 24;
    // The tables begin later in images with 64-bit addresses.
    let tables = optional + if number(optional)? & 0xFFFF == 0x20B { 112 } else { 96 };
    let (bytes, managed) = (number(optional + 56)?, number(tables + 8 * MANAGED)?);
    let inside = |at: usize, into: &mut [u8]| at != 0 && at + into.len() <= bytes && copy_if_there(base + at, into);
    let mut header = [0; 72];
    if !inside(managed, &mut header) {
        return None;
    }
    let native = u32::from_le_bytes(*header[64..].first_chunk()?) as usize;
    let mut found = [0; 4];
    let is_compiled = inside(native, &mut found) && found == SIGNATURE;
    let (pieces, length) = (number(tables + 8 * EXCEPTIONS)?, number(tables + 8 * EXCEPTIONS + 4)?);
    let pieces = if pieces.checked_add(length)? <= bytes { base + pieces..base + pieces + length } else { base..base };
    is_compiled.then(|| Image { addresses: base..base + bytes, pieces, rows: OnceLock::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image of 64-bit code with its headers, as it is laid out in memory.
    fn image() -> Vec<u8> {
        let mut image = vec![0; 0x3000];
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        let word = |number: u32| number.to_le_bytes();
        put(0, b"MZ");
        put(0x3C, &word(0x80));
        put(0x80 + 24, &0x20B_u16.to_le_bytes());
        put(0x80 + 24 + 56, &word(0x3000));
        put(0x80 + 24 + 112 + 8 * 3, &word(0x2800));
        put(0x80 + 24 + 112 + 8 * 3 + 4, &word(24));
        put(0x80 + 24 + 112 + 8 * 14, &word(0x1000));
        put(0x1000 + 64, &word(0x2000));
        put(0x2000, b"RTR\0");
        image
    }

    #[test]
    fn an_image_with_precompiled_code_is_known_by_its_headers_wherever_it_lies() {
        let image = image();
        let base = image.as_ptr().expose_provenance();
        let whole = Image::from_ranges(base..base + 0x3000, base + 0x2800..base + 0x2818);
        assert_eq!(image_at(base), Some(whole));
        assert_eq!((image_at(0), image_at(0x1000)), (None, None), "nothing is there");
    }

    /// The agent once ended the program at such an exception.
    #[test]
    fn a_table_for_which_there_is_no_memory_is_none_and_ends_nothing() {
        let image = Image::from_ranges(0x1000..0x2000, 0x1000..isize::MAX as usize);
        assert_eq!(image.pieces_in(0..0x1000), &[]);
        assert_eq!(image.rows.get(), None, "there may be memory the next time");
    }

    #[test]
    fn a_piece_is_found_by_an_address_in_it() {
        let rows = [[0x10_u32, 0x20, 0], [0x20, 0x28, 0], [0x40, 0x50, 0]];
        let table: Vec<u8> = rows.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
        let pieces = table.as_ptr().expose_provenance();
        let image = Image::from_ranges(0x1000..0x2000, pieces..pieces + table.len());
        let around = |address| image.piece_around(address).map(|piece| (piece.start, piece.end));
        assert_eq!([around(0x1010), around(0x101F)], [Some((0x1010, 0x1020)); 2]);
        assert_eq!([around(0x1020), around(0x104F)], [Some((0x1020, 0x1028)), Some((0x1040, 0x1050))]);
        assert_eq!([0xFFF, 0x100F, 0x1028, 0x1050].map(around), [None; 4]);
    }

    #[test]
    fn modules_are_asked_for_once_for_each_that_was_loaded() {
        let (mut images, mut asked) = (Images::default(), 0);
        let mut around = |loads, address| {
            let list = || {
                asked += 1;
                // The runtime answers nothing while it is busy.
                (asked > 1).then(Vec::new)
            };
            images.around_or_list(loads, address, list, |_| None).is_some()
        };
        for address in [1, 2, 3] {
            assert!(!around(0, address));
        }
        assert!(!around(1, 1) && !around(1, 2));
        assert_eq!(asked, 3, "code that lies in no image asks for them all again and again");
    }

    #[test]
    fn an_image_that_is_cut_or_has_no_such_code_is_none() {
        for (at, byte) in [(0, 0), (0x2000, b'X'), (0x1041, 0xFF), (0x80 + 24 + 112 + 8 * 14 + 1, 0), (0x3E, 0xFF)] {
            let mut image = image();
            image[at] = byte;
            assert_eq!(image_at(image.as_ptr().expose_provenance()), None, "byte {at:#x}");
        }
    }
}
