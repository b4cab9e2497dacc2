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
    about: "garbage collections: why, by whom, how long the program stood still, sizes of the generations",
    options: &[
        OptionSpec {
            name: SURVIVORS,
            value: Value::Extra { words: &[] },
            about: "objects that survived, were moved, died young, by type; disables concurrent collections",
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
        why: "gc:survivors ends the runtime's own walk of the heap, which events:objects and events:heap count by",
        hint: "record the two in runs of their own",
    }],
    attach: Limit::Without(&[]),
    notification_only: Limit::Without(&[LimitedPart {
        option: SURVIVORS,
        word: None,
        why: "gc:survivors follows each object, and the runtime tells the main profiler alone",
    }]),
    changes_methods: false,
    views: &["gc", "survivors"],
    keeps_last: true,
    rotates: true,
    has_code: true,
};
