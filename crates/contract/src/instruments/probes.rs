//! The specification of `probes`.

use super::LIMIT;
use super::flow::{TYPES, VALUES};
use super::spec::{Conflict, Limit, OptionSpec, Rule, Spec, Value, With};

/// Option to record each call instead of only counting calls.
pub const EACH: &str = "each";
/// Option to record each call with arguments and results: [`VALUES`] or [`TYPES`].
pub const ARGS: &str = "args";
/// Option for how deep fields of object arguments are recorded.
pub const DEPTH: &str = "depth";
/// Option for the size of the buffer that keeps the last calls, in bytes.
pub const LAST: &str = "last";

/// Option to count calls by caller as well.
pub const CALLERS: &str = "callers";
/// Option for the maximum number of callers recorded per call.
pub const FRAMES: &str = "frames";

/// The specification of the instrument `probes`.
pub const SPEC: &Spec = &Spec {
    name: "probes",
    about: "calls of chosen methods: number, failures and times, with percentiles; on request by callers, or each with \
            arguments and results; how often chosen lines are reached",
    options: &[
        OptionSpec {
            name: EACH,
            value: Value::Extra { words: &[] },
            about: "record each call as well: start, thread, duration, whether it failed",
        },
        OptionSpec {
            name: ARGS,
            value: Value::Extra { words: &[VALUES, TYPES] },
            about: "record each call with arguments, this, fields and result, or only their types",
        },
        OptionSpec {
            name: DEPTH,
            // The values of an event take at most two kilobytes.
            value: Value::Count { least: 0, most: 5, default: 1 },
            about: "how many levels of objects to expand among them; 0 shows addresses",
        },
        OptionSpec {
            name: LAST,
            value: Value::Size { least: 1 << 20, most: None, default: LIMIT },
            about: "memory for the latest calls",
        },
        OptionSpec {
            name: CALLERS,
            value: Value::Extra { words: &[] },
            about: "count by callers as well: calls, failures and times for each path to the method",
        },
        OptionSpec {
            name: FRAMES,
            value: Value::Count { least: 1, most: 32, default: 8 },
            about: "number of callers to keep of a call, innermost first",
        },
    ],
    rules: &[
        Rule::Needs { option: DEPTH, value: None, other: ARGS, word: VALUES },
        Rule::NeedsOneOf { option: LAST, others: &[EACH, ARGS] },
        Rule::NeedsOneOf { option: FRAMES, others: &[CALLERS] },
    ],
    conflicts: &[
        Conflict {
            option: None,
            with: With::NoProbe,
            why: "'probes' needs at least one method or line, but none is given",
            hint: "name some: --probe 'Shop.Cart::*' or --probe-at Cart.cs:42",
        },
        Conflict {
            option: Some(ARGS),
            with: With::Instrument("flow"),
            why: "probes:args and flow both record values of calls, each to its own depth",
            hint: "record flow:args, which shows arguments of every call, or leave flow out",
        },
    ],
    attach: Limit::Without(&[]),
    notification_only: Limit::Never("probes changes methods, and the runtime lets only the main profiler do so"),
    changes_methods: true,
    views: &["probes"],
    keeps_last: false,
    rotates: false,
    has_code: true,
};
