//! The PE image that contains the metadata: sections, the CLI header, the debug directory. Source:
//! ECMA-335, II.25.

/// A PE image as it lies in its file.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    sections: Vec<Section>,
    /// Address of the CLI header.
    cli: u32,
    /// Address and length of the debug directory.
    debug: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
struct Section {
    address: u32,
    /// Position and length in the file.
    start: u32,
    length: u32,
}

/// Maximum number of debug directory entries to examine.
const MOST_ENTRIES: usize = 64;

fn half(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn word(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

impl Image {
    /// Headers of an image; `None` if the bytes are not an image with managed code.
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        if half(data, 0)? != 0x5a4d {
            return None;
        }
        let header = word(data, 0x3c)? as usize;
        if word(data, header)? != 0x4550 {
            return None;
        }
        let optional = header.checked_add(24)?;
        let directories = match half(data, optional)? {
            0x10b => optional + 96,
            0x20b => optional + 112,
            _ => return None,
        };
        let first = optional + usize::from(half(data, header + 20)?);
        let section = |number: usize| {
            let at = first + number * 40;
            Some(Section { address: word(data, at + 12)?, length: word(data, at + 16)?, start: word(data, at + 20)? })
        };
        let sections = (0..usize::from(half(data, header + 6)?)).map(section).collect::<Option<_>>()?;
        let cli = word(data, directories + 14 * 8)?;
        let debug = (word(data, directories + 6 * 8)?, word(data, directories + 6 * 8 + 4)?);
        (cli != 0).then_some(Self { sections, cli, debug })
    }

    /// Returns the file offset of a virtual address.
    pub(crate) fn file_offset(&self, address: u32) -> Option<usize> {
        self.sections.iter().find_map(|section| {
            let within = address.checked_sub(section.address).filter(|within| *within < section.length)?;
            Some(section.start as usize + within as usize)
        })
    }

    /// Position of the metadata in the file.
    pub(crate) fn metadata(&self, data: &[u8]) -> Option<usize> {
        self.file_offset(word(data, self.file_offset(self.cli)?.checked_add(8)?)?)
    }

    /// Token of a program's entry point; 0 for a library.
    pub(crate) fn entry_point(&self, data: &[u8]) -> Option<u32> {
        word(data, self.file_offset(self.cli)?.checked_add(20)?)
    }

    /// Kind and content of the entries of the debug directory.
    pub(crate) fn debug_entries<'d>(&self, data: &'d [u8]) -> impl Iterator<Item = (u32, &'d [u8])> {
        let (address, length) = self.debug;
        let start = self.file_offset(address).filter(|_| address != 0);
        let count = (length as usize / 28).min(MOST_ENTRIES);
        let entry = move |number: usize| {
            let at = start?.checked_add(number * 28)?;
            let (kind, size, place) = (word(data, at + 12)?, word(data, at + 16)?, word(data, at + 24)?);
            Some((kind, data.get(place as usize..)?.get(..size as usize)?))
        };
        (0..count).filter_map(entry)
    }
}
