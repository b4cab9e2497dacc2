//! The specification of `counters`.

use super::spec::{Limit, OptionSpec, Spec, Value};
use super::{LEAST_LIMIT, LIMIT};

/// Option for the memory limit in bytes.
pub const MAX: &str = "max";

/// Option that limits the recording to meters with these names.
pub const METERS: &str = "meters";

/// Whether a name can be part of a session's arguments: it must contain none of the separators of
/// the runtime's `MetricsEventSource`.
#[must_use]
pub fn can_be_asked(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|c| c.is_control() || ",;=\"\\".contains(c))
}

/// Whether a name can stand among the names of an option, and be asked for.
fn is_meter_name(name: &str) -> bool {
    can_be_asked(name) && !name.contains('+')
}

/// The specification of the instrument `counters`.
pub const SPEC: &Spec = &Spec {
    name: "counters",
    about: "event counters and meters of the runtime, ASP.NET Core, HttpClient and the program's own, each second",
    options: &[
        OptionSpec {
            name: METERS,
            value: Value::Names { of: "meters, such as System.Net.Http", is_name: is_meter_name },
            about: "only these meters; event counters are always recorded",
        },
        OptionSpec {
            name: MAX,
            value: Value::Size { least: LEAST_LIMIT, most: None, default: LIMIT },
            about: "memory limit per process",
        },
    ],
    rules: &[],
    conflicts: &[],
    attach: Limit::Without(&[]),
    notification_only: Limit::Without(&[]),
    changes_methods: false,
    views: &["counters"],
    keeps_last: true,
    rotates: true,
    has_code: false,
};
