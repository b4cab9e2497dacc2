//! From the addresses of a stack to functions and offsets in their IL, each looked up once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::{CodeRange, FunctionId, IlRange, ProfilerInfo, ReJitId, StackFrame};

use crate::services::functions::Functions;

/// A frame as it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CodeLocation {
    /// Index of the function in the recording.
    pub(crate) function: u32,
    pub(crate) il_offset: Option<u32>,
}

/// The locations seen so far.
pub(super) struct CodeLocations {
    known: Mutex<LocationTable>,
    /// Addresses that are remembered.
    most: usize,
}

#[derive(Default)]
struct LocationTable {
    locations: HashMap<usize, CodeLocation>,
    /// Counts unloads: what was looked up before one is not stored after it.
    unloads: u64,
}

impl CodeLocations {
    /// Locations of which so many are remembered.
    pub(super) fn new(most: usize) -> Self {
        Self { known: Mutex::default(), most }
    }

    /// Bytes of the table.
    pub(super) fn own_bytes(&self) -> usize {
        self.known().locations.capacity() * size_of::<(usize, CodeLocation)>()
    }

    fn known(&self) -> MutexGuard<'_, LocationTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The location of a frame. Asks the runtime for one that is new.
    pub(super) fn of(&self, info: &ProfilerInfo, functions: &Functions, frame: StackFrame) -> CodeLocation {
        let (known, unloads) = {
            let known = self.known();
            (known.locations.get(&frame.address).copied(), known.unloads)
        };
        if let Some(location) = known {
            return location;
        }
        let location = CodeLocation {
            function: functions.noted(frame.function).index,
            il_offset: il_offset(info, frame.function, frame.address),
        };
        let mut known = self.known();
        if known.unloads == unloads {
            if known.locations.len() >= self.most {
                known.locations.clear();
            }
            known.locations.insert(frame.address, location);
        }
        location
    }

    /// Code is gone; other code may come to lie at its addresses.
    pub(super) fn code_unloaded(&self) {
        let mut known = self.known();
        known.locations.clear();
        known.unloads += 1;
    }
}

/// The offset of the statement that is under way. An address on the stack is where the call returns to, so
/// the byte before it belongs to the call.
fn il_offset(info: &ProfilerInfo, function: FunctionId, address: usize) -> Option<u32> {
    let start = code_start(info, function, address)?;
    let at = u32::try_from((address - 1).checked_sub(start)?).ok()?;
    let map = info.il_map_at(start).ok()?;
    IlRange::statement_at(&map, at)
}

/// Start of the code version that goes on at `address`.
pub(crate) fn code_start(info: &ProfilerInfo, function: FunctionId, address: usize) -> Option<usize> {
    let address = address.checked_sub(1)?;
    let (_, rejit) = info.function_at(address).ok()?;
    code_around(info, function, rejit, address).map(|(start, _)| start)
}

/// Start and pieces of the code version that an address lies in.
pub(crate) fn code_around(
    info: &ProfilerInfo,
    function: FunctionId,
    rejit: ReJitId,
    address: usize,
) -> Option<(usize, Vec<CodeRange>)> {
    let starts = info.code_starts(function, rejit).ok()?;
    let pieces = |start: usize| {
        let ranges = info.code_info_at(start).ok()?;
        ranges.iter().any(|range| range.contains(address)).then_some((start, ranges))
    };
    starts.into_iter().find_map(pieces)
}
