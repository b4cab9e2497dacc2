//! Losses, problems and remarks: what a report must say besides its numbers.

use std::fmt;

use crate::codec::{Field, record};
use crate::payload::{PayloadReader, PayloadWriter};

record! {
    /// Data that was dropped or not recorded, counted where it happened.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Loss {
        /// Reason of the loss.
        pub reason: LossReason,
        /// Number of occurrences.
        pub count: u64,
        /// First time, nanoseconds since the start of the run.
        pub first_ns: u64,
        /// Last time, nanoseconds since the start of the run.
        pub last_ns: u64,
        /// Details beyond the reason, one sentence each: place and text of a caught panic, which
        /// callbacks were odd.
        pub details: Vec<String>,
    }
}

impl Loss {
    /// A loss with only its reason, count and times known.
    #[must_use]
    pub const fn new(reason: LossReason, count: u64, first_ns: u64, last_ns: u64) -> Self {
        Self { reason, count, first_ns, last_ns, details: Vec::new() }
    }
}

/// The reasons for a loss. The numbers are part of the format: only ever append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum LossReason {
    /// A panic inside a callback was caught; the callback did nothing.
    PanicCaught = 0,
    /// A new path found no memory below the limit `max`; its calls ended in `(truncated)`.
    TreeFull = 1,
    /// A new path found no memory because the disk could not promise space.
    DiskFull = 2,
    /// A new path had to wait for memory longer than a hook may wait.
    ArenaBehind = 3,
    /// A thread could not be given a place in the thread table.
    ThreadTableFull = 4,
    /// The shadow stack of a thread was full.
    StackFull = 5,
    /// The runtime did not supply a name; the id is shown instead.
    NameUnknown = 6,
    /// The table of names could not grow; later functions have no name.
    DictionaryFull = 7,
    /// The table of sampled times could not grow; later samples went to the thread's root.
    TimesFull = 8,
    /// A leave or tail call found no matching frame and was ignored.
    UnmatchedLeave = 9,
    /// Part of the recording could not be read.
    Unreadable = 10,
    /// The launcher stopped the recording of the process while it went on running.
    Stopped = 11,
    /// The process ended without notifying the agent; what it had recorded is there.
    AbruptEnd = 12,
    /// The file system could not promise space: recorded in private memory and written out late.
    LateWrites = 13,
    /// The helper thread could not sample the threads in time; the share of that time is uncertain.
    SamplerLate = 14,
    /// Begins and ends of calls were overwritten by newer ones in the ring of `flow`.
    RingOverwritten = 15,
    /// An event found no place.
    EventDropped = 16,
    /// A callback sequence that the runtime should not send was ignored.
    OddCallback = 17,
    /// The agent in a process could not do its work and disabled itself; a remark says why.
    ProcessRefused = 18,
    /// The values of a call were left out: they were not where the agent looks for them.
    ValuesUnread = 19,
    /// A call stack found no memory in the stack table; what was recorded there has none.
    StackTableFull = 20,
    /// The recording reached its greatest size and was stopped.
    SizeLimit = 21,
    /// The disk's last free space was left to others: the recording could not grow.
    DiskReserve = 22,
    /// A thread had to wait for a place in the thread table longer than a hook may wait; its next
    /// call tried again.
    ThreadTableBehind = 23,
    /// A sample found no place: the ring that the samples of a thread or of all threads go through
    /// was full.
    SampleRingFull = 24,
    /// The kernel dropped samples of `perf` before anybody could read them.
    PerfLost = 25,
    /// The stack of a sample could not be read at all; the sample counts for its thread without
    /// one.
    StackUnread = 26,
    /// A thread could not be sampled: no timer could be had for it.
    ThreadUnsampled = 27,
    /// Gains in parts of the recording found no room: those parts have no trees.
    PartLost = 28,
    /// A method could not be given counters of `coverage`: nothing is known of its lines.
    NotCovered = 29,
    /// A method that was to be probed could not be changed: its calls are not counted.
    NotProbed = 30,
    /// A piece of the heap, or the references of a type, could not be understood: a snapshot lacks
    /// what is there.
    HeapUnread = 31,
    /// The callers of a call of a probed method found no room.
    CallerUnknown = 32,
    /// An async method could not be changed: nothing is known of its awaits.
    AwaitsNotFollowed = 33,
    /// A library could not be changed: nothing is known of the requests that it serves or makes.
    RequestsNotFollowed = 34,
    /// The program's code began or ended a part in a way that has no meaning, or too often.
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

    /// One sentence for a person.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::PanicCaught => "a panic in the agent was caught; that callback recorded nothing",
            Self::TreeFull => "new call paths past the memory limit were folded into (truncated)",
            Self::DiskFull => "new call paths found no disk space and were folded into (truncated)",
            Self::ArenaBehind => "new call paths found no memory in time and were folded into (truncated)",
            Self::ThreadTableFull => "threads beyond the thread table were not recorded",
            Self::StackFull => "calls deeper than the shadow stack were not recorded",
            Self::NameUnknown => "the runtime did not supply some names",
            Self::DictionaryFull => "the name table could not grow; later functions have no name",
            Self::TimesFull => "the time table could not grow; later time went to the thread",
            Self::UnmatchedLeave => "leaves without a matching enter were ignored",
            Self::Unreadable => "part of the recording could not be read",
            Self::Stopped => "recording was stopped while the process ran on",
            Self::AbruptEnd => "the process ended without an orderly shutdown; everything up to then is here",
            Self::LateWrites => "disk space could not be reserved; data was written late",
            Self::SamplerLate => "samples were taken late; that time is attributed coarsely",
            Self::RingOverwritten => "the oldest enter and leave events were overwritten, as a ring buffer does",
            Self::EventDropped => "events were dropped for lack of space",
            Self::OddCallback => "unexpected callback sequences were ignored",
            Self::ProcessRefused => "a process was not recorded; a remark says why",
            Self::ValuesUnread => "values of calls were left out, as they were not found where expected",
            Self::StackTableFull => "call stacks found no memory; their events are recorded without a stack",
            Self::SizeLimit => "the recording reached its greatest size (--max-size) and stopped; the program went on",
            Self::DiskReserve => "the disk is nearly full (5 % or 2 GiB are left free): the recording could not grow",
            Self::ThreadTableBehind => {
                "new threads found no place in the thread table in time; their first calls were not recorded"
            }
            Self::SampleRingFull => "samples came faster than they could be stored; those are missing",
            Self::PerfLost => "the kernel dropped samples; those are missing",
            Self::StackUnread => "the stacks of some samples could not be read; those count for their threads only",
            Self::ThreadUnsampled => "some threads could not be sampled; what they did is missing",
            Self::PartLost => "parts found no room for what they gained; --part shows no calls of them",
            Self::NotCovered => "some methods could not be given counters; nothing is known of their lines",
            Self::NotProbed => "some methods could not be given probes; nothing is known of their calls",
            Self::HeapUnread => "snapshots of the heap have gaps: objects there are missing, and so is whom they hold",
            Self::CallerUnknown => "callers of probed methods found no room; their calls are those of (unknown caller)",
            Self::AwaitsNotFollowed => "some async methods could not be changed; nothing is known of their awaits",
            Self::RequestsNotFollowed => {
                "a library of the framework could not be changed; nothing is known of its requests"
            }
            Self::MarkIgnored => "parts that the program's own code began or ended are missing, or uncertain",
        }
    }

    /// Whether this is information rather than lost data.
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
    /// Damage in the bytes of a recording, in words.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Problem {
        /// Place of the damage: a file or section name.
        pub place: String,
        /// Sentence: what was wrong and what was done about it.
        pub what: String,
    }
}

