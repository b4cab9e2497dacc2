//! Which requests a query means.

use clrscope_contract::request::Glob;

/// Selection of requests. The default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Only those whose method with route or host matches one of these; none means all.
    pub routes: Vec<Glob>,
    /// Only those that took longer, in nanoseconds; of one that had not ended, so far.
    pub slower_than_ns: Option<u64>,
    /// Only those that failed.
    pub failed: bool,
    /// Only those of the trace with this number, which headers have as hexadecimal digits.
    pub trace: Option<u128>,
}
