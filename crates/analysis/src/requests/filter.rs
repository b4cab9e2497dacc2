//! Checks whether a request passes the filter.

use clrscope_contract::request::Glob;

use super::Request;
use crate::request_filter::RequestFilter;

impl RequestFilter {
    /// Whether a request passes the filter.
    pub(super) fn matches(&self, request: &Request<'_>) -> bool {
        let is_slower = |least| request.duration_ns.is_some_and(|took| took > least);
        let is_at_most = |most| request.duration_ns.is_some_and(|took| took <= most);
        Glob::any_matches(&self.routes, &request.route)
            && self.slower_than_ns.is_none_or(is_slower)
            && self.at_most_ns.is_none_or(is_at_most)
            && self.began_ns.is_none_or(|(first, last)| (first..=last).contains(&request.time_ns))
            && (!self.failed || request.has_failed())
            && self.trace.is_none_or(|wanted| request.trace.is_some_and(|ids| ids.trace == wanted))
    }
}
