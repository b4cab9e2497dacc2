//! The specification of `heap`.

use super::events::GROUPS;
use super::spec::{AT_END, Conflict, Limit, LimitedPart, Moment, OptionSpec, Spec, Value, With};

/// Option for the moments at which snapshots are taken.
pub const AT: &str = "at";

/// Option to make a collection before each snapshot.
pub const COLLECT: &str = "collect";

const fn beside_events(with: With) -> Conflict {
    Conflict {
        option: None,
        with,
        why: "heap ends the runtime's own heap walk, which events:objects and events:heap need",
        hint: "record the two in separate runs, or record events with other groups: gc shows when collections begin \
               and end",
    }
}

/// A snapshot at the end of the program, which a notification-only profiler can't take.
pub(super) const AT_PROGRAM_END: LimitedPart = LimitedPart {
    option: AT,
    word: Some(AT_END),
    why: "when the program ends, the runtime reports what holds objects only to the main profiler",
};

/// The specification of the instrument `heap`.
pub const SPEC: &Spec = &Spec {
    name: "heap",
    about: "snapshots of the heap after a full collection: objects by type, what they refer to, and what holds them",
    options: &[
        OptionSpec {
            name: AT,
            value: Value::Moments { default: &[Moment::End] },
            about: "when: at the end, at times after the start, once the process has this much in memory (2GiB), or \
                    only by 'clrscope heap PID'",
        },
        OptionSpec {
            name: COLLECT,
            value: Value::Switch { default: true },
            about: "what a full collection leaves; off shows the heap as it was, garbage included",
        },
    ],
    rules: &[],
    conflicts: &[
        beside_events(With::Member("events", GROUPS, "objects")),
        beside_events(With::Member("events", GROUPS, "heap")),
    ],
    changes_methods: false,
    views: &["summary", "heap", "roots", "dominators", "waste", "pending", "heap-diff"],
    attach: Limit::Without(&[]),
    notification_only: Limit::Without(&[LimitedPart {
        option: COLLECT,
        word: Some("off"),
        why: "heap:collect=off tracks where objects move, which the runtime reports only to the main profiler",
    }]),
    keeps_last: false,
    rotates: false,
    has_code: false,
};
