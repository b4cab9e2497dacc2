//! Requests selected in a served page: the page then shows only work done for them.

use clrscope_analysis::RequestFilter;
use clrscope_contract::request::Glob;

use super::encoded::percent_decoded;

/// The requests selected in the page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ChosenRequests {
    /// HTTP method and route template; `None` for all routes.
    pub route: Option<String>,
    /// Selects only requests that took longer than this, in nanoseconds.
    pub slower_ns: Option<u64>,
    /// Selects only requests that took at most this long, in nanoseconds.
    pub at_most_ns: Option<u64>,
    /// Selects only requests that began between these times, in nanoseconds since the start of the
    /// run.
    pub began_ns: Option<(u64, u64)>,
}

impl ChosenRequests {
    /// Sets a field from a parameter of an address; `None` if the parameter is invalid.
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
