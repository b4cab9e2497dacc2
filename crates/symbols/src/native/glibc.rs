//! Versions of the GNU C library: the version that an ELF file needs, and the version that a
//! library provides.
//!
//! Symbols of glibc carry the version that introduced them (`GLIBC_2.34`). The dynamic loader
//! refuses a library that needs a version which the installed glibc lacks (ELF symbol versioning:
//! LSB 5.0, Core, "Symbol Versioning").

use std::fmt;
use std::path::Path;

use clr_metadata::{MOST_BYTES, read_bounded};
use object::Endianness;
use object::elf::{FileHeader64, SHT_DYNSYM};
use object::read::elf::{FileHeader, SectionTable, Sym};

/// The prefix of version names. Some version names of the library, such as `GLIBC_PRIVATE`, have no
/// number.
const PREFIX: &str = "GLIBC_";

/// A version of the GNU C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GlibcVersion {
    /// The major version, such as 2 in `2.34`.
    pub major: u32,
    /// The minor version, such as 34 in `2.34`.
    pub minor: u32,
}

impl GlibcVersion {
    /// Returns the oldest version of glibc with which an ELF file can be loaded; `None` if the file
    /// needs no version, or is not an ELF file.
    #[must_use]
    pub fn needed_by(elf: &[u8]) -> Option<Self> {
        let (endian, sections) = sections_of(elf)?;
        let (mut libraries, link) = sections.gnu_verneed(endian, elf).ok()??;
        let strings = sections.strings(endian, elf, link).ok()?;
        let mut newest = None;
        while let Ok(Some((_, mut versions))) = libraries.next() {
            while let Ok(Some(version)) = versions.next() {
                newest = newest.max(version.name(endian, strings).ok().and_then(Self::parse));
            }
        }
        newest
    }

    /// Returns the version that the library file `libc.so.6` provides; `None` if the file is not
    /// glibc, as on systems with musl.
    #[must_use]
    pub fn provided_by(library: &Path) -> Option<Self> {
        let elf = &*read_bounded(library, MOST_BYTES)?;
        let (endian, sections) = sections_of(elf)?;
        let (mut definitions, link) = sections.gnu_verdef(endian, elf).ok()??;
        let strings = sections.strings(endian, elf, link).ok()?;
        let mut newest = None;
        while let Ok(Some((_, mut names))) = definitions.next() {
            // The first name is the version's own, the others are its predecessors.
            if let Ok(Some(name)) = names.next() {
                newest = newest.max(name.name(endian, strings).ok().and_then(Self::parse));
            }
        }
        // A version that added nothing defines none: 2.31 has definitions up to 2.30.
        newest.max(Self::in_banner(elf))
    }

    /// Returns the version from the banner that the library prints when it is run: `... stable
    /// release version 2.31.`
    fn in_banner(elf: &[u8]) -> Option<Self> {
        const BEFORE: &[u8] = b" release version ";
        let at = elf.windows(BEFORE.len()).position(|bytes| bytes == BEFORE)? + BEFORE.len();
        let text = std::str::from_utf8(elf.get(at..at + 16)?).ok()?;
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
        Some(Self { major: numbers.next()??, minor: numbers.next()?? })
    }

    fn parse(name: &[u8]) -> Option<Self> {
        let mut numbers = std::str::from_utf8(name).ok()?.strip_prefix(PREFIX)?.split('.');
        let mut number = || numbers.next()?.parse().ok();
        Some(Self { major: number()?, minor: number()? })
    }
}

impl fmt::Display for GlibcVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A symbol of the GNU C library with its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GlibcSymbol {
    /// Name of the function or variable.
    pub name: String,
    /// The version that introduced or last changed the symbol.
    pub version: GlibcVersion,
    /// Whether a file linked with a library that lacks the symbol can be loaded nevertheless.
    pub is_weak: bool,
}

impl GlibcSymbol {
    /// Returns the symbols that an ELF file imports from glibc, sorted by name; empty if it is not
    /// an ELF file.
    #[must_use]
    pub fn imported_by(elf: &[u8]) -> Vec<Self> {
        Self::of(elf, true).unwrap_or_default()
    }

    /// Returns the symbols that a library file defines, sorted by name and version; empty if it is
    /// not such a file.
    #[must_use]
    pub fn defined_by(elf: &[u8]) -> Vec<Self> {
        Self::of(elf, false).unwrap_or_default()
    }

