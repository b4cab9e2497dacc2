//! Promises of the agent's library to the loader.

use clrscope_testkit::agent;

/// Program header types (elf.h).
const PT_DYNAMIC: u32 = 2;
const PT_TLS: u32 = 7;
/// Tags of the dynamic section (elf.h).
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_1_NODELETE: u64 = 8;

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The program headers of a 64-bit little-endian ELF file: type, file offset, size in the file, size in memory.
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
