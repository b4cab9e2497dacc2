//! The filter by which a query selects requests.

use clrscope_contract::request::Glob;

/// Filter of requests. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Only requests whose name matches one of these patterns; empty means all. The name is the
    /// HTTP method with the route or host.
    pub routes: Vec<Glob>,
    /// Only requests that took longer than this, in nanoseconds. For a request that had not ended,
    /// its duration so far counts.
    pub slower_than_ns: Option<u64>,
    /// Only requests that took at most this time, in nanoseconds.
    pub at_most_ns: Option<u64>,
    /// Only requests that began in this time range: from and to, in nanoseconds since the start of
    /// the run.
    pub began_ns: Option<(u64, u64)>,
    /// Whether to select only requests that failed.
    pub failed: bool,
    /// Only requests of the trace with this id, which HTTP headers write in hexadecimal digits.
    pub trace: Option<u128>,
}

impl RequestFilter {
    /// Returns the first command-line option that filters requests; `None` if all requests are
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
