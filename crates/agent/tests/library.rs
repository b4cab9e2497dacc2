//! Promises of the agent's library to the loader.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clrscope_symbols::{GlibcSymbol, GlibcVersion};
use clrscope_testkit::agent;

/// The oldest C library that published agents load with.
const OLDEST: GlibcVersion = GlibcVersion { major: 2, minor: 17 };

/// Program header types (elf.h).
const PT_DYNAMIC: u32 = 2;
const PT_TLS: u32 = 7;
/// Tags of the dynamic section (elf.h).
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_1_NODELETE: u64 = 8;

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The program headers of a 64-bit little-endian ELF file: type, file offset, size in the file,
/// size in memory.
fn segments(elf: &[u8]) -> Vec<(u32, usize, usize, usize)> {
    assert!(elf.starts_with(b"\x7fELF\x02\x01"), "not a 64-bit little-endian ELF file");
    let (table, size, count) = (number(elf, 32, 8), number(elf, 54, 2), number(elf, 56, 2));
    let header = |index| (table + index * size) as usize;
    let read = |at: usize| {
        let field = |offset| number(elf, at + offset, 8) as usize;
        (number(elf, at, 4) as u32, field(8), field(32), field(40))
    };
    (0..count).map(|index| read(header(index))).collect()
}

#[test]
fn thread_local_storage_fits_what_the_loader_keeps_spare() {
    // Initial-exec storage of a library loaded late comes out of a small surplus (glibc: 1664 bytes
    // in all), which other libraries of the process need too.
    let elf = std::fs::read(agent()).expect("the agent");
    let (.., bytes) = segments(&elf).into_iter().find(|segment| segment.0 == PT_TLS).expect("a TLS segment");
    assert!(bytes < 512, "{bytes} bytes of thread-local storage");
}

#[test]
fn the_library_is_never_unloaded() {
    let elf = std::fs::read(agent()).expect("the agent");
    let (_, at, bytes, _) =
        segments(&elf).into_iter().find(|segment| segment.0 == PT_DYNAMIC).expect("a dynamic section");
    let entries = elf[at..at + bytes].chunks_exact(16).map(|entry| (number(entry, 0, 8), number(entry, 8, 8)));
    let flags = entries.filter(|(tag, _)| *tag == DT_FLAGS_1).map(|(_, value)| value).next().unwrap_or(0);
    assert_ne!(flags & DF_1_NODELETE, 0, "hooks run on after Shutdown");
}

/// Functions that each program had in itself until glibc 2.32, and the library has since 2.33 (its
/// `NEWS`).
const ONCE_IN_PROGRAMS: [&str; 4] = ["stat64", "fstat64", "lstat64", "fstatat64"];

/// A build against this machine's C library takes the newest version of each symbol. A build
/// against an old one takes the version that was there then, so there must be one: `gettid` has
/// none before 2.30, and kept the agent out of Debian 11.
#[test]
fn everything_that_the_agent_takes_from_the_c_library_was_in_glibc_2_17() {
    let maps = fs::read_to_string("/proc/self/maps").expect("own maps");
    let own = maps.lines().filter_map(|line| Some(&line[line.find('/')?..])).find(|path| path.contains("/libc.so.6"));
    let folder = Path::new(own.expect("glibc is mapped")).parent().expect("a folder");
    let parts = ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"];
    let libraries = parts.iter().filter_map(|part| fs::read(folder.join(part)).ok());
    let provided: Vec<GlibcSymbol> = libraries.flat_map(|library| GlibcSymbol::defined_by(&library)).collect();
    let old: BTreeSet<&str> =
        provided.iter().filter(|symbol| symbol.version <= OLDEST).map(|symbol| symbol.name.as_str()).collect();
    assert!(old.contains("malloc") && !old.contains("gettid"), "{} symbols in {folder:?}", old.len());
    let imported = GlibcSymbol::imported_by(&fs::read(agent()).expect("the agent"));
    assert!(imported.len() > 50, "{imported:?}");
    let is_there = |symbol: &&GlibcSymbol| old.contains(&*symbol.name) || ONCE_IN_PROGRAMS.contains(&&*symbol.name);
    let newer: Vec<_> = imported.iter().filter(|symbol| !symbol.is_weak && !is_there(symbol)).collect();
    assert!(newer.is_empty(), "{newer:?}");
}
