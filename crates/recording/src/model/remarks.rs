//! Losses, problems and remarks: information that a report must give besides its numbers.

use std::fmt;

use crate::codec::{Field, record};
use crate::payload::{PayloadReader, PayloadWriter};

record! {
    /// Data that was dropped or not recorded. Losses are counted where they happen.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Loss {
        /// Reason of the loss.
        pub reason: LossReason,
        /// How often the loss occurred.
        pub count: u64,
        /// Time of the first occurrence, in nanoseconds since the start of the run.
        pub first_ns: u64,
        /// Time of the last occurrence, in nanoseconds since the start of the run.
        pub last_ns: u64,
        /// Details beyond the reason, one sentence each, such as the location and text of a caught
        /// panic, or the unexpected callbacks.
        pub details: Vec<String>,
    }
}

impl Loss {
    /// A loss with only its reason, count and times.
    #[must_use]
    pub const fn new(reason: LossReason, count: u64, first_ns: u64, last_ns: u64) -> Self {
        Self { reason, count, first_ns, last_ns, details: Vec::new() }
    }
}

/// The reasons for a loss. The numbers are part of the format: reasons may only be appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum LossReason {
    /// A panic inside a callback was caught; the callback did nothing.
    PanicCaught = 0,
    /// There was no memory below the limit `max` for a new path; its calls ended in `(truncated)`.
    TreeFull = 1,
    /// There was no memory for a new path because the disk could not guarantee space.
    DiskFull = 2,
    /// A new path waited longer for memory than a hook may wait.
    ArenaBehind = 3,
    /// The thread table had no room for a thread.
    ThreadTableFull = 4,
    /// The shadow stack of a thread was full.
    StackFull = 5,
    /// The runtime did not supply a name; the id is shown instead.
    NameUnknown = 6,
    /// The table of names could not grow; later functions have no name.
    DictionaryFull = 7,
    /// The table of sampled times could not grow; later samples went to the thread's root.
    TimesFull = 8,
    /// A leave or tail call had no matching frame and was ignored.
    UnmatchedLeave = 9,
    /// Part of the recording could not be read.
    Unreadable = 10,
    /// The launcher stopped the recording of the process while the process continued to run.
    Stopped = 11,
    /// The process ended without notifying the agent; its data up to then is recorded.
    AbruptEnd = 12,
    /// The file system could not guarantee space: data was recorded in private memory and written
    /// out late.
    LateWrites = 13,
    /// The helper thread could not sample the threads in time; the share of that time is uncertain.
    SamplerLate = 14,
    /// Newer events overwrote starts and ends of calls in the ring of `flow`.
    RingOverwritten = 15,
    /// There was no room for an event.
    EventDropped = 16,
    /// A callback sequence that the runtime should not send was ignored.
    OddCallback = 17,
    /// The agent in a process could not start recording and disabled itself; a remark gives the
    /// reason.
    ProcessRefused = 18,
    /// The values of a call were left out: they were not where the agent expected them.
    ValuesUnread = 19,
    /// There was no memory in the stack table for a call stack; the events with that stack have
    /// none.
    StackTableFull = 20,
    /// The recording reached its maximum size and was stopped.
    SizeLimit = 21,
    /// The recording could not grow because it leaves the last free space of the disk to other
    /// programs.
    DiskReserve = 22,
    /// A thread waited longer for an entry in the thread table than a hook may wait; its next call
    /// tried again.
    ThreadTableBehind = 23,
    /// There was no room for a sample: the ring for the samples of a thread, or of all threads, was
    /// full.
    SampleRingFull = 24,
    /// The kernel dropped samples of `perf` before the agent could read them.
    PerfLost = 25,
    /// The stack of a sample could not be read at all; the sample counts for its thread without a
    /// stack.
    StackUnread = 26,
    /// A thread could not be sampled: no timer was available.
    ThreadUnsampled = 27,
    /// There was no room for gains in parts of the recording: those parts have no trees.
    PartLost = 28,
    /// Counters of `coverage` could not be inserted into a method: nothing is known about its
    /// lines.
    NotCovered = 29,
    /// Probes could not be inserted into a method: its calls are not counted.
    NotProbed = 30,
    /// A part of the heap, or the references of a type, could not be interpreted: a snapshot lacks
    /// these objects or references.
    HeapUnread = 31,
    /// There was no room for the callers of a call of a probed method.
    CallerUnknown = 32,
    /// An async method could not be instrumented: nothing is known about its awaits.
    AwaitsNotFollowed = 33,
    /// A library could not be instrumented: nothing is known about the requests that it serves or
    /// makes.
    RequestsNotFollowed = 34,
    /// The program's code began or ended a part in an invalid way, or too often.
    MarkIgnored = 35,
}

