//! The specification of `requests`.

use super::spec::{Conflict, Limit, OptionSpec, Spec, Value, With};
use super::{LEAST_LIMIT, LIMIT};

/// Memory limit in bytes.
pub const MAX: &str = "max";
/// Option that controls whether names of requests contain the whole address.
pub const URLS: &str = "urls";
/// Value of [`URLS`] for whole addresses.
pub const FULL: &str = "full";

/// The specification.
pub const SPEC: &Spec = &Spec {
    name: "requests",
    about: "requests that the program serves (ASP.NET Core) and makes (HttpClient, ADO.NET): counts, failures and percentiles by route and host, and the slowest",
    options: &[
        OptionSpec {
            name: URLS,
            value: Value::Extra { words: &[FULL] },
            about: "names of outgoing requests, and of incoming ones without a template, have the whole path and the query, which may contain secrets",
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
        why: "requests and probes both have methods compiled anew, each with code of its own",
        hint: "record one of them at a time",
    }],
    attach: Limit::Without(&[]),
    notification_only: Limit::Never("requests changes methods, which the runtime lets the main profiler do alone"),
    changes_methods: true,
    views: &["requests", "request", "load"],
    keeps_last: true,
    rotates: true,
    has_code: false,
};
