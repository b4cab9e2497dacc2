//! ELF files: the location of their code and their unwind data.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Most bytes of one table or section that are read.
const MOST: u64 = 64 << 20;
const LOAD: u32 = 1;
const EH_FRAME: u32 = 0x6474_e550;
/// Type of a section without bytes in the file.
const NO_BITS: u32 = 8;

/// A section of the loaded file. Addresses are those given in the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Section {
    pub addresses: Range<u64>,
    pub bytes: Vec<u8>,
}

/// The parts of an ELF file that are used here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Elf {
    /// Range of the loaded addresses, as given in the file.
    pub loaded: Range<u64>,
    pub text: Range<u64>,
    pub(crate) eh_frame: Option<Section>,
    pub(crate) eh_frame_header: Option<Section>,
    /// Build id in hexadecimal digits; empty if the file has none.
    pub(crate) build_id: String,
}

/// A source of bytes that are read on demand.
trait Bytes {
    fn read(&self, at: u64, bytes: u64) -> Option<Vec<u8>>;
}

impl Bytes for File {
    fn read(&self, at: u64, bytes: u64) -> Option<Vec<u8>> {
        let mut buffer = vec![0; usize::try_from(bytes).ok().filter(|_| bytes <= MOST)?];
        self.read_exact_at(&mut buffer, at).ok()?;
        Some(buffer)
    }
}

impl Bytes for [u8] {
    fn read(&self, at: u64, bytes: u64) -> Option<Vec<u8>> {
        let start = usize::try_from(at).ok()?;
        self.get(start..start.checked_add(usize::try_from(bytes).ok()?)?).map(<[u8]>::to_vec)
    }
}

impl Elf {
    /// Reads a file; `None` if it can't be read or is of another kind.
    pub(crate) fn of_file(path: &Path) -> Option<Self> {
        Self::read(&File::open(path).ok()?)
    }

    /// Reads an image whose layout in memory is the same as in its file.
    pub(crate) fn of_image(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes)
    }

    fn read(file: &(impl Bytes + ?Sized)) -> Option<Self> {
        let head = file.read(0, 64)?;
        // 64 bits, little-endian.
        if !head.starts_with(b"\x7FELF\x02\x01") {
            return None;
        }
        let mut elf = Self::default();
        let segments = table(file, number(&head, 0x20, 8)?, &head, 0x36, 0x38)?;
        for segment in &segments {
            elf.add_segment(file, segment)?;
        }
        if elf.loaded.is_empty() {
            return None;
        }
        // Frames of a file without sections can still be unwound by frame pointers.
        elf.add_sections(file, &head);
        Some(elf)
    }

    fn add_segment(&mut self, file: &(impl Bytes + ?Sized), segment: &[u8]) -> Option<()> {
        const NOTE: u32 = 4;
        let kind = number(segment, 0, 4)? as u32;
        let (offset, address) = (number(segment, 8, 8)?, number(segment, 16, 8)?);
        let (stored, taken) = (number(segment, 32, 8)?, number(segment, 40, 8)?);
        match kind {
            LOAD => {
                let (start, end) = (address & !0xFFF, address.saturating_add(taken));
                let is_first = self.loaded.is_empty();
                self.loaded.start = if is_first { start } else { self.loaded.start.min(start) };
                self.loaded.end = self.loaded.end.max(end);
                if number(segment, 4, 4)? & 1 != 0 && self.text.is_empty() {
                    self.text = address..address.saturating_add(taken);
                }
            }
            EH_FRAME => {
                let bytes = file.read(offset, stored)?;
                self.eh_frame_header = Some(Section { addresses: address..address.saturating_add(stored), bytes });
            }
            NOTE if self.build_id.is_empty() => {
                self.build_id = file.read(offset, stored).and_then(|notes| build_id(&notes)).unwrap_or_default();
            }
            _ => {}
        }
        Some(())
    }

    fn add_sections(&mut self, file: &(impl Bytes + ?Sized), head: &[u8]) -> Option<()> {
        let sections = table(file, number(head, 0x28, 8)?, head, 0x3A, 0x3C)?;
        let names = sections.get(number(head, 0x3E, 2)? as usize)?;
        let names = file.read(number(names, 0x18, 8)?, number(names, 0x20, 8)?)?;
        for section in &sections {
            let name = names.get(number(section, 0, 4)? as usize..)?;
            let (address, bytes) = (number(section, 0x10, 8)?, number(section, 0x20, 8)?);
            let addresses = address..address.saturating_add(bytes);
            if name.starts_with(b".text\0") {
                self.text = addresses;
            } else if name.starts_with(b".eh_frame\0") && number(section, 4, 4)? as u32 != NO_BITS {
                let bytes = file.read(number(section, 0x18, 8)?, bytes)?;
                self.eh_frame = Some(Section { addresses, bytes });
            }
        }
        Some(())
    }
}

impl Elf {
    /// The function around an address, from its beginning to the beginning of the next function.
    /// Addresses are those given in the file. Uses the sorted table of the unwind data. `None` if
    /// there is no such table, or if it does not have the usual form that linkers write.
    pub(crate) fn function_around(&self, address: u64) -> Option<Range<u64>> {
        self.entry_around(address).map(|(function, _)| function)
    }

