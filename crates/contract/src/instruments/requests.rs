//! The specification of `requests`.

use super::spec::{Attach, Conflict, OptionSpec, Spec, Value, With};
use super::{LEAST_LIMIT, LIMIT};

/// Memory limit in bytes.
pub const MAX: &str = "max";

/// The specification.
pub const SPEC: &Spec = &Spec {
    name: "requests",
    about: "requests that the program serves (ASP.NET Core) and makes (HttpClient): counts, failures and percentiles by route and host, and the slowest",
    options: &[OptionSpec {
        name: MAX,
        value: Value::Size { least: LEAST_LIMIT, most: None, default: LIMIT },
        about: "memory limit per process",
    }],
    rules: &[],
    conflicts: &[Conflict {
        option: None,
        with: With::Instrument("probes"),
        why: "requests and probes both have methods compiled anew, each with code of its own",
        hint: "record one of them at a time",
    }],
    attach: Attach::Without(&[]),
    changes_methods: true,
    views: &["requests", "request", "load"],
    keeps_last: true,
    has_code: false,
};
