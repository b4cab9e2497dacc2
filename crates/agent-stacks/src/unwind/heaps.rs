//! The memory in which the runtime places the code that it compiles.

use std::ops::Range;

use clr_profiler::ProfilerInfo;
use clrscope_agent_base::os::process::{Mapping, mappings};

use super::images::Images;

/// The memory in which the runtime places compiled code. The runtime may be queried about any
/// address there, even if the code at it never ran. In images this is not allowed
/// ([`code_owner`](clrscope_agent_base::code_owner)).
pub(crate) struct CodeHeaps {
    memory: Vec<Range<usize>>,
    images: Images,
}

impl CodeHeaps {
    /// Finds the heaps as they are now. Reads the system's list of mappings.
    pub(crate) fn read() -> Self {
        Self { memory: memory_without_files(&mappings()), images: Images::default() }
    }

    /// Whether an address lies in a heap.
    pub(crate) fn holds(&mut self, info: &ProfilerInfo, address: usize) -> bool {
        self.memory.iter().any(|range| range.contains(&address)) && self.images.around(info, 0, address).is_none()
    }
}

/// The executable memory in a list of mappings that belongs to no file: compiled code and stubs,
/// and images that the runtime has laid out itself.
fn memory_without_files(list: &str) -> Vec<Range<usize>> {
    let lines = list.lines().filter_map(Mapping::parse);
    let is_of_no_file = |line: &Mapping<'_>| line.can_run() && !line.is_file() && !line.path.starts_with('[');
    lines.filter(is_of_no_file).map(|line| line.addresses).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls in dynamic methods that were never made lead into images, where the runtime crashed
    /// when it was asked.
    #[test]
    fn images_and_pages_of_the_system_are_no_memory_for_compiled_code() {
        let list = "1000-2000 r-xs 00000000 00:01 7 /memfd:doublemapper (deleted)\n2000-3000 rw-p 00000000 00:00 0\n\
                    3000-4000 r-xp 00000000 00:00 0\n4000-5000 r-xp 00000000 fd:01 7 /a/b.dll\n\
                    5000-6000 r-xp 00000000 00:00 0 [vdso]\n";
        assert_eq!(memory_without_files(list), [0x1000..0x2000, 0x3000..0x4000]);
        let heaps = CodeHeaps::read();
        let own = images_and_pages_of_the_system_are_no_memory_for_compiled_code as *const () as usize;
        assert!(!heaps.memory.iter().any(|range| range.contains(&own)), "{own:#x}");
    }
}
