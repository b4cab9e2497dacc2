//! Symbols of ELF files.

use std::path::Path;

use clr_metadata::{MOST_BYTES, read_bounded};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use super::demangled::demangled;
use super::unwind_table::function_starts;
use super::{NativeRange, Ranges, found};

/// Name, in the C library's sources, of the function to which signal handlers return. The shipped
/// library has no symbol for it.
const SIGNAL_RETURN: &str = "__restore_rt";

/// The functions of the library at `path` that contain the `offsets`, in ascending order. For an
/// offset without a symbol, the range comes from the library's unwind table and has no name.
/// `build_id` is the build id of the loaded library in hexadecimal digits, or empty if unknown. A
/// file that has another build id or can't be read gives no symbols.
#[must_use]
pub fn library_symbols(path: &Path, build_id: &str, offsets: &[u32]) -> Vec<NativeRange> {
    let may_be = |own: Option<String>| build_id.is_empty() || own.is_none_or(|own| own.eq_ignore_ascii_case(build_id));
    symbols_of(path, may_be, offsets).unwrap_or_default()
}

/// As [`library_symbols`], of a file that has this build id; `None` for any other file.
pub(super) fn symbols_of_build(path: &Path, build_id: &str, offsets: &[u32]) -> Option<Vec<NativeRange>> {
    symbols_of(path, |own| own.is_some_and(|own| own.eq_ignore_ascii_case(build_id)), offsets)
}

/// The functions of the file at `path`, if `is_right` accepts its build id.
fn symbols_of(path: &Path, is_right: impl FnOnce(Option<String>) -> bool, offsets: &[u32]) -> Option<Vec<NativeRange>> {
    let bytes = read_bounded(path, MOST_BYTES)?;
    let file: ElfFile64<'_> = ElfFile64::parse(&*bytes).ok()?;
    if !is_right(build_id(&file)) {
        return None;
    }
    let base = file.segments().map(|segment| segment.address()).min()?;
    let named = file.symbols().chain(file.dynamic_symbols()).filter_map(|symbol| {
        let is_code = symbol.kind() == SymbolKind::Text && symbol.is_definition();
        let name = symbol.name().ok().filter(|name| is_code && !name.is_empty())?;
        // Without the version that dynamic symbols of some linkers carry.
        let name = name.split('@').next().unwrap_or(name);
        Some((symbol.address().checked_sub(base)?, symbol.size(), name.to_owned()))
    });
    let named = Ranges::new(named.collect());
    let table = file.section_by_name(".eh_frame_hdr");
    let starts = table.and_then(|table| Some(function_starts(table.data().ok()?, table.address())));
    let starts = starts.unwrap_or_default().into_iter().filter_map(|start| start.checked_sub(base));
    let unnamed = Ranges::new(starts.map(|start| (start, 0, String::new())).collect());
    // A symbol without a size may be far from the place: the unwind table knows functions in
    // between.
    Some(found(offsets, |offset| match (named.find(offset), unnamed.find(offset)) {
        (Some(named), Some(unnamed)) if unnamed.offset > named.offset => Some(unnamed),
        (Some(named), Some(unnamed)) => Some(named.cut_at(unnamed.offset.saturating_add(unnamed.size))),
        (named, unnamed) => named.or(unnamed),
    }))
    .map(|found| {
        let name = |range: &NativeRange| match range.name.is_empty() {
            true if is_signal_return(&file, base + u64::from(range.offset)) => SIGNAL_RETURN.to_owned(),
            _ => demangled(range.name.clone()),
        };
        found.into_iter().map(|range| NativeRange { name: name(&range), ..range }).collect()
    })
}

/// The build id of a file in hexadecimal digits; `None` if the file has none.
pub(super) fn build_id(file: &ElfFile64<'_>) -> Option<String> {
    file.build_id().ok().flatten().map(hexadecimal)
}