record! {
    /// A remark of the agent: reports show remarks in their head.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct Remark {
        /// Nanoseconds since the start of the run.
        pub time_ns: u64,
        /// One sentence, without what follows from the kind.
        pub text: String,
        /// Kind of remark.
        pub kind: RemarkKind,
    }
}

/// Purpose of a remark. Programs decide by the kind, never by the words of the sentence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemarkKind {
    /// Information.
    #[default]
    Note,
    /// The reason why the agent in this process disabled itself: then nothing else is known of the
    /// process.
    Refusal,
    /// Advice for the next run.
    Advice(Advice),
    /// The reason why it is unknown which methods await which.
    NoAwaiters,
    /// What happened in the program for which the recording was written out.
    Trigger,
}

/// Advice for the next run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// `--exclude` each of these patterns: what they match makes the program slow.
    Exclude(Vec<String>),
}

impl fmt::Display for Remark {
    /// The sentence, with the advice at its end.
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
        f.write_str("what spares it:")?;
        patterns.iter().try_for_each(|pattern| write!(f, " --exclude '{pattern}'"))
    }
}

/// A `u32`: the reason's number. Of a reason from the future this version has nothing to say.
impl Field for LossReason {
    fn put(&self, payload: &mut PayloadWriter) {
        payload.u32(*self as u32);
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        Self::from_number(payload.u32())
    }
}

/// A `u32` (0 note, 1 refusal, 2 advice to exclude, 3 no awaiters, 4 trigger) and a list of texts:
/// of advice the patterns. A remark written before remarks had kinds, and one of a kind from the
/// future, is a note.
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
