//! Which requests are meant.

use clrscope_contract::request::Glob;

use super::Request;

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

impl RequestFilter {
    /// Whether a request is meant.
    pub(super) fn matches(&self, request: &Request<'_>) -> bool {
        let is_slower = |least| request.duration_ns.is_some_and(|took| took > least);
        Glob::any_matches(&self.routes, &request.route)
            && self.slower_than_ns.is_none_or(is_slower)
            && (!self.failed || request.has_failed())
            && self.trace.is_none_or(|wanted| request.trace.is_some_and(|ids| ids.trace == wanted))
    }
}