    /// Whether unwind data covers the function around an address. Code written in assembler may
    /// have none.
    pub(crate) fn has_unwind_data(&self, address: u64) -> bool {
        let covered = || {
            let (function, entry) = self.entry_around(address)?;
            let frames = self.eh_frame.as_ref()?;
            // Length, distance of the common part, begin, length of the code (System V ABI,
            // `.eh_frame`).
            let at = usize::try_from(entry.checked_sub(frames.addresses.start)?).ok()?;
            let length = number(&frames.bytes, at.checked_add(12)?, 4)?;
            Some(address - function.start < length)
        };
        covered().unwrap_or(false)
    }

    /// The function around an address, and the address of its unwind data.
    fn entry_around(&self, address: u64) -> Option<(Range<u64>, u64)> {
        /// Version 1; the table's length as a number, its rows as distances from the header.
        const FORM: [u8; 4] = [1, 0x1B, 0x03, 0x3B];
        const ROWS: usize = 12;
        let Section { addresses, bytes } = self.eh_frame_header.as_ref()?;
        if !bytes.starts_with(&FORM) {
            return None;
        }
        let at = |offset: usize| {
            let distance = number(bytes, offset, 4)? as u32 as i32;
            addresses.start.checked_add_signed(distance.into())
        };
        let start = |row: usize| at(ROWS + 8 * row);
        let (mut low, mut high) = (0, (number(bytes, 8, 4)? as usize).min((bytes.len() - ROWS) / 8));
        let rows = high;
        // The last row that begins at or before the address.
        while low < high {
            let middle = usize::midpoint(low, high);
            if start(middle)? <= address { low = middle + 1 } else { high = middle }
        }
        let end = if low < rows { start(low)? } else { self.text.end };
        let row = low.checked_sub(1)?;
        let begin = start(row)?;
        (begin..end).contains(&address).then_some((begin..end, at(ROWS + 8 * row + 4)?))
    }
}

/// The rows of a table of a file.
fn table(
    file: &(impl Bytes + ?Sized),
    at: u64,
    head: &[u8],
    row_bytes_at: usize,
    rows_at: usize,
) -> Option<Vec<Vec<u8>>> {
    let (row, rows) = (number(head, row_bytes_at, 2)?, number(head, rows_at, 2)?);
    if row == 0 {
        return Some(Vec::new());
    }
    let bytes = file.read(at, row * rows)?;
    Some(bytes.chunks_exact(row as usize).map(<[u8]>::to_vec).collect())
}

/// The little-endian number of `width` bytes at an offset.
fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let mut word = [0; 8];
    word[..width].copy_from_slice(bytes.get(at..at.checked_add(width)?)?);
    Some(u64::from_le_bytes(word))
}

/// The build id among notes (type 3 of `GNU`).
fn build_id(notes: &[u8]) -> Option<String> {
    let mut at = 0;
    loop {
        let (name, bytes) = (number(notes, at, 4)? as usize, number(notes, at + 4, 4)? as usize);
        let start = at.checked_add(12)?.checked_add(name.checked_next_multiple_of(4)?)?;
        let content = notes.get(start..start.checked_add(bytes)?)?;
        if number(notes, at + 8, 4)? == 3 && notes.get(at + 12..at + 16) == Some(b"GNU\0") {
            return Some(content.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        at = start.checked_add(bytes.checked_next_multiple_of(4)?)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_itself_has_code_frames_and_a_start() {
        let elf = Elf::of_file(Path::new("/proc/self/exe")).expect("an ELF file");
        assert!(
            elf.loaded.start <= elf.text.start && elf.text.end <= elf.loaded.end,
            "{:?} {:?}",
            elf.loaded,
            elf.text
        );
        let frames = elf.eh_frame.expect("frames to be undone");
        assert_eq!((frames.addresses.end - frames.addresses.start) as usize, frames.bytes.len());
        assert!(elf.eh_frame_header.is_some());
    }

    #[test]
    fn a_function_begins_where_the_unwind_data_says() {
        let elf = Elf::of_file(Path::new("/proc/self/exe")).expect("an ELF file");
        let maps = clrscope_agent_base::os::process::mappings();
        let first = maps.lines().next().and_then(|line| line.split('-').next()).expect("a mapping");
        let base = u64::from_str_radix(first, 16).expect("an address") - elf.loaded.start;
        let function = Elf::function_around as *const () as u64 - base;
        let found = elf.function_around(function).expect("a function");
        assert_eq!(found.start, function);
        assert_eq!(elf.function_around(found.end - 1), Some(found.clone()));
        assert!(elf.has_unwind_data(function) && !elf.has_unwind_data(0));
        let cut = Elf { eh_frame: None, ..elf.clone() };
        assert!(!cut.has_unwind_data(function), "without the data itself");
        assert_eq!((elf.function_around(0), elf.function_around(u64::MAX)), (None, None));
        let cut = |bytes: usize| {
            let mut cut = elf.clone();
            cut.eh_frame_header.as_mut().expect("a table").bytes.truncate(bytes);
            cut.function_around(function)
        };
        assert!([0, 4, 8, 11].map(cut).iter().all(Option::is_none));
    }

    #[test]
    fn what_is_cut_or_something_else_is_refused() {
        let whole = std::fs::read("/proc/self/exe").expect("the test");
        for bytes in [0, 4, 63, 64, 200] {
            assert!(Elf::of_image(&whole[..bytes]).is_none(), "{bytes}");
        }
        assert!(Elf::of_image(&[b'M'; 4096]).is_none());
    }
}
