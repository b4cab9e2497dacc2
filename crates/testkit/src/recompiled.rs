//! Methods that were recompiled.

use std::collections::BTreeSet;

use clrscope_recording::events::{Kind, OwnedRecord, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::Process;

/// Methods of the core library that the instrument `requests` has recompiled: four that switch a
/// thread's execution context, and a method into which one of these is inlined.
pub const SWITCHING_METHODS: [&str; 5] = [
    "System.Threading.ExecutionContext::ResetThreadPoolThread",
    "System.Threading.ExecutionContext::RestoreChangedContextToThread",
    "System.Threading.ExecutionContext::RunForThreadPoolUnsafe",
    "System.Threading.ExecutionContext::SetLocalValue",
    "System.Threading.ThreadPoolWorkQueue::Dispatch",
];

/// Names of an assembly's recompiled methods, as recorded by `events:jit`.
pub fn recompiled<'p>(process: &'p Process, assembly: &str) -> BTreeSet<&'p str> {
    let mut found = BTreeSet::new();
    for chunk in process.arenas(instrument::EVENTS).flat_map(|arena| &arena.chunks) {
        for record in OwnedRecord::all(&chunk.bytes.load()) {
            let record = record.record();
            if record.kind == Kind::REJIT_COMPILATION_STARTED {
                found.extend(record.entity(Tag::FUNCTION).map(|function| function.index as usize));
            }
        }
    }
    let is_of = |module: u32| process.modules.get(module as usize).is_some_and(|module| module.name == assembly);
    let functions = found.into_iter().filter_map(|index: usize| process.functions.get(index));
    functions.filter(|function| is_of(function.module)).map(|function| function.name.as_str()).collect()
}
