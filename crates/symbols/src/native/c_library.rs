//! Which C library an ELF file is for: the GNU one, or musl.
//!
//! A program names its dynamic loader, which is a part of the C library; a shared library lists the
//! C library among the libraries that it needs. Loader and library are recognised by their file
//! names (Linux Standard Base 5.0, "Program Interpreter" and "Shared Library Names"; musl's
//! `ldso/dynlink.c`).

use std::fmt;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use clr_metadata::{MOST_BYTES, read_bounded};
use object::Endianness;
use object::elf::{DT_NEEDED, FileHeader64, PT_INTERP};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

/// Bytes of a program that are searched for the table of its segments.
const HEAD: usize = 4096;
/// Maximum number of bytes of a path (`PATH_MAX`).
const MOST_PATH: u64 = 4096;

/// A C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CLibrary {
    /// The GNU C library.
    Gnu,
    /// musl, as in Alpine Linux.
    Musl,
}

impl CLibrary {
    /// Returns the C library that a file belongs to, judged by the file name. The file is the
    /// library itself or its dynamic loader.
    #[must_use]
    pub fn of_file(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy();
        let starts = |all: &[&str]| all.iter().any(|start| name.starts_with(start));
        // glibc's `libc.so` is a text for linkers, which no process maps.
        if name == "libc.so" || starts(&["ld-musl-", "libc.musl-"]) {
            return Some(Self::Musl);
        }
        // Up to 2.33 names of files had the version in them (glibc's NEWS for 2.34).
        let is_versioned = starts(&["libc-2.", "ld-2."]) && name.ends_with(".so");
        (is_versioned || name == "libc.so.6" || starts(&["ld-linux"])).then_some(Self::Gnu)
    }

    /// Returns the C library that a shared library is linked with; `None` if it is linked with no
    /// known one, or if the bytes are not a 64-bit ELF file.
    #[must_use]
    pub fn needed_by(elf: &[u8]) -> Option<Self> {
        let header = FileHeader64::<Endianness>::parse(elf).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, elf).ok()?;
        let (entries, link) = sections.dynamic(endian, elf).ok()??;
        let strings = sections.strings(endian, elf, link).ok()?;
        let needed = entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED);
        let names = needed.filter_map(|entry| entry.string(endian, strings).ok());
        names.filter_map(|name| Self::of_file(Path::new(std::ffi::OsStr::from_bytes(name)))).next()
    }
}

impl CLibrary {
    /// Like [`needed_by`](Self::needed_by), for a file that need not be trusted.
    #[must_use]
    pub fn needed_by_file(path: &Path) -> Option<Self> {
        Self::needed_by(&read_bounded(path, MOST_BYTES)?)
    }
}

impl fmt::Display for CLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gnu => "glibc",
            Self::Musl => "musl",
        })
    }
}

/// Returns the dynamic loader that a program names; `None` if it names none, as is the case for
/// statically linked programs, or if it is not a 64-bit ELF file.
#[must_use]
pub fn program_loader(program: &File) -> Option<PathBuf> {
    let mut head = vec![0; HEAD];
    let read = program.read_at(&mut head, 0).ok()?;
    let head = &head[..read];
    let header = FileHeader64::<Endianness>::parse(head).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, head).ok()?;
    let named = segments.iter().find(|segment| segment.p_type(endian) == PT_INTERP)?;
    let length = named.p_filesz(endian);
    if length > MOST_PATH {
        return None;
    }
    let mut path = vec![0; length as usize];
    program.read_exact_at(&mut path, named.p_offset(endian)).ok()?;
    let path = path.split(|&byte| byte == 0).next().filter(|path| !path.is_empty())?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_the_names_of_their_files() {
        let of = |path: &str| CLibrary::of_file(Path::new(path));
        for glibc in ["/lib64/ld-linux-x86-64.so.2", "/a/libc.so.6", "/lib/libc-2.31.so", "/lib/ld-2.31.so"] {
            assert_eq!(of(glibc), Some(CLibrary::Gnu), "{glibc}");
        }
        for musl in ["/lib/ld-musl-x86_64.so.1", "/usr/lib/x86_64-linux-musl/libc.so", "libc.musl-x86_64.so.1"] {
            assert_eq!(of(musl), Some(CLibrary::Musl), "{musl}");
        }
        for other in ["/lib/libcoreclr.so", "/lib/libc-client.so", "/lib/libc.so.7", "/", ""] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    /// The system says with which loader this test runs.
    #[test]
    fn this_test_names_the_loader_that_is_mapped() {
        let own = File::open("/proc/self/exe").expect("the test");
        let loader = program_loader(&own).expect("it is linked dynamically");
        let real = std::fs::canonicalize(&loader).expect("it is there");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("its maps");
        assert!(maps.lines().any(|line| line.ends_with(&real.display().to_string())), "{}", real.display());
        let linked = CLibrary::needed_by(&std::fs::read("/proc/self/exe").expect("the test"));
        assert!(linked.is_some() && linked == CLibrary::of_file(&loader), "{linked:?}");
    }

    #[test]
    fn damaged_programs_name_nothing_or_something_without_harm() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = std::fs::read("/proc/self/exe").expect("the test");
        let loader_of = |bytes: &[u8]| {
            let file = folder.path().join("program");
            std::fs::write(&file, bytes).expect("a file");
            program_loader(&File::open(&file).expect("the file"))
        };
        assert_eq!(loader_of(b"#!/bin/sh\n"), None);
        assert_eq!(loader_of(b"\x7fELF"), None);
        assert_eq!(CLibrary::needed_by(b"\x7fELF"), None);
        for at in 16..1024 {
            let mut damaged = own[..2048].to_vec();
            damaged[at] ^= 0xff;
            let _ = (loader_of(&damaged), CLibrary::needed_by(&damaged));
        }
    }
}
