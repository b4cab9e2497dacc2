//! The specification of `wall`.

use super::samples::{self, RATE};
use super::spec::{Limit, OptionSpec, Spec, Value};

/// The specification of the instrument `wall`.
pub const SPEC: &Spec = &Spec {
    name: "wall",
    about: "samples of all threads at regular times, with what they wait for",
    options: &[
        OptionSpec {
            name: RATE,
            value: Value::Count { least: 1, most: 1_000, default: 100 },
            about: "samples per second of each thread",
        },
        samples::MEMORY,
    ],
    rules: &[],
    conflicts: &[],
    changes_methods: false,
    views: samples::VIEWS,
    attach: Limit::Without(&[]),
    notification_only: Limit::Without(&[]),
    keeps_last: true,
    rotates: true,
    has_code: true,
};
