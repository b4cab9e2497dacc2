//! Samples of threads: the records of `cpu` and `wall`, and how they were taken.

use crate::codec::{numbered, record};
use crate::layout::{sample, u32_at, u64_at};

/// One record of `cpu` or `wall`; see [`layout::sample`](crate::layout::sample) for its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// Nanoseconds from the start of the process's recording to the sample; if the count is above
    /// 1, to the first sample.
    pub time_ns: u64,
    /// CPU time (`cpu`) or wall time (`wall`) in nanoseconds, for all samples of the record
    /// together.
    pub weight_ns: u64,
    /// Serial number of the thread ([`Thread::id`](super::Thread::id)), 0 if unknown.
    pub thread: u32,
    /// Number of the [stack](super::Stacks), 0 for none.
    pub stack: u32,
    /// Number of samples in the record.
    pub count: u32,
    /// State of the thread.
    pub state: ThreadState,
    /// Activity of the runtime on this thread.
    pub activity: Activity,
    /// Whether the stack is complete, from the innermost frame to the start of the thread.
    pub complete: bool,
    /// At least one frame of the stack is a guess: it does not follow from known facts about the
    /// frame that it called.
    pub guessed: bool,
    /// Whether the thread was in the kernel.
    pub kernel: bool,
    /// Whether the thread was in the profiler's own code: a hook or the agent.
    pub profiler: bool,
    /// What is known about inlining in those methods of the stack that do not belong to the
    /// framework.
    pub inlining: Inlining,
}

impl Sample {
    /// The stored form of the record.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; sample::BYTES] {
        let mut bytes = [0; sample::BYTES];
        for (at, value) in [(sample::TIME, self.time_ns), (sample::WEIGHT, self.weight_ns)] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let words = [
            (sample::THREAD, self.thread),
            (sample::STACK, self.stack),
            (sample::COUNT, self.count),
            (sample::FLAGS, self.flags()),
        ];
        for (at, value) in words {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// State, activity and the other facts about the thread's position in one number, in the stored
    /// form.
    #[must_use]
    pub fn flags(&self) -> u32 {
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        self.state as u32
            | (self.activity as u32) << sample::ACTIVITY
            | flag(self.complete, sample::COMPLETE)
            | flag(self.guessed, sample::GUESSED)
            | flag(self.kernel, sample::KERNEL)
            | flag(self.profiler, sample::PROFILER)
            | (self.inlining as u32) << sample::INLINING
    }

    /// A sample with only its [flags](Self::flags) set.
    #[inline]
    #[must_use]
    pub fn flagged(flags: u32) -> Self {
        Self {
            state: ThreadState::from_number(flags & sample::STATE),
            activity: Activity::from_number(flags >> sample::ACTIVITY & 0xFF),
            complete: flags & sample::COMPLETE != 0,
            guessed: flags & sample::GUESSED != 0,
            kernel: flags & sample::KERNEL != 0,
            profiler: flags & sample::PROFILER != 0,
            inlining: Inlining::from_number(flags >> sample::INLINING & 3),
            ..Self::default()
        }
    }

    /// Whether the stack is complete and has no guessed frame.
    #[inline]
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.complete && !self.guessed
    }

    /// The samples in a chunk's bytes; a truncated one is left out.
    pub fn all(chunk: &[u8]) -> impl Iterator<Item = Self> {
        chunk.chunks_exact(sample::BYTES).map(|bytes| Self {
            time_ns: u64_at(bytes, sample::TIME),
            weight_ns: u64_at(bytes, sample::WEIGHT),
            thread: u32_at(bytes, sample::THREAD),
            stack: u32_at(bytes, sample::STACK),
            count: u32_at(bytes, sample::COUNT),
            ..Self::flagged(u32_at(bytes, sample::FLAGS))
        })
    }
}

