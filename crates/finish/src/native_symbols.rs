//! Names for the native code in samples. They are looked up on the recording machine, because other
//! machines have other libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clrscope_recording::model::{Module, ModuleKind, NativeSymbol, Recording};
use clrscope_symbols::{NativeRange, kernel_symbols, library_symbols};

/// Adds to every process without native symbols the names of the native functions on its call
/// stacks, as far as this machine knows them.
pub(crate) fn add_native_symbols(recording: &mut Recording) {
    for process in recording.processes.iter_mut().filter(|process| process.native_symbols.is_empty()) {
        let mut places: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (module, offset) in process.stacks.native_places() {
            places.entry(module).or_default().insert(offset);
        }
        for (module, offsets) in places {
            let Some(of) = process.modules.get(module as usize) else { continue };
            let offsets: Vec<u32> = offsets.into_iter().collect();
            // By module and offset in ascending order, as in a recording.
            process.native_symbols.extend(ranges(of, &offsets).into_iter().map(|range| {
                let NativeRange { offset, size, name } = range;
                NativeSymbol { module, offset, size, name }
            }));
        }
    }
}

fn ranges(module: &Module, offsets: &[u32]) -> Vec<NativeRange> {
    match module.kind {
        ModuleKind::Native => library_symbols(Path::new(&module.path), &module.build_id, offsets),
        ModuleKind::Kernel => kernel_symbols(offsets),
        ModuleKind::Managed | ModuleKind::Stub => Vec::new(),
    }
}
