//! The specification of `probes`.

use super::spec::{Attach, Conflict, Spec, With};

/// The specification.
pub const SPEC: &Spec = &Spec {
    name: "probes",
    about: "calls of chosen methods: how many, how many failed, and how long they took, with percentiles; how often chosen lines are reached",
    options: &[],
    rules: &[],
    conflicts: &[
        Conflict {
            option: None,
            with: With::NoProbe,
            why: "'probes' changes the methods that are named, or have a line that is, and none is",
            hint: "name some: --probe 'Shop.Cart::*' or --probe-at Cart.cs:42",
        },
        Conflict {
            option: None,
            with: With::Instrument("coverage"),
            why: "'probes' and 'coverage' both give methods other code, and the code of one is not made of the other's",
            hint: "run the program once with each",
        },
    ],
    attach: Attach::Without(&[]),
    views: &["probes"],
};
