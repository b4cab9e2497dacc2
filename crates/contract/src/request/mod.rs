//! Requests: the grammar shared by `-i`, the filters and the variable `CLRSCOPE_AGENT`. A request
//! says what to record.
//!
//! ```text
//! request    = part *( ";" part )
//! part       = key "=" value | flag | instrument
//! instrument = NAME [ ":" option *( "," option ) ]
//! option     = KEY [ "=" VALUE ]
//! ```
//!
//! Keys of the request itself are `out`, `include`, `exclude`, `probe`, `probe-at`, `redact`,
//! `rate`, `delay`, `duration`, `last`, `on`, `max-size`, `children`, `only`, `only-from`, `label`,
//! `log`, and flags are `just-my-code`, `join`, `trust-writable` and `no-command-line`; anything
//! else is an instrument. In values `;`, `,`, `%` and control characters are written `%XX`, so any
//! path can be given.

mod command_line;
mod error;
mod glob;
mod marker;
mod missed_line;
mod pattern;
mod programs;
mod recorded;
mod source_line;
mod syntax;
mod time;
mod trigger;

pub use command_line::without_arguments;
pub use error::RequestError;
pub use glob::Glob;
pub use marker::split_marker;
pub use missed_line::{LineHint, MissedLine};
pub use pattern::{Filter, PATTERN_HELP, Pattern, PatternError};
pub use programs::Programs;
pub use recorded::RecordedRequest;
pub use source_line::{SourceLine, file_name};
pub use syntax::{InstrumentRequest, MAX_SIZE, Request, parse_max_size, parse_size};
pub use time::{parse_duration, parse_last};
pub use trigger::Trigger;

/// The environment variable that carries a request to the agent.
pub const AGENT_VARIABLE: &str = "CLRSCOPE_AGENT";
/// The agent's class id as a notification profiler, for `CORECLR_NOTIFICATION_PROFILERS`. An agent
/// loaded by it leaves the main slot free for another profiler.
pub const NOTIFICATION_CLSID: &str = "{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A12}";
/// The agent's class id, as set in `CORECLR_PROFILER`.
pub const AGENT_CLSID: &str = "{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A11}";