    fn of(elf: &[u8], imported: bool) -> Option<Vec<Self>> {
        let (endian, sections) = sections_of(elf)?;
        let versions = sections.versions(endian, elf).ok()??;
        let symbols = sections.symbols(endian, elf, SHT_DYNSYM).ok()?;
        let read = |(index, symbol): (_, &<FileHeader64<Endianness> as FileHeader>::Sym)| {
            let version = versions.version(versions.version_index(endian, index).index()).ok()??;
            let name = symbols.symbol_name(endian, symbol).ok()?;
            let name = String::from_utf8_lossy(name).into_owned();
            (symbol.is_undefined(endian) == imported).then_some(())?;
            Some(Self { name, version: GlibcVersion::parse(version.name())?, is_weak: symbol.is_weak() })
        };
        let mut found: Vec<Self> = symbols.enumerate().filter_map(read).collect();
        found.sort();
        Some(found)
    }
}

impl fmt::Display for GlibcSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name, self.version)
    }
}

fn sections_of(elf: &[u8]) -> Option<(Endianness, SectionTable<'_, FileHeader64<Endianness>>)> {
    let header = FileHeader64::<Endianness>::parse(elf).ok()?;
    let endian = header.endian().ok()?;
    Some((endian, header.sections(endian, elf).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Debian 11 has 2.31 but was reported as 2.30, because its library defines no newer version.
    #[test]
    fn a_version_that_defines_nothing_is_read_from_the_banner() {
        let version = |text: &[u8]| GlibcVersion::in_banner(text);
        let debian = b"GNU C Library (Debian GLIBC 2.31-13+deb11u11) stable release version 2.31.\nCopyright (C) 2020";
        assert_eq!(version(debian), Some(GlibcVersion { major: 2, minor: 31 }));
        let newer = b"GNU C Library development release version 2.40.9000.\n and more";
        assert_eq!(version(newer), Some(GlibcVersion { major: 2, minor: 40 }));
        assert_eq!(version(b"no release version of anything at all"), None);
        assert_eq!(version(b"cut short release version 2."), None);
    }

    #[test]
    fn names_of_versions_are_read_and_others_are_passed_over() {
        let version = |major, minor| Some(GlibcVersion { major, minor });
        assert_eq!(GlibcVersion::parse(b"GLIBC_2.34"), version(2, 34));
        assert_eq!(GlibcVersion::parse(b"GLIBC_2.2.5"), version(2, 2));
        for other in ["GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR", "GCC_3.0", "GLIBC_2", "GLIBC_", ""] {
            assert_eq!(GlibcVersion::parse(other.as_bytes()), None, "{other}");
        }
        assert!(version(2, 9) < version(2, 31) && version(2, 31) < version(3, 0));
    }

    /// The system's own tool says which library this is.
    #[test]
    fn the_systems_library_provides_what_the_system_says_and_what_this_test_needs() {
        let own = std::fs::read("/proc/self/exe").expect("the test");
        let needed = GlibcVersion::needed_by(&own).expect("the test is bound to glibc");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("its maps");
        let library =
            maps.lines().filter_map(|line| Some(&line[line.find('/')?..])).find(|path| path.ends_with("/libc.so.6"));
        let provided = GlibcVersion::provided_by(Path::new(library.expect("it has glibc"))).expect("its versions");
        assert!(needed <= provided, "{needed} of {provided}");
        let said = std::process::Command::new("getconf").arg("GNU_LIBC_VERSION").output().expect("getconf");
        assert_eq!(String::from_utf8_lossy(&said.stdout), format!("glibc {provided}\n"));
    }

    /// The oldest usable version of a file is the newest version of its symbols, read from two
    /// tables of the file.
    #[test]
    fn symbols_carry_the_versions_that_the_file_needs() {
        let own = std::fs::read("/proc/self/exe").expect("the test");
        let imported = GlibcSymbol::imported_by(&own);
        let newest = imported.iter().map(|symbol| symbol.version).max();
        assert_eq!(newest, GlibcVersion::needed_by(&own));
        let start = imported.iter().find(|symbol| symbol.name == "__libc_start_main").expect("a program starts");
        assert!(start.to_string().starts_with("__libc_start_main of 2."), "{start}");
        assert_eq!(GlibcSymbol::defined_by(&own), []);
        assert_eq!(GlibcSymbol::imported_by(b"\x7fELF and no more"), []);
    }

    #[test]
    fn what_is_no_library_has_no_version() {
        assert_eq!(GlibcVersion::needed_by(b""), None);
        assert_eq!(GlibcVersion::needed_by(b"\x7fELF and no more"), None);
        assert_eq!(GlibcVersion::provided_by(Path::new("/proc/self/exe")), None);
        assert_eq!(GlibcVersion::provided_by(Path::new("/nowhere/libc.so.6")), None);
        let mut damaged = std::fs::read("/proc/self/exe").expect("the test");
        for at in (0..damaged.len()).step_by(97) {
            damaged[at] ^= 0x55;
        }
        let _ = GlibcVersion::needed_by(&damaged);
        let _ = GlibcSymbol::imported_by(&damaged);
    }
}
