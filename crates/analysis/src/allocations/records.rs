//! The allocation records of a process.

use clrscope_contract::request::Glob;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Allocation, AllocationKind, ObjectType, Process};

/// Calls `take` with every allocation record of a process and the index of its thread, in the order
/// of the recording.
pub(crate) fn each_record(process: &Process, kind: AllocationKind, mut take: impl FnMut(u32, &Allocation)) {
    for chunk in process.arenas(instrument::ALLOC).flat_map(|arena| &arena.chunks) {
        let bytes = chunk.bytes.load();
        Allocation::all(&bytes).filter(|record| record.kind == kind).for_each(|record| take(chunk.thread, &record));
    }
}

/// Name and assembly of a type that the recording does not name.
const UNKNOWN_TYPE: (&str, &str) = ("(unknown)", "");

/// Time of a record, nanoseconds since the start of the run.
pub(crate) fn time_ns(process: &Process, record: &Allocation) -> u64 {
    process.started_ns.saturating_add(record.time_ns)
}

/// The type with this number; a type without a name if the recording has no such type.
pub(crate) fn type_of(process: &Process, number: u32) -> &ObjectType {
    static UNKNOWN: ObjectType = ObjectType { name: String::new(), module: 0 };
    process.types.get(number as usize).unwrap_or(&UNKNOWN)
}

/// Name of the type with this number, and name of the assembly that declares the type.
pub(crate) fn type_and_module(process: &Process, number: u32) -> (&str, &str) {
    match type_of(process, number) {
        found if found.name.is_empty() => UNKNOWN_TYPE,
        found => (&found.name, process.modules.get(found.module as usize).map_or("", |module| &module.name)),
    }
}

/// Whether the name of the type with this number matches one of the patterns. Without patterns,
/// every type matches.
pub(crate) fn is_wanted(patterns: &[Glob], process: &Process, number: u32) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(&type_of(process, number).name))
}
