//! All records of a recording: records of the logs in a directory, and records of the packed file's
//! dictionaries.
//!
//! A record that occurs in both is declared once, next to the part of the [model](crate::model)
//! that it fills. For an entry of a table, the log stores the index before the record. Records that
//! only describe a change are declared here. The [codec](crate::codec) encodes the fields as bytes.
//! Readers skip kinds that they do not know.

use crate::codec::{Field, record};
use crate::model::{
    AllocationSampling, CallsInfo, CoveragePlan, EntryAssembly, Function, HeapSnapshot, HookCost, Identity, Loss,
    LossReason, Module, NativeSymbol, NearName, ObjectType, OwnMemory, PairCost, Part, PartBoundary, Problem, Process,
    Remark, Run, SampleSteps, Sampler, Thread,
};
use crate::payload::{PayloadReader, PayloadWriter};

/// A record of `run.log` or `process.log`.
pub(crate) trait InLog: Field {
    /// Number of the record's kind.
    const LOG: u16;
}

/// A record of the packed file.
pub(crate) trait InFile: Field {
    /// Number of the record's kind.
    const FILE: u16;
}

macro_rules! kinds {
    ($($name:ty { $(log $log:literal)? $(file $file:literal)? })*) => {
        $(
            $(impl InLog for $name {
                const LOG: u16 = $log;
            })?
            $(impl InFile for $name {
                const FILE: u16 = $file;
            })?
        )*

        #[cfg(test)]
        const LOG_KINDS: &[u16] = &[$($($log,)?)*];
        #[cfg(test)]
        const FILE_KINDS: &[u16] = &[$($($file,)?)*];
    };
}

// Numbers are never used again for something else; 9 had another meaning before the first release.
kinds! {
    // Records of the launcher.
    RunStart { log 11 }
    RunEnd { log 12 }
    PeriodEnd { log 45 }
    // A process. A log has what is known at its start, and the rest is zero.
    Process { log 1 file 2 }
    Instruments { log 2 }
    CallsInfo { log 17 file 3 }
    HookCost { log 10 }
    SampleSteps { log 18 }
    PairCost { log 15 }
    PatternMatched { log 14 }
    MatchedPatterns { file 11 }
    NearName { log 20 }
    Sampler { log 22 file 12 }
    AllocationSampling { log 27 file 17 }
    HeapSnapshot { log 40 file 40 }
    OwnMemory { log 42 file 42 }
    Identity { log 43 file 43 }
    EntryAssembly { log 44 file 44 }
    PartBoundary { log 24 }
    Part { file 15 }
    // Tables.
    Indexed<Module> { log 3 }
    Module { file 7 }
    Indexed<Function> { log 4 }
    Function { file 6 }
    NativeSymbol { file 13 }
    CoveragePlan { file 18 }
    Indexed<ObjectType> { log 26 }
    ObjectType { file 16 }
    FunctionUnloaded { log 5 }
    FunctionInlined { log 21 }
    Thread { file 8 }
    ThreadName { log 6 }
    Carry { log 8 }
    Arena { file 5 }
    // Sentences and losses in reports.
    Remark { log 7 file 9 }
    LossDetail { log 16 }
    Loss { file 4 }
    Problem { file 10 }
    // The whole.
    Run { file 1 }
}

record! {
    /// The launcher starts the program.
    pub(crate) struct RunStart {
        /// The command as given.
        pub(crate) command: Vec<String>,
        pub(crate) mono_ns: u64,
        pub(crate) unix_ns: u64,
        /// The request as given.
        pub(crate) given: String,
        pub(crate) clrscope_version: String,
        /// A random identifier of the recording.
        pub(crate) id: String,
    }
}

record! {
    /// The root program has ended.
    pub(crate) struct RunEnd {
        pub(crate) mono_ns: u64,
        pub(crate) pid: u32,
        /// Whether a signal ended the program.
        pub(crate) by_signal: bool,
        /// The exit code or the signal.
        pub(crate) number: i32,
    }
}

record! {
    /// The launcher has written a period of the recording.
    pub(crate) struct PeriodEnd {
        /// Number of the period, from 1.
        pub(crate) number: u32,
        /// Monotonic time of its end.
        pub(crate) mono_ns: u64,
    }
}

record! {
    /// Instruments that record in a process.
    pub(crate) struct Instruments {
        /// The request as given.
        pub(crate) given: String,
        /// The instruments with every default filled in.
        pub(crate) filled: String,
    }
}

record! {
    /// A pattern of the request has matched something for the first time.
    pub(crate) struct PatternMatched {
        /// `include=PATTERN`, `exclude=PATTERN`, `probe=PATTERN` or `redact=PATTERN`.
        pub(crate) pattern: String,
    }
}

record! {
    /// All patterns of the request that have matched something.
    pub(crate) struct MatchedPatterns {
        pub(crate) patterns: Vec<String>,
        /// Functions whose names resemble those patterns that have not matched.
        pub(crate) near: Vec<NearName>,
    }
}

record! {
    /// The code of a function is gone.
    pub(crate) struct FunctionUnloaded {
        pub(crate) index: u32,
    }
}

record! {
    /// The compiler has inlined a function into another one for the first time.
    pub(crate) struct FunctionInlined {
        pub(crate) index: u32,
    }
}

record! {
    /// A thread's name and role.
    pub(crate) struct ThreadName {
        /// The thread's serial number.
        pub(crate) serial: u32,
        pub(crate) name: String,
        /// A `ThreadRole`, or `u32::MAX` if the role is not known.
        pub(crate) role: u32,
    }
}

record! {
    /// The count of an edge has passed 2^32.
    pub(crate) struct Carry {
        /// The edge's [number](crate::layout::block::edge_id).
        pub(crate) edge: u32,
    }
}

record! {
    /// An arena of events. Sections refer to an arena by its index among all arenas.
    pub(crate) struct Arena {
        pub(crate) instrument: String,
    }
}

record! {
    /// A detail of a loss beyond its reason.
    pub(crate) struct LossDetail {
        pub(crate) reason: LossReason,
        pub(crate) text: String,
    }
}

/// An entry of a table in a log, with its index.
pub(crate) struct Indexed<T> {
    pub(crate) index: u32,
    pub(crate) entry: T,
}

impl<T: Field> Field for Indexed<T> {
    fn put(&self, payload: &mut PayloadWriter) {
        self.index.put(payload);
        self.entry.put(payload);
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        Some(Self { index: Field::read(payload)?, entry: Field::read(payload)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_kinds_have_one_number() {
        for kinds in [LOG_KINDS, FILE_KINDS] {
            let mut sorted = kinds.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), kinds.len());
        }
    }
}