/// Whether the unwind table's range at an address is the function to which signal handlers return.
/// Its range begins one byte early, because unwinders look up the byte before a return address, and
/// no call instruction precedes this function.
fn is_signal_return(file: &ElfFile64<'_>, address: u64) -> bool {
    /// `mov rax, 15; syscall` (rt_sigreturn), by which debuggers recognise the function.
    const CODE: [u8; 9] = [0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0, 0x0F, 0x05];
    let code = |at: u64| file.sections().find_map(|section| section.data_range(at, CODE.len() as u64).ok().flatten());
    [address, address + 1].into_iter().any(|at| code(at) == Some(&CODE))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of the test's own file, which has symbols.
    #[inline(never)]
    fn known_function() -> u32 {
        std::hint::black_box(7)
    }

    /// Path of the test's own file, and an address as an offset from its load address.
    fn own_file(address: usize) -> (std::path::PathBuf, u32) {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let path = std::env::current_exe().expect("a path");
        let own = maps.lines().filter(|line| line.ends_with(path.to_str().expect("a path")));
        let first = own.filter_map(|line| usize::from_str_radix(line.split('-').next()?, 16).ok()).min();
        (path, (address - first.expect("a mapping")) as u32)
    }

    #[test]
    fn a_function_is_found_by_any_place_in_it() {
        let (path, offset) = own_file(known_function as *const () as usize);
        assert_eq!(known_function(), 7);
        let ranges = library_symbols(&path, "", &[offset, offset + 1]);
        assert_eq!(ranges.len(), 1, "{ranges:?}");
        assert_eq!(ranges[0].offset, offset);
        assert!(ranges[0].name.contains("known_function") && ranges[0].size > 1, "{ranges:?}");
        let bytes = std::fs::read(&path).expect("the file");
        let own: ElfFile64<'_> = ElfFile64::parse(&*bytes).expect("a file");
        if let Some(id) = own.build_id().expect("notes").map(hexadecimal) {
            assert_eq!(library_symbols(&path, &id, &[offset]).len(), 1);
            assert_eq!(library_symbols(&path, &id.replace(['0', '1'], "2"), &[offset]), [], "another library");
        }
    }

    #[test]
    fn the_unwind_table_tells_where_functions_without_a_symbol_begin() {
        let (path, offset) = own_file(known_function as *const () as usize);
        let bytes = std::fs::read(&path).expect("the file");
        let file: ElfFile64<'_> = ElfFile64::parse(&*bytes).expect("a file");
        let table = file.section_by_name(".eh_frame_hdr").expect("a table");
        let starts = function_starts(table.data().expect("bytes"), table.address());
        let base = file.segments().map(|segment| segment.address()).min().expect("a segment");
        assert!(starts.contains(&(u64::from(offset) + base)), "{offset:#x} of {} functions", starts.len());
    }

    /// Stacks used to show `libc.so.6+0x3c04f` below methods that a signal had interrupted.
    #[test]
    fn what_handlers_of_signals_return_to_has_a_name() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let libraries = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        let Some(path) = libraries.clone().find(|path| path.contains("/libc.so")) else { return };
        let bytes = std::fs::read(path).expect("the file");
        let file: ElfFile64<'_> = ElfFile64::parse(&*bytes).expect("a file");
        let text = file.section_by_name(".text").expect("code");
        let code = [0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0, 0x0F, 0x05];
        let at = text.data().expect("bytes").windows(code.len()).position(|window| window == code).expect("that code");
        let base = file.segments().map(|segment| segment.address()).min().expect("a segment");
        let offset = (text.address() - base) as u32 + at as u32;
        let ranges = library_symbols(Path::new(path), "", &[offset - 1, offset, offset + 7]);
        assert!(ranges.iter().any(|range| range.name == SIGNAL_RETURN && range.size >= 9), "{ranges:?}");
    }

    #[test]
    fn damaged_files_have_no_symbols() {
        let (path, offset) = own_file(known_function as *const () as usize);
        let bytes = std::fs::read(&path).expect("the file");
        let folder = tempfile::tempdir().expect("a folder");
        let cut = folder.path().join("cut.so");
        for length in [0, 3, 64, 4_000, bytes.len() / 2] {
            std::fs::write(&cut, &bytes[..length]).expect("written");
            // The answer doesn't matter: the call returns.
            let _ = library_symbols(&cut, "", &[offset]);
        }
        assert_eq!(library_symbols(Path::new("/nonexistent/libx.so"), "", &[1]), []);
    }
}
