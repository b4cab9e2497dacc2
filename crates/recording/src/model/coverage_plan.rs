//! The plan of coverage of an assembly: what the counters of [`MethodHits`](super::MethodHits) are
//! of. The launcher makes it where the program ran, of the assembly's file and its symbols, so that
//! a recording means the same on another machine.

use crate::codec::record;

record! {
    /// Lines and branches of one assembly that were to be covered.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct CoveragePlan {
        /// Index into [`Process::modules`](super::Process::modules); of none where no process
        /// loaded the assembly.
        pub module: u32,
        /// Paths of the source files, as the compiler was given them.
        pub files: Vec<String>,
        /// Methods as they were written.
        pub sources: Vec<CoverageSource>,
        /// Methods as they were compiled, by token in ascending order.
        pub methods: Vec<PlannedMethod>,
        /// Name of an assembly that no process of the run loaded, so that nothing of it ran; empty
        /// where the module is one.
        pub assembly: String,
    }
}

impl CoveragePlan {
    /// Whether the process loaded the assembly.
    #[must_use]
    pub fn was_loaded(&self) -> bool {
        self.assembly.is_empty()
    }
}

record! {
    /// A method as it was written: with its lambdas, local functions and state machines.
    #[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub struct CoverageSource {
        /// Type that declares the method, as C# writes it.
        pub class: String,
        /// Name, as C# writes it.
        pub name: String,
        /// Types of its parameters, as C# writes them, in parentheses.
        pub parameters: String,
    }
}

record! {
    /// A method as it was compiled. Its counters are those of the points, then those of the
    /// branches.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct PlannedMethod {
        /// Metadata token.
        pub token: u32,
        /// Index into [`CoveragePlan::sources`].
        pub source: u32,
        /// Fingerprint of the plan: hits of another one mean something else.
        pub fingerprint: u64,
        /// Pieces of source.
        pub points: Vec<PlannedPoint>,
        /// Ways on from conditions.
        pub branches: Vec<PlannedBranch>,
    }
}

record! {
    /// A piece of source.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct PlannedPoint {
        /// Offset of its first instruction, whose runs are counted.
        pub il_offset: u32,
        /// Index into [`CoveragePlan::files`].
        pub file: u32,
        /// First line, from 1.
        pub start_line: u32,
        /// First column, from 1.
        pub start_column: u32,
        /// Last line.
        pub end_line: u32,
        /// Column behind the last one.
        pub end_column: u32,
    }
}

record! {
    /// A way on from a condition.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct PlannedBranch {
        /// Offset of the condition.
        pub il_offset: u32,
        /// Number of the way: 0 goes on, others are the targets from 1.
        pub path: u32,
        /// Offset of the instruction that is reached in the end.
        pub target_offset: u32,
        /// Index into [`CoveragePlan::files`].
        pub file: u32,
        /// Line of the condition.
        pub line: u32,
    }
}
