//! The specification of `memory`.

use super::spec::{Limit, OptionSpec, Spec, Value};
use super::{LEAST_LIMIT, LIMIT};

/// Option for the memory limit in bytes.
pub const MAX: &str = "max";

/// The specification of the instrument `memory`.
pub const SPEC: &Spec = &Spec {
    name: "memory",
    about: "what the process uses memory for: managed heap by generation, code, stacks, libraries, native; now and at \
            its peak",
    options: &[OptionSpec {
        name: MAX,
        value: Value::Size { least: LEAST_LIMIT, most: None, default: LIMIT },
        about: "memory limit per process",
    }],
    rules: &[],
    conflicts: &[],
    attach: Limit::Without(&[]),
    notification_only: Limit::Without(&[]),
    changes_methods: false,
    views: &["memory"],
    keeps_last: true,
    rotates: true,
    has_code: false,
};