by_number! {
    /// State of a thread when it was sampled.
    ThreadState {
        /// Unknown.
        #[default]
        Unknown = 0 "unknown",
        /// On a processor.
        Running = 1 "running",
        /// Ready to run, and waiting for a processor.
        Ready = 2 "ready",
        /// Waiting for a lock.
        Lock = 3 "lock",
        /// Sleeping for a time.
        Sleeping = 4 "sleeping",
        /// Waiting for a file, a socket or a pipe.
        Io = 5 "io",
        /// Suspended by the runtime for a collection.
        Suspended = 6 "suspended",
        /// A thread-pool thread, the finalizer or the tiering thread, without work.
        Idle = 7 "idle",
        /// Waiting for something else.
        Waiting = 8 "waiting",
    }
}

by_number! {
    /// Activity of the runtime on a thread when the thread was sampled.
    Activity {
        /// None: the program's own code.
        #[default]
        None = 0 "none",
        /// Garbage collection.
        Gc = 1 "gc",
        /// Compilation by the just-in-time compiler.
        Jit = 2 "jit",
        /// Loading types and assemblies.
        TypeLoading = 3 "type_loading",
        /// Exception handling.
        Exceptions = 4 "exceptions",
        /// Suspending threads, or being suspended.
        Suspension = 5 "suspension",
    }
}

by_number! {
    /// What is known about methods inlined at the positions of the stack's frames. If frames
    /// differ, the least certain value applies to the stack.
    Inlining {
        /// Not recorded: the stack has no method outside the framework, or an earlier version took
        /// the sample.
        #[default]
        Unsaid = 0 "unsaid",
        /// No inlined method is there.
        None = 1 "none",
        /// All inlined methods there have frames.
        Named = 2 "named",
        /// It is unknown whether an inlined method is there.
        Unknown = 3 "unknown",
    }
}

by_number! {
    /// Tier of the compiled code in which a method's frame runs.
    Tier {
        /// Unknown.
        #[default]
        Unknown = 0 "unknown",
        /// Compiled quickly, without optimisation.
        Tier0 = 1 "tier0",
        /// Recompiled with optimisation.
        Tier1 = 2 "tier1",
        /// Compiled for a running loop (on-stack replacement).
        Osr = 3 "osr",
        /// Compiled at build time (ReadyToRun).
        Precompiled = 4 "precompiled",
        /// Compiled once, with optimisation, because tiered compilation is disabled or does not
        /// apply to the method.
        Optimized = 5 "optimized",
        /// Tier 0 with counters for the optimiser.
        InstrumentedTier0 = 6 "instrumented_tier0",
        /// Tier 1 with counters for the optimiser.
        InstrumentedTier1 = 7 "instrumented_tier1",
        /// Inlined into the code of its caller; that code has its own tier.
        Inlined = 8 "inlined",
        /// No tier: the method is not running but waits at an `await`. The offset of the `await` is
        /// exact.
        Awaiting = 9 "awaiting",
    }
}

impl Tier {
    /// Whether the IL offset of a frame in this tier is known to be exact, as it is in code without
    /// optimisation.
    #[must_use]
    pub const fn has_exact_offset(self) -> bool {
        matches!(self, Self::Tier0 | Self::InstrumentedTier0 | Self::Awaiting)
    }
}

/// Engine for taking samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum SamplingEngine {
    /// Unknown.
    #[default]
    Unknown = 0,
    /// The kernel's perf events.
    Perf = 1,
    /// A timer on the CPU clock of each thread, whose signal handler runs on that thread.
    Timer = 2,
    /// Signals to each thread at wall-clock intervals.
    Signals = 3,
}

numbered!(SamplingEngine: Unknown, Perf, Timer, Signals);

impl SamplingEngine {
    /// The name in JSON and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Perf => "perf",
            Self::Timer => "timer",
            Self::Signals => "signals",
        }
    }
}

