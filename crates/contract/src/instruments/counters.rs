//! The specification of `counters`.

use super::spec::{Limit, OptionSpec, Spec, Value};
use super::{LEAST_LIMIT, LIMIT};

/// Memory limit in bytes.
pub const MAX: &str = "max";

/// The specification.
pub const SPEC: &Spec = &Spec {
    name: "counters",
    about: "event counters and meters of the runtime, ASP.NET Core, HttpClient and the program's own, each second",
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
    views: &["counters"],
    keeps_last: true,
    rotates: true,
    has_code: false,
};
