//! The specification of `calls`.

use super::spec::{Limit, OptionSpec, Spec, Value};
use super::{LEAST_LIMIT, LIMIT};

/// Clock that measures time: `sampled` or `tsc`.
pub const CLOCK: &str = "clock";
/// Inlining off.
pub const NOINLINE: &str = "noinline";
/// Calls to unmanaged code.
pub const NATIVE: &str = "native";
/// Managed helpers of the runtime.
pub const HELPERS: &str = "helpers";
/// Tiny methods that call nothing.
pub const TRIVIAL: &str = "trivial";
/// Memory limit in bytes.
pub const MAX: &str = "max";

/// The specification.
pub const SPEC: &Spec = &Spec {
    name: "calls",
    about: "the exact calling-context tree of each thread, with times",
    options: &[
        OptionSpec {
            name: CLOCK,
            value: Value::OneOf { words: &["sampled", "tsc"], default: "sampled" },
            about: "how time is measured: by a helper thread, or at every call",
        },
        OptionSpec {
            name: NOINLINE,
            value: Value::Switch { default: false },
            about: "disable inlining, so that every call is counted",
        },
        OptionSpec {
            name: NATIVE,
            value: Value::Switch { default: false },
            about: "calls to unmanaged code in the tree",
        },
        OptionSpec {
            name: HELPERS,
            value: Value::Switch { default: false },
            about: "the runtime's managed helpers in the tree",
        },
        OptionSpec { name: TRIVIAL, value: Value::Switch { default: true }, about: "tiny leaf methods in the tree" },
        OptionSpec {
            name: MAX,
            value: Value::Size { least: LEAST_LIMIT, most: Some(4 << 30), default: LIMIT },
            about: "memory limit per process",
        },
    ],
    rules: &[],
    conflicts: &[],
    attach: Limit::Never("calls needs enter and leave hooks, and the runtime takes those only when it starts"),
    notification_only: Limit::Never(
        "calls needs enter and leave hooks, and the runtime gives those to the main profiler alone",
    ),
    changes_methods: false,
    views: &["summary", "functions", "tree", "flame", "callers", "callees", "threads", "modules"],
    keeps_last: false,
    rotates: true,
    has_code: false,
};
