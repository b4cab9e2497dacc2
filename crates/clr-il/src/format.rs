//! Layout of a body's bytes: header, code and sections. Source: ECMA-335, II.25.4.

use crate::{Error, Result};

/// Mask of the bits that give the header's kind.
const KIND: u8 = 3;
/// A header of one byte.
pub(crate) const TINY: u8 = 2;
/// A header of three words.
pub(crate) const FAT: u8 = 3;
/// Number of bits below the code length in a tiny header.
pub(crate) const TINY_BITS: u8 = 2;
/// Maximum code length with a tiny header.
pub(crate) const LONGEST_TINY: usize = 63;
/// Maximum stack depth of a method with a tiny header.
pub(crate) const TINY_STACK: u16 = 8;
/// A fat header's length in bytes, and in words in the upper bits of its second byte.
pub(crate) const FAT_HEADER: usize = 12;
pub(crate) const FAT_WORDS: u8 = 3;
/// Flags of a fat header: sections follow the code; local variables begin as zero.
pub(crate) const MORE_SECTIONS: u16 = 8;
pub(crate) const INIT_LOCALS: u16 = 0x10;
/// Flags of a section: it has exception clauses; its length takes three bytes; another section
/// follows.
pub(crate) const CLAUSES: u8 = 1;
pub(crate) const SECTION_KIND: u8 = 0x3f;
pub(crate) const FAT_SECTION: u8 = 0x40;
pub(crate) const ANOTHER_SECTION: u8 = 0x80;
/// Length of a section's header.
pub(crate) const SECTION_HEADER: usize = 4;
/// Length of an exception clause in a small and in a fat section.
pub(crate) const SMALL_CLAUSE: usize = 12;
pub(crate) const FAT_CLAUSE: usize = 24;
/// Maximum number of sections; no compiler writes so many.
pub(crate) const MOST_SECTIONS: usize = 16;

/// Length of a method's body in bytes. `byte` returns the byte at an offset, and `None` past the
/// end.
///
/// Use it if the end of a body in memory is unknown: it requests no byte after the body.
///
/// # Errors
/// The defect in the body.
pub fn length_by(byte: impl Fn(usize) -> Option<u8>) -> Result<usize> {
    let first = byte(0).ok_or(Error::Empty)?;
    match first & KIND {
        TINY => Ok(1 + usize::from(first >> TINY_BITS)),
        FAT => fat_length(first, &byte),
        _ => Err(Error::NoHeader),
    }
}

/// Length of the body at the beginning of the bytes. The bytes may be incomplete.
///
/// # Errors
/// The defect in the body.
pub fn length(bytes: &[u8]) -> Result<usize> {
    length_by(|at| bytes.get(at).copied())
}

fn fat_length(first: u8, byte: &impl Fn(usize) -> Option<u8>) -> Result<usize> {
    if byte(1).ok_or(Error::CutHeader)? >> 4 != FAT_WORDS {
        return Err(Error::HeaderSize);
    }
    let code = little_endian(byte, 4, 4).ok_or(Error::CutHeader)?;
    byte(FAT_HEADER - 1).ok_or(Error::CutHeader)?;
    let mut end = FAT_HEADER.checked_add(code).ok_or(Error::TooLong)?;
    let mut has_more = u16::from(first) & MORE_SECTIONS != 0;
    for _ in 0..MOST_SECTIONS {
        if !has_more {
            return Ok(end);
        }
        let start = end.checked_next_multiple_of(4).ok_or(Error::CutSections)?;
        let flags = byte(start).ok_or(Error::CutSections)?;
        let size = little_endian(byte, start + 1, size_bytes(flags)).ok_or(Error::CutSections)?;
        end = start.checked_add(section_length(flags, size)?).ok_or(Error::CutSections)?;
        has_more = flags & ANOTHER_SECTION != 0;
    }
    if has_more { Err(Error::TooManySections) } else { Ok(end) }
}

/// Number of bytes of a section's length field.
pub(crate) const fn size_bytes(flags: u8) -> usize {
    if flags & FAT_SECTION != 0 { 3 } else { 1 }
}

/// Length of an exception clause in a section with these flags.
pub(crate) const fn clause_size(flags: u8) -> usize {
    if flags & FAT_SECTION != 0 { FAT_CLAUSE } else { SMALL_CLAUSE }
}

/// Length of a section whose length field is `size`. Some compilers don't include the header; the
/// runtime divides by the length of a clause and accepts both forms.
pub(crate) fn section_length(flags: u8, size: usize) -> Result<usize> {
    let is_without_header = flags & SECTION_KIND == CLAUSES && size != 0 && size.is_multiple_of(clause_size(flags));
    match size {
        _ if is_without_header => Ok(SECTION_HEADER + size),
        0..SECTION_HEADER => Err(Error::ShortSection),
        _ => Ok(size),
    }
}

fn little_endian(byte: &impl Fn(usize) -> Option<u8>, start: usize, bytes: usize) -> Option<usize> {
    (0..bytes).rev().try_fold(0_usize, |number, at| Some(number << 8 | usize::from(byte(start.checked_add(at)?)?)))
}

