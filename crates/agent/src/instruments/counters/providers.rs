//! Providers that have counters, and the arguments that a session passes to them.

use clr_profiler::ProviderConfig;
use clrscope_agent_base::event_pipe::{MARKS, XUNIT};
use clrscope_contract::instruments::counters::can_be_asked;

/// The event source that publishes values of meters.
pub(super) const METERS: &str = "System.Diagnostics.Metrics";

/// The event source that the runtime creates first, before the program's own code runs. Since .NET
/// 9 it is also the name of a meter.
pub(super) const OF_RUNTIME: &str = "System.Runtime";

/// Event sources of the framework with counters. Most create their counters once there is a
/// listener, so each is requested by name. The event sources of the last line are in packages that
/// could not be run for tests.
pub(super) const SOURCES: &[&str] = &[
    OF_RUNTIME,
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

/// Beginnings of the names of all other event sources of the framework. Some of them do other work
/// as soon as there is a listener: `Microsoft-Diagnostics-DiagnosticSource` makes activities,
/// `System.Threading.Tasks.TplEventSource` assigns ids to tasks.
const FRAMEWORK: &[&str] = &["Microsoft-", "Microsoft.", "System.", "Private.", "dotnet-"];

/// Names of event sources without counters: a further session that asks for one would deliver each
/// of its events twice.
const WITHOUT_COUNTERS: &[&str] = &[MARKS, XUNIT];

/// Critical events only: event sources publish counters at every level.
const CRITICAL: u32 = 1;
/// A keyword that no event has. It excludes all events of sources except critical events without a
/// keyword. Counters have no keyword.
const NO_EVENTS: u64 = 1 << 47;

/// Keywords of `System.Diagnostics.Metrics`: values, and which instruments there are.
const VALUES: u64 = 0x2;
const NAMES: u64 = 0x4;
const INFORMATIONAL: u32 = 4;

/// Seconds between two values of event counters. It is close to one second, and differs from the
/// intervals that other listeners ask for.
pub(super) const INTERVAL_S: &str = "1.001";

/// How the session of meters is shared with other tools (`MetricsEventSource`): tools that ask for
/// the same interval and limits keep running alongside us. These are the defaults of tools.
const SHARED: &str = "SessionId=SHARED;ClientId=clrscope;RefreshInterval=1;MaxTimeSeries=1000;MaxHistograms=20";

/// Whether an event source may belong to the program itself.
pub(super) fn is_own(name: &str) -> bool {
    let is_framework = FRAMEWORK.iter().any(|start| name.starts_with(start));
    !is_framework && !WITHOUT_COUNTERS.contains(&name) && can_be_asked(name)
}

/// The provider configuration for an event source.
pub(super) fn source(name: &str) -> ProviderConfig {
    let filter = Some(format!("EventCounterIntervalSec={INTERVAL_S}"));
    ProviderConfig { name: name.to_owned(), keywords: NO_EVENTS, level: CRITICAL, filter }
}

/// The provider configuration for meters: values of the named meters, and the names of all.
pub(super) fn meters(names: &[String]) -> ProviderConfig {
    meters_with(VALUES | NAMES, names)
}

/// The provider configuration for only the named meters.
pub(super) fn only_meters(names: &[String]) -> ProviderConfig {
    meters_with(VALUES, names)
}

fn meters_with(keywords: u64, names: &[String]) -> ProviderConfig {
    let metrics = if names.is_empty() { String::new() } else { format!(";Metrics={}", names.join(",")) };
    let filter = Some(format!("{SHARED}{metrics}"));
    ProviderConfig { name: METERS.to_owned(), keywords, level: INFORMATIONAL, filter }
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
    fn of_chosen_meters_no_other_names_are_asked_for() {
        let wanted = only_meters(&["Shop".into()]);
        assert_eq!((wanted.keywords, wanted.filter.expect("arguments").ends_with(";Metrics=Shop")), (VALUES, true));
    }

    #[test]
    fn meters_are_asked_for_together() {
        let filter = meters(&["Shop".into(), "System.Runtime".into()]).filter.expect("arguments");
        assert!(filter.ends_with(";Metrics=Shop,System.Runtime") && filter.starts_with("SessionId=SHARED;"));
        assert!(!meters(&[]).filter.expect("arguments").contains("Metrics="));
    }
}
