//! The coverage plan of an assembly: the meaning of the counters of
//! [`MethodHits`](super::MethodHits). The launcher makes the plan on the recording machine from the
//! assembly's file and its symbols, so that a recording means the same on another machine.

use crate::codec::record;

record! {
    /// The lines and branches of one assembly that the recording was to cover.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct CoveragePlan {
        /// Index into [`Process::modules`](super::Process::modules); invalid if no process loaded
        /// the assembly.
        pub module: u32,
        /// Paths of the source files, as passed to the compiler.
        pub files: Vec<String>,
        /// Methods of the source.
        pub sources: Vec<CoverageSource>,
        /// Compiled methods, sorted by token.
        pub methods: Vec<PlannedMethod>,
        /// Name of an assembly that no process of the run loaded, so that none of its code ran;
        /// empty if `module` is valid.
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
    /// A source method, including its lambdas, local functions and state machines.
    #[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
    pub struct CoverageSource {
        /// Type that declares the method, in C# form.
        pub class: String,
        /// Name of the method, in C# form.
        pub name: String,
        /// Types of the method's parameters in C# form, in parentheses.
        pub parameters: String,
    }
}

record! {
    /// A compiled method. It has a counter for each point, then one for each branch.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct PlannedMethod {
        /// Metadata token.
        pub token: u32,
        /// Index into [`CoveragePlan::sources`].
        pub source: u32,
        /// Fingerprint of the plan; hits recorded with another fingerprint have a different
        /// meaning.
        pub fingerprint: u64,
        /// The parts of the source, such as statements, whose executions are counted.
        pub points: Vec<PlannedPoint>,
        /// Edges out of conditions.
        pub branches: Vec<PlannedBranch>,
    }
}

record! {
    /// A part of the source, such as a statement, whose executions are counted.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct PlannedPoint {
        /// IL offset of the part's first instruction, whose executions are counted.
        pub il_offset: u32,
        /// Index into [`CoveragePlan::files`].
        pub file: u32,
        /// First line of the part, from 1.
        pub start_line: u32,
        /// Column of the part's first character in the first line, from 1.
        pub start_column: u32,
        /// Last line of the part.
        pub end_line: u32,
        /// Column after the part's last character in the last line.
        pub end_column: u32,
    }
}

record! {
    /// An edge out of a condition.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct PlannedBranch {
        /// IL offset of the condition.
        pub il_offset: u32,
        /// Number of the edge: 0 if the condition falls through, from 1 for its jump targets.
        pub path: u32,
        /// IL offset of the instruction that the edge finally reaches.
        pub target_offset: u32,
        /// Index into [`CoveragePlan::files`].
        pub file: u32,
        /// Line of the condition.
        pub line: u32,
    }
}
