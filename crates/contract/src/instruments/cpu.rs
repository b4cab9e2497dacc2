//! The specification of `cpu`.

use super::spec::{Attach, OptionSpec, Spec, Value};
use super::{LEAST_LIMIT, LIMIT, VIEWS_OF_SAMPLES};

/// Samples per second of CPU time.
pub const RATE: &str = "rate";
/// Engine by which samples are taken: `auto`, `perf` or `timer`.
pub const ENGINE: &str = "engine";
/// Frames of the kernel.
pub const KERNEL: &str = "kernel";
/// Memory limit in bytes.
pub const MAX: &str = "max";

/// The specification.
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
            about: "who takes samples: the kernel's perf events, timers of each thread, or what works best here",
        },
        OptionSpec {
            name: KERNEL,
            value: Value::Switch { default: true },
            about: "frames of the kernel, where the system allows it",
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
