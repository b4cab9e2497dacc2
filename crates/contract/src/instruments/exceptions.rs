//! The specification of `exceptions`.

use super::spec::{Conflict, Limit, LimitedPart, OptionSpec, Spec, Value, With};
use super::{LEAST_LIMIT, LIMIT};

/// Option to record arguments of the methods on the stack.
pub const ARGS: &str = "args";
/// Option for the maximum number of frames recorded per stack.
pub const FRAMES: &str = "frames";
/// Option that selects how stacks are walked: `frames`, `snapshot` or `check`.
pub const STACKS: &str = "stacks";
/// Option for the memory limit in bytes.
pub const MAX: &str = "max";

/// The specification of the instrument `exceptions`.
pub const SPEC: &Spec = &Spec {
    name: "exceptions",
    about: "each exception: message, stack at the throw, methods searched for a handler, catcher",
    options: &[
        OptionSpec {
            name: ARGS,
            value: Value::Extra { words: &[] },
            about: "arguments of methods on the stack that --include names, as they were at the call",
        },
        OptionSpec {
            name: FRAMES,
            value: Value::Count { least: 0, most: 256, default: 64 },
            about: "frames kept of the stack at the throw",
        },
        OptionSpec {
            name: STACKS,
            value: Value::OneOf { words: &["frames", "snapshot", "check"], default: "frames" },
            about: "how stacks are walked: by frame layout, by the runtime, or both and compared",
        },
        OptionSpec {
            name: MAX,
            value: Value::Size { least: LEAST_LIMIT, most: None, default: LIMIT },
            about: "memory limit per process",
        },
    ],
    rules: &[],
    conflicts: &[
        Conflict {
            option: Some(ARGS),
            with: With::NoInclude,
            why: "exceptions:args keeps arguments of the methods that --include names, but there is no --include",
            hint: "name methods, such as --include '[MyApp]*'",
        },
        Conflict {
            option: Some(ARGS),
            with: With::Instrument("flow"),
            why: "exceptions:args and flow need different enter and leave hooks in one method",
            hint: "record exceptions and flow:args together, which shows arguments of every call, or leave flow out",
        },
    ],
    attach: Limit::Without(&[LimitedPart {
        option: ARGS,
        word: None,
        why: "exceptions:args needs enter hooks, which the runtime accepts only when it starts",
    }]),
    notification_only: Limit::Without(&[LimitedPart {
        option: ARGS,
        word: None,
        why: "exceptions:args needs enter hooks, which the runtime gives only to the main profiler",
    }]),
    changes_methods: false,
    views: &["exceptions"],
    keeps_last: true,
    rotates: true,
    has_code: true,
};
