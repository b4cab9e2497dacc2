//! Which requests a query selects.

use clrscope_contract::request::Glob;

/// Selection of requests. The default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Only requests whose HTTP method with route or host matches one of these; none means all.
    pub routes: Vec<Glob>,
    /// Only requests that took longer, in nanoseconds; the duration so far counts for a request
    /// that had not ended.
    pub slower_than_ns: Option<u64>,
    /// Only requests that took no longer, in nanoseconds.
    pub at_most_ns: Option<u64>,
    /// Only requests that began in this time range, in nanoseconds since the start of the run.
    pub began_ns: Option<(u64, u64)>,
    /// Only requests that failed.
    pub failed: bool,
    /// Only requests of the trace with this id; HTTP headers write the id in hexadecimal digits.
    pub trace: Option<u128>,
}

impl RequestFilter {
    /// Returns the first command-line option that filters requests; `None` where all requests are
    /// selected.
    #[must_use]
    pub fn first_option(&self) -> Option<&'static str> {
        let given = [
            (!self.routes.is_empty(), "--request"),
            (self.slower_than_ns.is_some(), "--slower-than"),
            (self.failed, "--failed"),
            (self.trace.is_some(), "--trace"),
            // Only a report page sets these.
            (self.at_most_ns.is_some() || self.began_ns.is_some(), "a choice of requests"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }
}
