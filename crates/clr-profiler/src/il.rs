//! Bodies of methods as bytes: header, code and sections. Source of the layout: ECMA-335, II.25.4.

use crate::{Error, HResult, Result};

/// Finding, or a sentence that says what is wrong with a body.
type Outcome<T> = std::result::Result<T, &'static str>;

/// The two lowest bits of a header say which kind it is.
const KIND: u8 = 3;
const TINY: u8 = 2;
const FAT: u8 = 3;
/// A fat header's length in bytes.
const FAT_HEADER: usize = 12;
/// Sections follow the code.
const MORE_SECTIONS: u8 = 8;
/// Flags of a section: its length takes three bytes; another one follows.
const FAT_SECTION: u8 = 0x40;
const ANOTHER_SECTION: u8 = 0x80;
/// More sections than any compiler writes.
const MOST_SECTIONS: usize = 16;

/// Length of a method's body, of which `byte` gives each byte by its place, and `None` past the end.
///
/// # Errors
/// A sentence that says what is wrong with the body.
pub(crate) fn length(byte: impl Fn(usize) -> Option<u8>) -> Outcome<usize> {
    let first = byte(0).ok_or("the body is empty")?;
    match first & KIND {
        TINY => Ok(1 + usize::from(first >> 2)),
        FAT => fat_length(first, &byte),
        _ => Err("the body begins with no header: its lowest bits are neither those of a tiny nor of a fat one"),
    }
}

fn fat_length(first: u8, byte: &impl Fn(usize) -> Option<u8>) -> Outcome<usize> {
    let cut = "the body ends within its header";
    if byte(1).ok_or(cut)? >> 4 != 3 {
        return Err("the fat header does not say that it has three words");
    }
    let code = little_endian(byte, 4, 4).ok_or(cut)?;
    byte(FAT_HEADER - 1).ok_or(cut)?;
    let mut end = FAT_HEADER.checked_add(code).ok_or("the code is too long")?;
    let mut has_more = first & MORE_SECTIONS != 0;
    for _ in 0..MOST_SECTIONS {
        if !has_more {
            return Ok(end);
        }
        let cut = "the body ends within its sections";
        let start = end.checked_next_multiple_of(4).ok_or(cut)?;
        let flags = byte(start).ok_or(cut)?;
        let bytes = if flags & FAT_SECTION != 0 { 3 } else { 1 };
        let length = little_endian(byte, start + 1, bytes).ok_or(cut)?;
        if length < 4 {
            return Err("a section is shorter than its own header");
        }
        end = start.checked_add(length).ok_or(cut)?;
        has_more = flags & ANOTHER_SECTION != 0;
    }
    Err("the body has more sections than any method")
}

fn little_endian(byte: &impl Fn(usize) -> Option<u8>, start: usize, bytes: usize) -> Option<usize> {
    (0..bytes).rev().try_fold(0_usize, |number, at| Some(number << 8 | usize::from(byte(start.checked_add(at)?)?)))
}

/// Whether the bytes hold a whole body: a header, as much code as it says, and the sections that it says follow.
///
/// # Errors
/// A sentence that says what is wrong.
pub(crate) fn check(body: &[u8]) -> Outcome<()> {
    let length = length(|at| body.get(at).copied())?;
    match length {
        1 => Err("the body has no instruction"),
        _ if length > body.len() => Err("the header says that the body is longer than its bytes"),
        _ => Ok(()),
    }
}

/// Length of a method's body that was checked to be whole.
pub(crate) fn body_size(method: &'static str, body: &[u8]) -> Result<u32> {
    let invalid = |reason: &'static str| Error::refused(method, reason).with_hresult(HResult::INVALID_ARGUMENT);
    check(body).map_err(invalid)?;
    u32::try_from(body.len()).map_err(|_| invalid("the body is longer than 4 GiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fat(flags: u8, code: u32, rest: &[u8]) -> Vec<u8> {
        let header = [FAT | flags, 0x30, 8, 0];
        header.into_iter().chain(code.to_le_bytes()).chain([0; 4]).chain(rest.iter().copied()).collect()
    }

    #[test]
    fn whole_bodies_are_known_by_their_length() {
        assert_eq!(check(&[1 << 2 | 2, 0x2a]), Ok(()));
        assert_eq!(check(&fat(0, 1, &[0x2a])), Ok(()));
        // One byte of code, up to a multiple of four, and a small section with one clause.
        let clause = [[0x2a, 0, 0, 0].as_slice(), &[1, 16, 0, 0], &[0; 12]].concat();
        let body = fat(MORE_SECTIONS, 1, &clause);
        assert_eq!(length(|at| body.get(at).copied()), Ok(32));
        assert_eq!(check(&body), Ok(()));
        let two = [[0x2a, 0, 0, 0].as_slice(), &[0xc1, 28, 0, 0], &[0; 24], &[1, 16, 0, 0], &[0; 12]].concat();
        let body = fat(MORE_SECTIONS, 1, &two);
        assert_eq!(length(|at| body.get(at).copied()), Ok(12 + 4 + 28 + 16));
    }

    #[test]
    fn bodies_that_are_none_are_told_apart_from_those_that_are_cut() {
        let wrong = |body: &[u8]| check(body).unwrap_err();
        assert!(wrong(&[]).contains("empty"));
        assert!(wrong(&[2]).contains("no instruction"));
        assert!(wrong(&[0, 0x2a]).contains("no header"));
        assert!(wrong(&[2 << 2 | 2, 0x2a]).contains("longer than its bytes"));
        assert!(wrong(&[3, 0x30, 8]).contains("header"));
        assert!(wrong(&fat(0, 0x00ff_ffff, &[0x2a])).contains("longer than its bytes"));
        assert!(wrong(&fat(0, u32::MAX, &[0x2a])).contains("longer than its bytes"));
        assert!(wrong(&fat(MORE_SECTIONS, 1, &[0x2a])).contains("sections"));
        assert!(wrong(&fat(MORE_SECTIONS, 4, &[0x2a, 0, 0, 0, 1, 3, 0, 0])).contains("shorter"));
        assert!(wrong(&fat(MORE_SECTIONS, 4, &[0x2a, 0, 0, 0, 1, 16, 0, 0])).contains("longer than its bytes"));
    }
}
