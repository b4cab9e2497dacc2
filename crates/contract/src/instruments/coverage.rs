//! The specification of `coverage`.

use super::spec::{Attach, OptionSpec, Spec, Value};

/// Hits are counted, not only whether there was one.
pub const HITS: &str = "hits";

/// The specification.
pub const SPEC: &Spec = &Spec {
    name: "coverage",
    about: "which lines and branches run, and how often: of the program's own assemblies that have symbols",
    options: &[OptionSpec {
        name: HITS,
        value: Value::Switch { default: true },
        about: "count how often each line and branch runs; off notes only whether it ran, which costs less",
    }],
    rules: &[],
    conflicts: &[],
    attach: Attach::Never(
        "coverage puts its counters into methods before they are compiled, so it must be there when the program starts",
    ),
    views: &["coverage"],
    has_code: false,
};