/// Checks, by header, lengths and sections, that the bytes are a complete body. Instructions are
/// not checked.
///
/// # Errors
/// The defect in the body.
pub fn check(body: &[u8]) -> Result<()> {
    match length(body)? {
        1 => Err(Error::NoCode),
        length if length > body.len() => Err(Error::CutCode),
        _ => Ok(()),
    }
}

/// Parts of a complete body, which ends at the end of the bytes.
pub(crate) struct Parts<'b> {
    /// Content of a fat header.
    pub(crate) fat: Option<FatHeader>,
    pub(crate) code: &'b [u8],
    /// The bytes after the code.
    pub(crate) rest: &'b [u8],
}

pub(crate) struct FatHeader {
    /// The lower twelve bits.
    pub(crate) flags: u16,
    pub(crate) max_stack: u16,
    pub(crate) locals: u32,
}

pub(crate) fn split(body: &[u8]) -> Result<Parts<'_>> {
    check(body)?;
    if length(body)? < body.len() {
        return Err(Error::BytesBehind);
    }
    match *body {
        [first, ref code @ ..] if first & KIND == TINY => Ok(Parts { fat: None, code, rest: &[] }),
        [f0, f1, s0, s1, c0, c1, c2, c3, l0, l1, l2, l3, ref rest @ ..] => {
            let code = u32::from_le_bytes([c0, c1, c2, c3]) as usize;
            let (code, rest) = rest.split_at_checked(code).ok_or(Error::CutCode)?;
            if code.is_empty() {
                return Err(Error::NoCode);
            }
            let fat = FatHeader {
                flags: u16::from_le_bytes([f0, f1]) & 0xfff,
                max_stack: u16::from_le_bytes([s0, s1]),
                locals: u32::from_le_bytes([l0, l1, l2, l3]),
            };
            Ok(Parts { fat: Some(fat), code, rest })
        }
        _ => Err(Error::CutHeader),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fat(flags: u8, code: u32, rest: &[u8]) -> Vec<u8> {
        let header = [FAT | flags, 0x30, 8, 0];
        header.into_iter().chain(code.to_le_bytes()).chain([0; 4]).chain(rest.iter().copied()).collect()
    }

    const MORE: u8 = MORE_SECTIONS as u8;

    #[test]
    fn whole_bodies_are_known_by_their_length() {
        assert_eq!(check(&[1 << 2 | 2, 0x2a]), Ok(()));
        assert_eq!(check(&fat(0, 1, &[0x2a])), Ok(()));
        // One byte of code, up to a multiple of four, and a small section with one clause.
        let clause = [[0x2a, 0, 0, 0].as_slice(), &[1, 16, 0, 0], &[0; 12]].concat();
        let body = fat(MORE, 1, &clause);
        assert_eq!(length(&body), Ok(32));
        assert_eq!(check(&body), Ok(()));
        let two = [[0x2a, 0, 0, 0].as_slice(), &[0xc1, 28, 0, 0], &[0; 24], &[1, 16, 0, 0], &[0; 12]].concat();
        assert_eq!(length(&fat(MORE, 1, &two)), Ok(12 + 4 + 28 + 16));
    }

    #[test]
    fn sections_whose_length_leaves_out_their_header_are_as_long() {
        let clause = [[0x2a, 0, 0, 0].as_slice(), &[1, 12, 0, 0], &[0; 12]].concat();
        assert_eq!(length(&fat(MORE, 1, &clause)), Ok(32));
    }

    #[test]
    fn bodies_that_are_none_are_told_apart_from_those_that_are_cut() {
        let wrong = |body: &[u8]| check(body).unwrap_err();
        assert_eq!(wrong(&[]), Error::Empty);
        assert_eq!(wrong(&[2]), Error::NoCode);
        assert_eq!(wrong(&[0, 0x2a]), Error::NoHeader);
        assert_eq!(wrong(&[2 << 2 | 2, 0x2a]), Error::CutCode);
        assert_eq!(wrong(&[3, 0x30, 8]), Error::CutHeader);
        assert_eq!(wrong(&[3, 0x20, 8]), Error::HeaderSize);
        assert_eq!(wrong(&fat(0, 0x00ff_ffff, &[0x2a])), Error::CutCode);
        assert_eq!(wrong(&fat(0, u32::MAX, &[0x2a])), Error::CutCode);
        assert_eq!(wrong(&fat(MORE, 1, &[0x2a])), Error::CutSections);
        assert_eq!(wrong(&fat(MORE, 4, &[0x2a, 0, 0, 0, 1, 3, 0, 0])), Error::ShortSection);
        assert_eq!(wrong(&fat(MORE, 4, &[0x2a, 0, 0, 0, 1, 16, 0, 0])), Error::CutCode);
        let endless = [[0x2a, 0, 0, 0].as_slice(), &[0x82, 4, 0, 0].repeat(20)].concat();
        assert_eq!(wrong(&fat(MORE, 4, &endless)), Error::TooManySections);
    }
}
