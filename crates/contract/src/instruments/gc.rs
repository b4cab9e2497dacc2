//! The specification of `gc`.

use super::spec::{Conflict, Limit, LimitedPart, OptionSpec, Spec, Value, With};
use super::{LEAST_LIMIT, LIMIT};

/// Option to record survivors of collections, by type.
pub const SURVIVORS: &str = "survivors";
/// Option for the memory limit in bytes.
pub const MAX: &str = "max";

/// The specification of the instrument `gc`.
pub const SPEC: &Spec = &Spec {
    name: "gc",
    about: "garbage collections: reason, cause, how long the program was stopped, sizes of the generations",
    options: &[
        OptionSpec {
            name: SURVIVORS,
            value: Value::Extra { words: &[] },
            about: "objects that survived, were moved, or died young, by type; disables concurrent collections",
        },
        OptionSpec {
            name: MAX,
            value: Value::Size { least: LEAST_LIMIT, most: None, default: LIMIT },
            about: "memory limit per process",
        },
    ],
    rules: &[],
    conflicts: &[Conflict {
        option: Some(SURVIVORS),
        with: With::Instrument("events"),
        why: "gc:survivors ends the runtime's own heap walk, which events:objects and events:heap need",
        hint: "record the two in separate runs",
    }],
    attach: Limit::Without(&[]),
    notification_only: Limit::Without(&[LimitedPart {
        option: SURVIVORS,
        word: None,
        why: "gc:survivors tracks each object, which the runtime reports only to the main profiler",
    }]),
    changes_methods: false,
    views: &["gc", "survivors"],
    keeps_last: true,
    rotates: true,
    has_code: true,
};
