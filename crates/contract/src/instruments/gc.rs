//! The specification of `gc`.

use super::spec::{Attach, OptionSpec, Spec, Value};
use super::{LEAST_LIMIT, LIMIT};

/// Memory limit in bytes.
pub const MAX: &str = "max";

/// The specification.
pub const SPEC: &Spec = &Spec {
    name: "gc",
    about: "garbage collections: why, by whom, how long the program stood still, sizes of the generations",
    options: &[OptionSpec {
        name: MAX,
        value: Value::Size { least: LEAST_LIMIT, most: None, default: LIMIT },
        about: "memory limit per process",
    }],
    rules: &[],
    conflicts: &[],
    attach: Attach::Without(&[]),
    views: &["gc"],
};
