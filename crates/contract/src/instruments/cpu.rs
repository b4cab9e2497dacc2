//! The specification of `cpu`.

use super::samples::{self, RATE};
use super::spec::{Limit, OptionSpec, Spec, Value};

/// Option that selects the sampling engine: `auto`, `perf` or `timer`.
pub const ENGINE: &str = "engine";
/// Option to record kernel frames.
pub const KERNEL: &str = "kernel";

/// The specification of the instrument `cpu`.
pub const SPEC: &Spec = &Spec {
    name: "cpu",
    about: "samples of what threads spend CPU time on: managed, runtime, native and kernel frames",
    options: &[
        OptionSpec {
            name: RATE,
            value: Value::Count { least: 1, most: 20_000, default: 1_000 },
            about: "samples per second of each thread's CPU time",
        },
        OptionSpec {
            name: ENGINE,
            value: Value::OneOf { words: &["auto", "perf", "timer"], default: "auto" },
            about: "what takes the samples: the kernel's perf events, a timer on each thread, or what works best here",
        },
        OptionSpec {
            name: KERNEL,
            value: Value::Switch { default: true },
            about: "frames of the kernel, if the system allows it",
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
