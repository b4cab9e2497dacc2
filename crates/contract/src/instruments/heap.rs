//! The specification of `heap`.

use super::spec::{Attach, Moment, OptionSpec, Spec, Value};

/// Moments of snapshots.
pub const AT: &str = "at";

/// A collection before each snapshot.
pub const COLLECT: &str = "collect";

/// The specification.
pub const SPEC: &Spec = &Spec {
    name: "heap",
    about: "snapshots of the heap after a full collection: objects by type, what they refer to, and what holds them",
    options: &[
        OptionSpec {
            name: AT,
            value: Value::Moments { default: &[Moment::End] },
            about: "when: at the end, times after the start, or by 'clrscope heap PID' alone",
        },
        OptionSpec {
            name: COLLECT,
            value: Value::Switch { default: true },
            about: "what a full collection leaves; off shows the heap as it was before that, garbage included",
        },
    ],
    rules: &[],
    conflicts: &[],
    views: &["summary", "heap", "roots", "dominators", "waste", "heap-diff"],
    attach: Attach::Without(&[]),
};
