//! The specification of `alloc`.

use super::spec::{Conflict, Limit, LimitedPart, OptionSpec, Spec, Value, With};
use super::{LEAST_LIMIT, LIMIT};

/// Option to record each object instead of samples.
pub const EXACT: &str = "exact";
/// Option to follow objects until they are collected.
pub const LIVE: &str = "live";
/// Option for the maximum number of frames recorded per stack.
pub const FRAMES: &str = "frames";
/// Option for the memory limit in bytes.
pub const MAX: &str = "max";

/// The specification of the instrument `alloc`.
pub const SPEC: &Spec = &Spec {
    name: "alloc",
    about: "allocated objects: by type and by the code that allocates them",
    options: &[
        OptionSpec {
            name: EXACT,
            value: Value::Extra { words: &[] },
            about: "each object instead of samples: counts and bytes are exact, but allocating takes longer",
        },
        OptionSpec {
            name: LIVE,
            value: Value::Extra { words: &[] },
            about: "track the objects, to see which are still alive at the end",
        },
        OptionSpec {
            name: FRAMES,
            value: Value::Count { least: 0, most: 256, default: 64 },
            about: "frames to keep of the allocating stack; 0 for types only",
        },
        OptionSpec {
            name: MAX,
            value: Value::Size { least: LEAST_LIMIT, most: None, default: LIMIT },
            about: "memory limit per process",
        },
    ],
    rules: &[],
    conflicts: &[Conflict {
        option: Some(LIVE),
        with: With::Period,
        why: "alloc:live follows objects over the whole recording, so it does not work with --last or --every",
        hint: "leave out 'live'; heap snapshots show what is still alive",
    }],
    attach: Limit::Without(&[LimitedPart {
        option: EXACT,
        word: None,
        why: "alloc:exact needs the runtime's slow allocator, which is chosen when the runtime starts",
    }]),
    notification_only: Limit::Without(&[LimitedPart {
        option: EXACT,
        word: None,
        why: "alloc:exact changes a method of .NET 10, and the runtime lets only the main profiler do so",
    }]),
    changes_methods: false,
    views: &["allocations", "functions", "tree", "flame", "callers", "callees"],
    keeps_last: true,
    rotates: true,
    has_code: true,
};
