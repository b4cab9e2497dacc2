//! The specification of `awaits`.

use super::spec::{Conflict, Limit, OptionSpec, Spec, Value, With};
use super::{LEAST_LIMIT, LIMIT};

/// Option to record the path of each await, without a limit on how many per second.
pub const EXACT: &str = "exact";
/// Option for the memory limit in bytes.
pub const MAX: &str = "max";

/// The specification of the instrument `awaits`.
pub const SPEC: &Spec = &Spec {
    name: "awaits",
    about: "awaits in the program's own async methods: how long each took, by line and by awaiter, with percentiles, \
            failures, cancellations and pending awaits",
    options: &[
        OptionSpec {
            name: EXACT,
            value: Value::Extra { words: &[] },
            about: "the call path of each await, not only of the first 250 in each tenth of a second",
        },
        OptionSpec {
            name: MAX,
            value: Value::Size { least: LEAST_LIMIT, most: None, default: LIMIT },
            about: "memory limit per process",
        },
    ],
    rules: &[],
    conflicts: &[Conflict {
        option: None,
        with: With::Instrument("probes"),
        why: "awaits and probes both recompile methods, each with its own code",
        hint: "record one of them at a time",
    }],
    attach: Limit::Without(&[]),
    notification_only: Limit::Never("awaits changes methods, and the runtime lets only the main profiler do so"),
    changes_methods: true,
    views: &["awaits"],
    keeps_last: true,
    rotates: true,
    has_code: true,
};