impl LossReason {
    /// Every reason, in the order of their numbers.
    pub const ALL: [Self; 36] = [
        Self::PanicCaught,
        Self::TreeFull,
        Self::DiskFull,
        Self::ArenaBehind,
        Self::ThreadTableFull,
        Self::StackFull,
        Self::NameUnknown,
        Self::DictionaryFull,
        Self::TimesFull,
        Self::UnmatchedLeave,
        Self::Unreadable,
        Self::Stopped,
        Self::AbruptEnd,
        Self::LateWrites,
        Self::SamplerLate,
        Self::RingOverwritten,
        Self::EventDropped,
        Self::OddCallback,
        Self::ProcessRefused,
        Self::ValuesUnread,
        Self::StackTableFull,
        Self::SizeLimit,
        Self::DiskReserve,
        Self::ThreadTableBehind,
        Self::SampleRingFull,
        Self::PerfLost,
        Self::StackUnread,
        Self::ThreadUnsampled,
        Self::PartLost,
        Self::NotCovered,
        Self::NotProbed,
        Self::HeapUnread,
        Self::CallerUnknown,
        Self::AwaitsNotFollowed,
        Self::RequestsNotFollowed,
        Self::MarkIgnored,
    ];

    /// The name in JSON (`losses` rows) and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PanicCaught => "panic_caught",
            Self::TreeFull => "tree_full",
            Self::DiskFull => "disk_full",
            Self::ArenaBehind => "arena_behind",
            Self::ThreadTableFull => "thread_table_full",
            Self::StackFull => "stack_full",
            Self::NameUnknown => "name_unknown",
            Self::DictionaryFull => "dictionary_full",
            Self::TimesFull => "times_full",
            Self::UnmatchedLeave => "unmatched_leave",
            Self::Unreadable => "unreadable",
            Self::Stopped => "stopped",
            Self::AbruptEnd => "abrupt_end",
            Self::LateWrites => "late_writes",
            Self::SamplerLate => "sampler_late",
            Self::RingOverwritten => "ring_overwritten",
            Self::EventDropped => "event_dropped",
            Self::OddCallback => "odd_callback",
            Self::ProcessRefused => "process_refused",
            Self::ValuesUnread => "values_unread",
            Self::StackTableFull => "stack_table_full",
            Self::SizeLimit => "size_limit",
            Self::DiskReserve => "disk_reserve",
            Self::ThreadTableBehind => "thread_table_behind",
            Self::SampleRingFull => "sample_ring_full",
            Self::PerfLost => "perf_lost",
            Self::StackUnread => "stack_unread",
            Self::ThreadUnsampled => "thread_unsampled",
            Self::PartLost => "part_lost",
            Self::NotCovered => "not_covered",
            Self::NotProbed => "not_probed",
            Self::HeapUnread => "heap_unread",
            Self::CallerUnknown => "caller_unknown",
            Self::AwaitsNotFollowed => "awaits_not_followed",
            Self::RequestsNotFollowed => "requests_not_followed",
            Self::MarkIgnored => "mark_ignored",
        }
    }

    /// A sentence for the user.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::PanicCaught => "a panic in the agent was caught; that callback recorded nothing",
            Self::TreeFull => "new call paths past the memory limit were folded into (truncated)",
            Self::DiskFull => "there was no disk space for new call paths; they were folded into (truncated)",
            Self::ArenaBehind => "there was no memory in time for new call paths; they were folded into (truncated)",
            Self::ThreadTableFull => "threads beyond the thread table were not recorded",
            Self::StackFull => "calls deeper than the shadow stack were not recorded",
            Self::NameUnknown => "the runtime did not supply some names",
            Self::DictionaryFull => "the name table could not grow; later functions have no name",
            Self::TimesFull => "the time table could not grow; later time went to the thread",
            Self::UnmatchedLeave => "leaves without a matching enter were ignored",
            Self::Unreadable => "part of the recording could not be read",
            Self::Stopped => "recording was stopped while the process kept running",
            Self::AbruptEnd => "the process ended without an orderly shutdown; everything up to then is here",
            Self::LateWrites => "disk space could not be reserved; data was written late",
            Self::SamplerLate => "samples were taken late; that time is attributed coarsely",
            Self::RingOverwritten => "the oldest enter and leave events were overwritten, as a ring buffer does",
            Self::EventDropped => "events were dropped for lack of space",
            Self::OddCallback => "unexpected callback sequences were ignored",
            Self::ProcessRefused => "a process was not recorded; a remark says why",
            Self::ValuesUnread => "values of calls were left out, as they were not found where expected",
            Self::StackTableFull => {
                "there was no memory for some call stacks; their events are recorded without a stack"
            }
            Self::SizeLimit => {
                "the recording reached its maximum size (--max-size) and stopped; the program kept running"
            }
            Self::DiskReserve => "the disk is nearly full (5 % or 2 GiB are left free): the recording could not grow",
            Self::ThreadTableBehind => {
                "the thread table had no room in time for new threads; their first calls were not recorded"
            }
            Self::SampleRingFull => "samples came faster than they could be stored; those are missing",
            Self::PerfLost => "the kernel dropped samples; those are missing",
            Self::StackUnread => "the stacks of some samples could not be read; those count for their threads only",
            Self::ThreadUnsampled => "some threads could not be sampled; what they did is missing",
            Self::PartLost => "there was no room for the calls of some parts; --part does not show them",
            Self::NotCovered => "some methods could not be given counters; nothing is known of their lines",
            Self::NotProbed => "some methods could not be given probes; nothing is known of their calls",
            Self::HeapUnread => "snapshots of the heap have gaps: objects there are missing, and so is what they hold",
            Self::CallerUnknown => {
                "there was no room for some callers of probed methods; their calls count for (unknown caller)"
            }
            Self::AwaitsNotFollowed => "some async methods could not be changed; nothing is known of their awaits",
            Self::RequestsNotFollowed => {
                "a library of the framework could not be changed; nothing is known of its requests"
            }
            Self::MarkIgnored => "parts that the program's own code began or ended are missing, or uncertain",
        }
    }

    /// Whether this reason is only information: no data was lost.
    #[must_use]
    pub const fn is_benign(self) -> bool {
        matches!(self, Self::AbruptEnd | Self::LateWrites | Self::RingOverwritten | Self::Stopped)
    }

    /// The reason with this number, if this version knows it.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

