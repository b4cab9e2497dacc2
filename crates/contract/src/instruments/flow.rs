//! The specification of `flow`.

use super::LIMIT;
use super::spec::{Limit, OptionSpec, Rule, Spec, Value};

/// Option for the size of the buffer that keeps the last events, in bytes.
pub const LAST: &str = "last";
/// Option to keep every event.
pub const ALL: &str = "all";
/// Option to record arguments and results: [`VALUES`], [`TYPES`] or [`CHECK`].
pub const ARGS: &str = "args";
/// Option for how deep fields of object arguments are recorded.
pub const DEPTH: &str = "depth";

/// Value of [`ARGS`]: records arguments with their values.
pub const VALUES: &str = "values";
/// Value of [`ARGS`]: records only the types of arguments.
pub const TYPES: &str = "types";
/// Value of [`ARGS`], for tests of clrscope: records no calls, but compares the locations where
/// clrscope reads arguments with the locations that the runtime reports.
pub const CHECK: &str = "check";

/// The specification of the instrument `flow`.
pub const SPEC: &Spec = &Spec {
    name: "flow",
    about: "every enter, leave and tail call in order, with its time",
    options: &[
        OptionSpec {
            name: LAST,
            value: Value::Size { least: 1 << 20, most: None, default: LIMIT },
            about: "memory for the latest events",
        },
        OptionSpec {
            name: ALL,
            value: Value::Extra { words: &[] },
            about: "keep every event instead of the latest ones",
        },
        OptionSpec {
            name: ARGS,
            value: Value::Extra { words: &[VALUES, TYPES, CHECK] },
            about: "arguments, this, fields and results of the functions that --include names, or only their types; \
                    check is for tests and records no calls",
        },
        OptionSpec {
            name: DEPTH,
            // The values of an event take at most two kilobytes.
            value: Value::Count { least: 0, most: 5, default: 1 },
            about: "how many levels of objects to expand among them; 0 shows addresses",
        },
    ],
    rules: &[Rule::Either(&[LAST, ALL]), Rule::Needs { option: DEPTH, value: None, other: ARGS, word: VALUES }],
    conflicts: &[],
    attach: Limit::Never("flow needs enter and leave hooks, which the runtime accepts only when it starts"),
    notification_only: Limit::Never(
        "flow needs enter and leave hooks, which the runtime gives only to the main profiler",
    ),
    changes_methods: false,
    views: &["flow"],
    keeps_last: false,
    rotates: false,
    has_code: false,
};
