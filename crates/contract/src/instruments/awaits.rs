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
    about: "awaits of the program's own async methods: how long each took, by line and by who awaits, with percentiles, failures, cancellations and those still pending",
    options: &[
        OptionSpec {
            name: EXACT,
            value: Value::Extra { words: &[] },
            about: "the path of each await, not only of the first 250 in each tenth of a second",
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
        why: "awaits and probes both have methods compiled anew, each with code of its own",
        hint: "record one of them at a time",
    }],
    attach: Limit::Without(&[]),
    notification_only: Limit::Never("awaits changes methods, which the runtime lets the main profiler do alone"),
    changes_methods: true,
    views: &["awaits"],
    keeps_last: true,
    rotates: true,
    has_code: true,
};
