//! The memory in which the runtime places the code that it compiles.

use std::ops::Range;

use clr_profiler::ProfilerInfo;
use clrscope_agent_base::os::process;

use super::native::memory_without_files;
use crate::unwind::images::Images;

/// The memory in which the runtime places compiled code. About an address in there it may be asked
/// even if nothing has run at it; about images it may not
/// ([`code_owner`](clrscope_agent_base::code_owner)).
pub(crate) struct CodeHeaps {
    memory: Vec<Range<usize>>,
    images: Images,
}

impl CodeHeaps {
    /// The heaps now. Reads the system's list of mappings.
    pub(crate) fn read() -> Self {
        Self { memory: memory_without_files(&process::mappings()), images: Images::default() }
    }

    /// Whether an address lies in a heap.
    pub(crate) fn holds(&mut self, info: &ProfilerInfo, address: usize) -> bool {
        self.memory.iter().any(|range| range.contains(&address)) && self.images.around(info, 0, address).is_none()
    }
}
