//! Writable mappings of this process: stacks, and the runtime's own tables.

use clrscope_agent_base::os::process::{Mapping, mappings};

/// Start and end of each mapping, in ascending order.
#[derive(Debug, Default)]
pub(super) struct Mappings(Vec<(usize, usize)>);

impl Mappings {
    pub(super) fn read() -> Self {
        Self::parse(&mappings())
    }

    fn parse(maps: &str) -> Self {
        let writable = maps.lines().filter_map(Mapping::parse).filter(|line| line.rights.starts_with("rw"));
        Self(writable.map(|line| (line.addresses.start, line.addresses.end)).collect())
    }

    /// Start and end of the mapping that an address lies in.
    pub(super) fn around(&self, address: usize) -> Option<(usize, usize)> {
        let at = self.0.partition_point(|(start, _)| *start <= address).checked_sub(1)?;
        Some(self.0[at]).filter(|(_, end)| address < *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_written_to_is_found() {
        let maps =
            Mappings::parse("1000-2000 r--p 0 00:00 0 /lib\n3000-5000 rw-p 0 00:00 0\n5000-6000 ---p 0 00:00 0\n");
        let end = |at| maps.around(at).map(|(_, end)| end);
        assert_eq!([0x1000, 0x3000, 0x4fff, 0x5000].map(end), [None, Some(0x5000), Some(0x5000), None]);
    }
}
