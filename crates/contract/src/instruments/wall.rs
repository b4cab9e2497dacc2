//! The specification of `wall`.

use super::spec::{Attach, OptionSpec, Spec, Value};
use super::{LEAST_LIMIT, LIMIT, VIEWS_OF_SAMPLES};

/// Samples per second of each thread.
pub const RATE: &str = "rate";
/// Memory limit in bytes.
pub const MAX: &str = "max";

/// The specification.
pub const SPEC: &Spec = &Spec {
    name: "wall",
    about: "samples of all threads by the clock, with what they wait for",
    options: &[
        OptionSpec {
            name: RATE,
            value: Value::Count { least: 1, most: 1_000, default: 100 },
            about: "samples per second of each thread",
        },
        OptionSpec {
            name: MAX,
            value: Value::Size { least: LEAST_LIMIT, most: None, default: LIMIT },
            about: "memory limit per process",
        },
    ],
    rules: &[],
    conflicts: &[],
    views: VIEWS_OF_SAMPLES,
    attach: Attach::Without(&[]),
};