record! {
    /// Damage in the bytes of a recording, as text.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Problem {
        /// Place of the damage: a file or section name.
        pub place: String,
        /// What was wrong, and how the reader handled it, as a sentence.
        pub what: String,
    }
}

record! {
    /// A remark of the agent: reports show remarks in their header.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct Remark {
        /// Nanoseconds since the start of the run.
        pub time_ns: u64,
        /// One sentence. It does not repeat what the kind already says.
        pub text: String,
        /// Kind of remark.
        pub kind: RemarkKind,
    }
}

/// Purpose of a remark. Code decides by the kind, never by the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemarkKind {
    /// Information.
    #[default]
    Note,
    /// The reason why the agent in this process disabled itself: nothing else is known about the
    /// process then.
    Refusal,
    /// Advice for the next run.
    Advice(Advice),
    /// Reason why the awaiters of methods are unknown.
    NoAwaiters,
    /// The trigger that caused the recording to be written out.
    Trigger,
}

/// Advice for the next run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// Advice to leave out the functions that match these patterns, with `--exclude`: they make the
    /// program slow.
    Exclude(Vec<String>),
}

impl fmt::Display for Remark {
    /// The sentence, followed by the advice.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.kind {
            RemarkKind::Note | RemarkKind::Refusal | RemarkKind::NoAwaiters | RemarkKind::Trigger => Ok(()),
            RemarkKind::Advice(advice) => write!(f, "; {advice}"),
        }
    }
}

impl fmt::Display for Advice {
    /// The options to type, with a few words before them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Exclude(patterns) = self;
        f.write_str("to reduce the overhead:")?;
        patterns.iter().try_for_each(|pattern| write!(f, " --exclude '{pattern}'"))
    }
}

/// A `u32`: the reason's number. A reason of a later version can't be decoded.
impl Field for LossReason {
    fn put(&self, payload: &mut PayloadWriter) {
        payload.u32(*self as u32);
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        Self::from_number(payload.u32())
    }
}

/// A `u32` (0 note, 1 refusal, 2 advice to exclude, 3 no awaiters, 4 trigger) and a list of texts:
/// for advice, the patterns. Remarks without a kind (from earlier versions) and remarks of an
/// unknown kind are notes.
impl Field for RemarkKind {
    fn put(&self, payload: &mut PayloadWriter) {
        let (kind, texts) = match self {
            Self::Note => (0, &[][..]),
            Self::Refusal => (1, &[][..]),
            Self::Advice(Advice::Exclude(patterns)) => (2, &patterns[..]),
            Self::NoAwaiters => (3, &[][..]),
            Self::Trigger => (4, &[][..]),
        };
        payload.u32(kind).texts(texts);
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        Some(match (payload.u32(), payload.texts()) {
            (1, _) => Self::Refusal,
            (2, patterns) => Self::Advice(Advice::Exclude(patterns)),
            (3, _) => Self::NoAwaiters,
            (4, _) => Self::Trigger,
            _ => Self::Note,
        })
    }
}
