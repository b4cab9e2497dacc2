//! The specification of `requests`.

use super::spec::{Conflict, Limit, OptionSpec, Spec, Value, With};
use super::{LEAST_LIMIT, LIMIT};

/// Option for the memory limit in bytes.
pub const MAX: &str = "max";
/// Option that controls whether names of requests contain the full address.
pub const URLS: &str = "urls";
/// Value of [`URLS`] for full addresses.
pub const FULL: &str = "full";

/// The specification of the instrument `requests`.
pub const SPEC: &Spec = &Spec {
    name: "requests",
    about: "requests that the program serves (ASP.NET Core) and makes (HttpClient, ADO.NET): counts, failures and \
            percentiles by route and host, and the slowest ones",
    options: &[
        OptionSpec {
            name: URLS,
            value: Value::Extra { words: &[FULL] },
            about: "name outgoing requests, and incoming ones without a route template, by full path and query, which \
                    may contain secrets",
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
        why: "requests and probes both recompile methods, each with its own code",
        hint: "record one of them at a time",
    }],
    attach: Limit::Without(&[]),
    notification_only: Limit::Never("requests changes methods, and the runtime lets only the main profiler do so"),
    changes_methods: true,
    views: &["requests", "request", "load"],
    keeps_last: true,
    rotates: true,
    has_code: false,
};
