//! The specification of `events`, and the groups of events.

use super::spec::{Limit, LimitedPart, Member, OptionSpec, Rule, Spec, Value};
use super::{LEAST_LIMIT, LIMIT};

/// Declares the groups, each with its name on the command line and a description of one line.
macro_rules! groups {
    ($($group:ident $name:literal $about:literal,)*) => {
        /// A group of events that are enabled together.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Group {
            $(#[doc = $about] $group,)*
        }

        impl Group {
            /// Every group with its name.
            pub const ALL: [(&'static str, Self); MEMBERS.len()] = [$(($name, Self::$group),)*];
        }

        const MEMBERS: &[Member] = &[$(Member { name: $name, about: $about },)*];
    };
}

groups! {
    Runtime "runtime" "start and end of the runtime",
    Loads "loads" "application domains, assemblies, modules and classes",
    Jit "jit" "compilation, inlining, searches for precompiled code",
    Threads "threads" "managed threads",
    Transitions "transitions" "calls between managed and native code; makes cheap calls 40 to 70 times slower",
    Suspend "suspend" "suspensions, with their reason",
    Gc "gc" "begin and end of collections",
    Objects "objects" "objects by class after each collection; disables concurrent collections",
    Heap "heap" "numbers of roots, references, moved and surviving objects; like objects, but with much data",
    Handles "handles" "GC handles; disables concurrent collections",
    Exceptions "exceptions" "throw, search, filters, unwind, catch",
    Com "com" "COM and remoting, never seen outside Windows",
    Pipe "pipe" "EventPipe providers",
}

impl Group {
    /// The group with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, group)| *group)
    }

    /// Name of the group on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, group)| *group == self).map_or("", |(name, _)| name)
    }
}

/// Groups that cost little and do not change how the program runs.
///
/// The other groups must be requested by name. `transitions` makes the runtime refuse precompiled
/// code, and makes cheap calls of native code 40 to 70 times slower. `objects`, `heap` and
/// `handles` disable concurrent collections and walk the whole heap at each collection. `com` has
/// events only on Windows. `pipe` reports every provider of the process.
const CHEAP: &[&str] = &["runtime", "loads", "jit", "threads", "suspend", "gc", "exceptions"];

const fn of_main_profiler(group: &'static str, why: &'static str) -> LimitedPart {
    LimitedPart { option: GROUPS, word: Some(group), why }
}

/// Option that selects groups of events, by the names of [`Group`].
pub const GROUPS: &str = "groups";
/// Option to record each allocated object.
pub const ALLOCATIONS: &str = "allocations";
/// Option for the memory limit in bytes.
pub const MAX: &str = "max";

/// The specification of the instrument `events`.
pub const SPEC: &Spec = &Spec {
    name: "events",
    about: "callbacks of the runtime: loads, compilation, threads, collections, exceptions and more",
    options: &[
        OptionSpec {
            name: GROUPS,
            value: Value::Set { members: MEMBERS, default: CHEAP },
            about: "groups of events, or single groups",
        },
        OptionSpec { name: ALLOCATIONS, value: Value::Switch { default: false }, about: "each allocated object" },
        OptionSpec {
            name: MAX,
            value: Value::Size { least: LEAST_LIMIT, most: None, default: LIMIT },
            about: "memory limit per process",
        },
    ],
    rules: &[Rule::Needs { option: ALLOCATIONS, value: Some("on"), other: GROUPS, word: "objects" }],
    conflicts: &[],
    attach: Limit::Without(&[
        LimitedPart {
            option: GROUPS,
            word: Some("transitions"),
            why: "the runtime reports transitions only to profilers loaded when it started",
        },
        LimitedPart {
            option: ALLOCATIONS,
            word: None,
            why: "the runtime reports each allocated object only to profilers loaded when it started",
        },
    ]),
    notification_only: Limit::Without(&[
        of_main_profiler(
            "objects",
            "events:objects asks for each object, which the runtime reports only to the main profiler",
        ),
        of_main_profiler(
            "heap",
            "events:heap asks for each object, which the runtime reports only to the main profiler",
        ),
        of_main_profiler(
            "handles",
            "events:handles asks for GC handles, which the runtime reports only to the main profiler",
        ),
    ]),
    changes_methods: false,
    views: &["events"],
    keeps_last: true,
    rotates: true,
    has_code: false,
};
