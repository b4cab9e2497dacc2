//! Nameless code: native functions that are known only by library and offset, such as
//! `libcoreclr.so+0x1234`. A chain of such functions in one library is shown as one frame,
//! `[libcoreclr.so]`, because they can't be distinguished.

use std::sync::Arc;

use clrscope_recording::model::Process;
use rustc_hash::FxHashMap;

use crate::function::FunctionRef;

/// The nameless functions of a process.
pub(crate) struct Nameless {
    /// The function that represents all nameless code of its library, by function index; 0 for
    /// functions that have names.
    libraries: Vec<u32>,
}

impl Nameless {
    /// Returns the nameless code of a process; `None` if there is none.
    pub(crate) fn for_process(process: &Process) -> Option<Arc<Self>> {
        let found = process.derived.get("nameless code", || Self::find(process));
        (!found.libraries.is_empty()).then_some(found)
    }

    fn find(process: &Process) -> Self {
        let functions = || (0..).zip(&process.functions).skip(1);
        let named = |function| FunctionRef::new(process, Some(function));
        let standing = functions().filter(|(_, function)| named(function).is_library());
        let by_module: FxHashMap<u32, u32> = standing.map(|(index, function)| (function.module, index)).collect();
        if by_module.is_empty() {
            return Self { libraries: Vec::new() };
        }
        let mut libraries = vec![0; process.functions.len()];
        for (index, function) in functions().filter(|(_, function)| named(function).is_nameless()) {
            libraries[index as usize] = by_module.get(&function.module).copied().unwrap_or(0);
        }
        Self { libraries }
    }

    /// The function that represents the library of a nameless function; `None` for functions with
    /// names.
    #[inline]
    pub(crate) fn library_of(&self, function: u32) -> Option<u32> {
        self.libraries.get(function as usize).copied().filter(|library| *library != 0)
    }
}
