//! Common parts of the specifications of sampling instruments.

use super::spec::{OptionSpec, Value};
use super::{LEAST_LIMIT, LIMIT};

/// Option for the number of samples per second of each thread.
pub const RATE: &str = "rate";
/// Option for the memory limit in bytes.
pub const MAX: &str = "max";

/// Views that show samples.
pub(super) const VIEWS: &[&str] =
    &["summary", "functions", "tree", "flame", "callers", "callees", "threads", "timeline", "modules", "lines"];

/// The memory limit.
pub(super) const MEMORY: OptionSpec = OptionSpec {
    name: MAX,
    value: Value::Size { least: LEAST_LIMIT, most: None, default: LIMIT },
    about: "memory limit per process",
};
