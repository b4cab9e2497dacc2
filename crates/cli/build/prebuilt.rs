//! Checks whether a prebuilt agent fits the tool that embeds it.
//!
//! A test of the tool includes this file too.

use object::elf::{DT_NEEDED, EM_AARCH64, EM_X86_64, ET_DYN};
use object::read::elf::{Dyn, ElfFile64, FileHeader};
use object::{Object, ObjectSection, ObjectSymbol};

/// Symbol that the runtime calls to create a profiler.
const ENTRY: &str = "DllGetClassObject";
/// Symbol with the version of an agent (`crates/agent/src/lib.rs`).
const VERSION: &str = "CLRSCOPE_AGENT_VERSION";

/// Checks that `library` is an agent of this version for this processor, as Cargo names it. Returns
/// the C library that it is for, as a variant of the tool's `CLibrary`.
///
/// # Errors
/// One line that says what the file is instead.
pub(crate) fn check(library: &[u8], version: &str, processor: &str) -> Result<&'static str, String> {
    let elf = ElfFile64::<object::Endianness>::parse(library).map_err(|_| "it is no 64-bit ELF file".to_owned())?;
    let (header, endian) = (elf.elf_header(), elf.endian());
    if header.e_type(endian) != ET_DYN {
        return Err("it is no shared library".to_owned());
    }
    let machine = match processor {
        "x86_64" => EM_X86_64,
        "aarch64" => EM_AARCH64,
        other => return Err(format!("no agent is made for {other}")),
    };
    let found = header.e_machine(endian);
    if found != machine {
        return Err(format!("it is for ELF machine {}, and the tool for {processor} ({})", found.0, machine.0));
    }
    let exported = |name: &str| {
        elf.dynamic_symbols().find(|symbol| symbol.is_definition() && symbol.name_bytes() == Ok(name.as_bytes()))
    };
    let (Some(_), Some(symbol)) = (exported(ENTRY), exported(VERSION)) else {
        return Err(format!("it is no agent of clrscope: it lacks {ENTRY} or {VERSION}"));
    };
    let data = elf.sections().find_map(|section| section.data_range(symbol.address(), symbol.size()).ok().flatten());
    match String::from_utf8_lossy(data.unwrap_or_default()) {
        own if own == version => {
            c_library(&elf).ok_or_else(|| "it is linked with no C library that is known".to_owned())
        }
        other => Err(format!("it is the agent of clrscope {other:?}, and the tool is {version}")),
    }
}

/// The C library that a library is linked with, by the name that it needs.
fn c_library(elf: &ElfFile64<'_, object::Endianness>) -> Option<&'static str> {
    let (endian, data) = (elf.endian(), elf.data());
    let sections = elf.elf_section_table();
    let (entries, link) = sections.dynamic(endian, data).ok()??;
    let strings = sections.strings(endian, data, link).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED);
    needed.filter_map(|entry| entry.string(endian, strings).ok()).find_map(|name| match name {
        b"libc.so.6" => Some("Gnu"),
        b"libc.so" => Some("Musl"),
        name => name.starts_with(b"libc.musl-").then_some("Musl"),
    })
}
