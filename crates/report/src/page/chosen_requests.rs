//! Requests that were chosen in a served page: only what was done for them is shown.

use clrscope_analysis::RequestFilter;
use clrscope_contract::request::Glob;

use super::encoded::percent_decoded;

/// Requests that were chosen in the page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ChosenRequests {
    /// Method with the template of the route; `None` for those of all.
    pub route: Option<String>,
    /// Longer than this, nanoseconds.
    pub slower_ns: Option<u64>,
    /// No longer than this, nanoseconds.
    pub at_most_ns: Option<u64>,
    /// Begun in this time, each nanoseconds since the start of the run.
    pub began_ns: Option<(u64, u64)>,
}

impl ChosenRequests {
    /// Sets what a part of an address says; `None` where it makes no sense.
    pub(super) fn set_parameter(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "request" => self.route = Some(percent_decoded(value)?),
            "slower" => self.slower_ns = Some(value.parse().ok()?),
            "faster" => self.at_most_ns = Some(value.parse().ok()?),
            "began" => {
                let (first, last) = value.split_once('.')?;
                self.began_ns = Some((first.parse().ok()?, last.parse().ok()?));
            }
            _ => return None,
        }
        Some(())
    }

    pub(super) fn filter(&self) -> RequestFilter {
        RequestFilter {
            routes: self.route.iter().map(|route| Glob::new(route)).collect(),
            slower_than_ns: self.slower_ns,
            at_most_ns: self.at_most_ns,
            began_ns: self.began_ns,
            ..RequestFilter::default()
        }
    }
}
