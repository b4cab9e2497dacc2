//! Names for the native code in samples. They are looked up on the recording machine, because other
//! machines have other libraries.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clrscope_recording::model::{Module, ModuleKind, NativeSymbol, Process, Recording};
use clrscope_symbols::{NativeNames, NativeRange, SymbolFolder, kernel_symbols};

/// A library on call stacks without a symbol file in the folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LibraryWithoutSymbols {
    /// File name of the library.
    pub name: String,
    /// Build id in hexadecimal digits; empty if unknown.
    pub build_id: String,
}

/// Adds to every process without native symbols the names of the native functions on its call
/// stacks, if known on this machine.
pub(crate) fn add_native_symbols(recording: &mut Recording, names: &mut NativeNames) {
    for process in recording.processes.iter_mut().filter(|process| process.native_symbols.is_empty()) {
        for (module, offsets) in native_places(process) {
            let Some(of) = process.modules.get(module as usize) else { continue };
            // By module and offset in ascending order, as in a recording.
            let ranges = ranges(of, &offsets, names);
            process.native_symbols.extend(ranges.into_iter().map(|range| symbol(module, range)));
        }
    }
}

/// Replaces names of native functions, and names ranges that have no name, from the symbol files in
/// a folder. Returns the libraries for which the folder has no symbol file, sorted by number of
/// places on call stacks, highest first.
pub(crate) fn use_symbol_folder(recording: &mut Recording, folder: &mut SymbolFolder) -> Vec<LibraryWithoutSymbols> {
    let mut without: BTreeMap<LibraryWithoutSymbols, usize> = BTreeMap::new();
    for process in &mut recording.processes {
        let mut symbols = Vec::new();
        for (module, offsets) in native_places(process) {
            let library = process.modules.get(module as usize).filter(|of| of.kind == ModuleKind::Native);
            let ranges = library.map_or_else(Vec::new, |of| folder.symbols(&of.name, &of.build_id, &offsets));
            if let Some(of) = library.filter(|_| ranges.is_empty()) {
                let library = LibraryWithoutSymbols { name: of.name.clone(), build_id: of.build_id.clone() };
                *without.entry(library).or_default() += offsets.len();
            }
            let new: Vec<NativeSymbol> = ranges.into_iter().map(|range| symbol(module, range)).collect();
            // Other places keep what was recorded.
            let others = offsets.iter().filter(|&&offset| NativeSymbol::find(&new, module, offset).is_none());
            let kept = others.filter_map(|&offset| NativeSymbol::find(&process.native_symbols, module, offset));
            symbols.extend(kept.cloned());
            symbols.extend(new);
        }
        symbols.sort_by_key(NativeSymbol::module_and_offset);
        symbols.dedup_by_key(|symbol| symbol.module_and_offset());
        process.native_symbols = symbols;
    }
    let mut without: Vec<_> = without.into_iter().collect();
    without.sort_by_key(|(_, places)| Reverse(*places));
    without.into_iter().map(|(library, _)| library).collect()
}

/// Places in native code on the call stacks of a process: offsets in ascending order, by module.
fn native_places(process: &Process) -> BTreeMap<u32, Vec<u32>> {
    let mut places: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (module, offset) in process.stacks.native_places() {
        places.entry(module).or_default().insert(offset);
    }
    places.into_iter().map(|(module, offsets)| (module, offsets.into_iter().collect())).collect()
}

fn symbol(module: u32, range: NativeRange) -> NativeSymbol {
    let NativeRange { offset, size, name } = range;
    NativeSymbol { module, offset, size, name }
}

fn ranges(module: &Module, offsets: &[u32], names: &mut NativeNames) -> Vec<NativeRange> {
    match module.kind {
        ModuleKind::Native => names.of_library(Path::new(&module.path), &module.build_id, offsets),
        ModuleKind::Kernel => kernel_symbols(offsets),
        ModuleKind::Managed | ModuleKind::Stub => Vec::new(),
    }
}
