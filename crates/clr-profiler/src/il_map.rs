//! Maps from a method's original IL to the changed one.

use clr_profiler_sys::structs::COR_IL_MAP;

use crate::{Error, HResult, Result};

/// An offset in a method's original IL and the matching offset in the changed IL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by profilers, field by field; the runtime takes no more")]
pub struct IlMove {
    /// Offset in the original IL.
    pub old: u32,
    /// Offset in the changed IL.
    pub new: u32,
    /// Whether the new offset is the same instruction, not just a near one.
    pub is_exact: bool,
}

/// Number and entries of a map. The entries are in memory of the C library; the caller takes
/// ownership of it.
pub(crate) fn il_map_for_runtime(method: &'static str, map: &[IlMove]) -> Result<(u32, *mut COR_IL_MAP)> {
    let entry = |one: &IlMove| COR_IL_MAP { old_offset: one.old, new_offset: one.new, accurate: one.is_exact.into() };
    let entries: Vec<_> = map.iter().map(entry).collect();
    let count = u32::try_from(entries.len()).map_err(|_| Error::new(HResult::INVALID_ARGUMENT, method))?;
    // SAFETY: no pointers.
    let memory = unsafe { libc::malloc(size_of_val(entries.as_slice()).max(1)) }.cast::<COR_IL_MAP>();
    if memory.is_null() {
        return Err(Error::new(HResult::OUT_OF_MEMORY, method));
    }
    // SAFETY: so much memory was just allocated.
    unsafe { std::ptr::copy_nonoverlapping(entries.as_ptr(), memory, entries.len()) };
    Ok((count, memory))
}
