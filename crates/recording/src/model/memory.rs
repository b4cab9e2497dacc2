//! Places of a process's memory, distinguished by `memory`.

/// Place of memory in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryPlace {
    /// Address ranges of the GC: objects, gaps between them, and space reserved for new objects.
    ManagedHeap,
    /// Objects that are never collected.
    FrozenObjects,
    /// Compiled code and the runtime's tables of types, which share mappings.
    Code,
    /// Native libraries and the program's executable, with their variables.
    Libraries,
    /// Managed assemblies.
    Assemblies,
    /// Stacks of threads.
    Stacks,
    /// The C library's heap: `malloc` of up to some 100 kB.
    NativeHeap,
    /// Other mapped files, and shared memory.
    Files,
    /// The agent's library and the recording.
    Agent,
    /// Other mappings without a file: large native allocations, the GC's tables.
    Other,
}

/// The places in the order of their numbers, with their names in JSON and in words.
const NAMES: &[(MemoryPlace, &str, &str)] = &[
    (MemoryPlace::ManagedHeap, "managed-heap", "managed heap"),
    (MemoryPlace::FrozenObjects, "frozen-objects", "frozen objects"),
    (MemoryPlace::Code, "code", "code, tables of types"),
    (MemoryPlace::Libraries, "libraries", "native libraries"),
    (MemoryPlace::Assemblies, "assemblies", "assemblies"),
    (MemoryPlace::Stacks, "stacks", "stacks of threads"),
    (MemoryPlace::NativeHeap, "native-heap", "native heap (malloc)"),
    (MemoryPlace::Files, "files", "other mapped files"),
    (MemoryPlace::Agent, "agent", "clrscope: agent, recording"),
    (MemoryPlace::Other, "other", "other native memory"),
];

impl MemoryPlace {
    /// All kinds of memory, in the order of reports.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(place, ..)| *place)
    }

    /// The number in a recording.
    #[must_use]
    pub fn number(self) -> u64 {
        NAMES.iter().position(|(place, ..)| *place == self).map_or(0, |at| at as u64 + 1)
    }

    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        let at = usize::try_from(number.checked_sub(1)?).ok()?;
        NAMES.get(at).map(|(place, ..)| *place)
    }

    /// The name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(place, ..)| *place == self).map_or("", |(_, name, _)| name)
    }

    /// The name for display.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        NAMES.iter().find(|(place, ..)| *place == self).map_or("", |(.., words)| words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_a_number_and_a_name_of_its_own() {
        for place in MemoryPlace::all() {
            assert_eq!(MemoryPlace::from_number(place.number()), Some(place));
            assert_eq!(NAMES.iter().filter(|(_, name, _)| *name == place.name()).count(), 1);
        }
        assert_eq!([0, NAMES.len() as u64 + 1, u64::MAX].map(MemoryPlace::from_number), [None; 3]);
    }
}
