//! The specification of `locks`.

use super::spec::{Limit, OptionSpec, Spec, Value};
use super::{LEAST_LIMIT, LIMIT};

/// Option to record the stack of each waiting thread, without a limit on how many per second.
pub const EXACT: &str = "exact";
/// Option for the memory limit in bytes.
pub const MAX: &str = "max";

/// The specification of the instrument `locks`.
pub const SPEC: &Spec = &Spec {
    name: "locks",
    about: "contended locks and what else threads block on: which threads waited, for how long, on which call \
            path, and what held the lock",
    options: &[
        OptionSpec {
            name: EXACT,
            value: Value::Extra { words: &[] },
            about: "the stack of each wait, not only of the first 250 in each tenth of a second",
        },
        OptionSpec {
            name: MAX,
            value: Value::Size { least: LEAST_LIMIT, most: None, default: LIMIT },
            about: "memory limit per process",
        },
    ],
    rules: &[],
    conflicts: &[],
    attach: Limit::Without(&[]),
    notification_only: Limit::Without(&[]),
    changes_methods: false,
    views: &["locks"],
    keeps_last: true,
    rotates: true,
    has_code: true,
};
