//! Providers that have counters, and what a session asks them for.

use clr_profiler::ProviderConfig;
use clrscope_agent_base::event_pipe::{MARKS, XUNIT};

/// The event source that publishes values of meters.
pub(super) const METERS: &str = "System.Diagnostics.Metrics";

/// Event sources of the framework with counters. Most make them once there is a listener, so each
/// is asked by its name. Those of the last line are packages that could not be run for tests.
pub(super) const SOURCES: &[&str] = &[
    "System.Runtime",
    "System.Net.Http",
    "System.Net.Sockets",
    "System.Net.NameResolution",
    "System.Net.Security",
    "Microsoft.AspNetCore.Hosting",
    "Microsoft-AspNetCore-Server-Kestrel",
    "Microsoft.AspNetCore.Http.Connections",
    "Microsoft.Data.SqlClient.EventSource",
    "Microsoft.EntityFrameworkCore",
    "Npgsql",
];

/// Beginnings of the names of all other event sources of the framework. Some of them do something
/// else as soon as anybody listens: `Microsoft-Diagnostics-DiagnosticSource` makes activities,
/// `System.Threading.Tasks.TplEventSource` gives tasks ids.
const FRAMEWORK: &[&str] = &["Microsoft-", "Microsoft.", "System.", "Private.", "dotnet-"];

/// Event sources that have no counters, by their name: further sessions that ask for one would
/// have each of its events delivered twice.
const WITHOUT_COUNTERS: &[&str] = &[MARKS, XUNIT];

/// Critical events alone: event sources publish counters at whatever level is asked for.
const CRITICAL: u32 = 1;
/// A keyword that no event has: events of sources are left out, but those without any keyword that
/// are critical; counters have none.
const NO_EVENTS: u64 = 1 << 47;

/// Keywords of `System.Diagnostics.Metrics`: values, and which instruments there are.
const VALUES_AND_NAMES: u64 = 0x2 | 0x4;
const INFORMATIONAL: u32 = 4;

/// Seconds between two values of event counters: next to one second, and told from what anybody
/// else asks for.
pub(super) const INTERVAL_S: &str = "1.001";

/// How the session of meters is shared with other tools (`MetricsEventSource`): those that ask for
/// the same interval and limits keep running alongside us. These are the defaults of tools.
const SHARED: &str = "SessionId=SHARED;ClientId=clrscope;RefreshInterval=1;MaxTimeSeries=1000;MaxHistograms=20";

/// Whether an event source may be one of the program's own.
pub(super) fn is_own(name: &str) -> bool {
    let is_framework = FRAMEWORK.iter().any(|start| name.starts_with(start));
    !is_framework && !WITHOUT_COUNTERS.contains(&name) && can_be_asked(name)
}

/// Whether a name can stand in the arguments of a session.
pub(super) fn can_be_asked(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|c| c.is_control() || ",;=\"\\".contains(c))
}

/// What is asked of an event source.
pub(super) fn source(name: &str) -> ProviderConfig {
    let filter = Some(format!("EventCounterIntervalSec={INTERVAL_S}"));
    ProviderConfig { name: name.to_owned(), keywords: NO_EVENTS, level: CRITICAL, filter }
}

/// What is asked about meters: the values of these, and the names of all.
pub(super) fn meters(names: &[String]) -> ProviderConfig {
    let metrics = if names.is_empty() { String::new() } else { format!(";Metrics={}", names.join(",")) };
    let filter = Some(format!("{SHARED}{metrics}"));
    ProviderConfig { name: METERS.to_owned(), keywords: VALUES_AND_NAMES, level: INFORMATIONAL, filter }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_sources_of_the_framework_are_asked_by_name_alone() {
        assert!(["MyCompany", "Npgsql2", "Shop.Counters"].into_iter().all(is_own));
        let others =
            ["Microsoft-Diagnostics-DiagnosticSource", "System.Buffers.ArrayPoolEventSource", "", "a;b", "a=b"];
        assert!(!others.into_iter().any(is_own));
    }

    #[test]
    fn meters_are_asked_for_together() {
        let filter = meters(&["Shop".into(), "System.Runtime".into()]).filter.expect("arguments");
        assert!(filter.ends_with(";Metrics=Shop,System.Runtime") && filter.starts_with("SessionId=SHARED;"));
        assert!(!meters(&[]).filter.expect("arguments").contains("Metrics="));
    }
}
