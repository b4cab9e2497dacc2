//! The specification of `coverage`.

use super::check::is_type_name;
use super::spec::{Limit, OptionSpec, Spec, Value};

/// Option to count hits instead of noting only whether there was one.
pub const HITS: &str = "hits";

/// Option with the names of attributes that mark methods that never return.
pub const DOES_NOT_RETURN: &str = "does-not-return";

/// Option to leave out auto-implemented properties.
pub const SKIP_AUTO_PROPS: &str = "skip-auto-props";

/// The specification of the instrument `coverage`.
pub const SPEC: &Spec = &Spec {
    name: "coverage",
    about: "which lines and branches of the program's own assemblies with symbols run, and how often",
    options: &[
        OptionSpec {
            name: HITS,
            value: Value::Switch { default: true },
            about: "count how often each line and branch runs; off records only whether it ran, which costs less",
        },
        OptionSpec {
            name: DOES_NOT_RETURN,
            value: Value::Names { of: "types, without brackets", is_name: is_type_name },
            about: "leave out code after calls to methods with one of these attributes, such as DoesNotReturn",
        },
        OptionSpec {
            name: SKIP_AUTO_PROPS,
            value: Value::Extra { words: &[] },
            about: "leave out properties that the compiler implements, such as { get; set; }",
        },
    ],
    rules: &[],
    conflicts: &[],
    attach: Limit::Never(
        "coverage adds its counters to methods before they are compiled, so it must begin when the program starts",
    ),
    notification_only: Limit::Never("coverage changes methods, and the runtime lets only the main profiler do so"),
    changes_methods: false,
    views: &["coverage"],
    keeps_last: false,
    rotates: false,
    has_code: false,
};