record! {
    /// A sampling instrument, and how it took its samples in one process.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct Sampler {
        /// The instrument: `cpu` or `wall`.
        pub instrument: String,
        /// Engine that took the samples.
        pub engine: SamplingEngine,
        /// Nanoseconds between two samples of a thread, as requested.
        pub interval_ns: u64,
        /// Mean interval in nanoseconds that was actually reached; 0 if not yet known.
        pub reached_ns: u64,
        /// Whether stacks extend into the kernel.
        pub kernel: bool,
        /// One sentence: why a better engine was not used and what would allow it. Empty if there
        /// is no better engine.
        pub why_engine: String,
        /// One sentence: why stacks do not extend into the kernel and what would allow it. Empty if
        /// they do, or if this was not requested.
        pub why_no_kernel: String,
    }
}

record! {
    /// The name of a range of native code.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct NativeSymbol {
        /// Index into [`Process::modules`](super::Process::modules).
        pub module: u32,
        /// Offset of the range's first byte, measured as in
        /// [`StackFrame::Native`](super::StackFrame::Native).
        pub offset: u32,
        /// Size of the range in bytes.
        pub size: u32,
        /// The name, without its parameters.
        pub name: String,
    }
}

impl NativeSymbol {
    /// Returns the module and the offset in it: the sort key of symbols.
    #[must_use]
    pub fn module_and_offset(&self) -> (u32, u32) {
        (self.module, self.offset)
    }

    /// The symbol whose range contains the location, among sorted `symbols`.
    #[must_use]
    pub fn find(symbols: &[Self], module: u32, offset: u32) -> Option<&Self> {
        let after = symbols.partition_point(|symbol| symbol.module_and_offset() <= (module, offset));
        let symbol = symbols.get(after.checked_sub(1)?)?;
        (symbol.module == module && offset - symbol.offset < symbol.size.max(1)).then_some(symbol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_back_and_a_cut_one_is_none() {
        let sample = |number: u32| Sample {
            time_ns: u64::MAX - u64::from(number),
            weight_ns: 7 << 40,
            thread: 3,
            stack: u32::MAX,
            count: number,
            state: ThreadState::ALL[number as usize % ThreadState::ALL.len()],
            activity: Activity::ALL[number as usize % Activity::ALL.len()],
            complete: number & 1 != 0,
            kernel: number & 2 != 0,
            profiler: number & 4 != 0,
            guessed: number & 8 != 0,
            inlining: Inlining::ALL[number as usize % Inlining::ALL.len()],
        };
        let all: Vec<_> = (0..60).map(sample).collect();
        let mut bytes: Vec<u8> = all.iter().flat_map(Sample::to_bytes).collect();
        bytes.pop();
        assert_eq!(Sample::all(&bytes).collect::<Vec<_>>(), all[..59]);
    }

    #[test]
    fn numbers_from_the_future_are_unknown() {
        let mut bytes = Sample { state: ThreadState::Idle, activity: Activity::Jit, ..Sample::default() }.to_bytes();
        bytes[sample::FLAGS..][..2].copy_from_slice(&[200, 201]);
        let read = Sample::all(&bytes).next().expect("a sample");
        assert_eq!((read.state, read.activity), (ThreadState::Unknown, Activity::None));
        assert_eq!((Tier::from_number(3), Tier::from_number(99)), (Tier::Osr, Tier::Unknown));
    }

    #[test]
    fn a_place_has_the_name_of_the_range_it_lies_in() {
        let symbol = |module, offset, size| NativeSymbol { module, offset, size, name: format!("f{offset}") };
        let all = [symbol(1, 8, 4), symbol(2, 0, 10), symbol(2, 16, 0), symbol(2, 32, u32::MAX)];
        let name = |module, offset| NativeSymbol::find(&all, module, offset).map(|symbol| symbol.offset);
        assert_eq!([name(1, 7), name(1, 8), name(1, 11), name(1, 12)], [None, Some(8), Some(8), None]);
        assert_eq!([name(2, 9), name(2, 10), name(2, 16), name(2, 17)], [Some(0), None, Some(16), None]);
        assert_eq!([name(2, u32::MAX), name(3, 0), name(0, 0)], [Some(32), None, None]);
    }
}
