//! Which requests a query means.

use clrscope_contract::request::Glob;

/// Selection of requests. The default is all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Only those whose method with route or host matches one of these; none means all.
    pub routes: Vec<Glob>,
    /// Only those that took longer, in nanoseconds; of one that had not ended, so far.
    pub slower_than_ns: Option<u64>,
    /// Only those that took no longer, in nanoseconds.
    pub at_most_ns: Option<u64>,
    /// Only those that began in this time, each in nanoseconds since the start of the run.
    pub began_ns: Option<(u64, u64)>,
    /// Only those that failed.
    pub failed: bool,
    /// Only those of the trace with this number, which headers have as hexadecimal digits.
    pub trace: Option<u128>,
}

impl RequestFilter {
    /// Returns the first option of the command line by which requests are chosen; `None` where all
    /// are meant.
    #[must_use]
    pub fn first_option(&self) -> Option<&'static str> {
        let given = [
            (!self.routes.is_empty(), "--request"),
            (self.slower_than_ns.is_some(), "--slower-than"),
            (self.failed, "--failed"),
            (self.trace.is_some(), "--trace"),
            // Only a page has these.
            (self.at_most_ns.is_some() || self.began_ns.is_some(), "a choice of requests"),
        ];
        given.into_iter().find(|(is_given, _)| *is_given).map(|(_, option)| option)
    }
}
