//! The specification of `calls`.

use super::spec::{Limit, OptionSpec, Spec, Value};
use super::{LEAST_LIMIT, LIMIT};

/// Clock that measures time: `sampled` or `tsc`.
pub const CLOCK: &str = "clock";
/// Option to switch inlining off.
pub const NOINLINE: &str = "noinline";
/// Option to record calls to unmanaged code.
pub const NATIVE: &str = "native";
/// Option to record managed helpers of the runtime.
pub const HELPERS: &str = "helpers";
/// Option to record tiny methods that call nothing.
pub const TRIVIAL: &str = "trivial";
/// Option for the memory limit in bytes.
pub const MAX: &str = "max";

/// The specification of the instrument `calls`.
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
            about: "show calls to unmanaged code in the tree",
        },
        OptionSpec {
            name: HELPERS,
            value: Value::Switch { default: false },
            about: "show the runtime's managed helper methods in the tree",
        },
        OptionSpec {
            name: TRIVIAL,
            value: Value::Switch { default: true },
            about: "show tiny leaf methods in the tree",
        },
        OptionSpec {
            name: MAX,
            value: Value::Size { least: LEAST_LIMIT, most: Some(4 << 30), default: LIMIT },
            about: "memory limit per process",
        },
    ],
    rules: &[],
    conflicts: &[],
    attach: Limit::Never("calls needs enter and leave hooks, which the runtime accepts only when it starts"),
    notification_only: Limit::Never(
        "calls needs enter and leave hooks, which the runtime gives only to the main profiler",
    ),
    changes_methods: false,
    views: &["summary", "functions", "tree", "flame", "callers", "callees", "threads", "modules"],
    keeps_last: false,
    rotates: true,
    has_code: false,
};
