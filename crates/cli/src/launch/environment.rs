//! The variables that make the runtime load the agent, and those that keep it from doing so.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clrscope_contract::request::{AGENT_CLSID, AGENT_VARIABLE, Request};

/// Variable by which the runtime's compiler keeps where it put inlined methods (`clrconfignames.h`); read at the start alone.
const RICH_DEBUG_INFO: &str = "DOTNET_RichDebugInfo";

/// Variables by which every .NET program that gets them loads the agent.
pub(crate) fn agent_variables(agent: &Path, request: &Request) -> Vec<(String, OsString)> {
    let mut variables = profiler_variables(agent, AGENT_CLSID);
    variables.push((AGENT_VARIABLE.to_owned(), OsString::from(request.to_string())));
    if request.inlined_exact {
        variables.push((RICH_DEBUG_INFO.to_owned(), OsString::from("1")));
    }
    variables
}

/// Variables by which every .NET program that gets them loads a profiler.
///
/// The runtime reads `CORECLR_` names; .NET 11 and later also `DOTNET_` ones. The path is given
/// under the name for 64 bits too, because a value left there by another profiler would win.
pub(crate) fn profiler_variables(library: &Path, class_id: &str) -> Vec<(String, OsString)> {
    let mut variables = Vec::new();
    for prefix in ["CORECLR", "DOTNET"] {
        let mut set = |name: &str, value: &OsStr| variables.push((format!("{prefix}_{name}"), value.to_owned()));
        set("ENABLE_PROFILING", OsStr::new("1"));
        set("PROFILER", OsStr::new(class_id));
        set("PROFILER_PATH", library.as_os_str());
        set("PROFILER_PATH_64", library.as_os_str());
    }
    variables
}

/// Lists of profilers that only listen.
const BESIDE_US: [&str; 2] = ["CORECLR_NOTIFICATION_PROFILERS_64", "CORECLR_NOTIFICATION_PROFILERS"];
/// Variable that switches profiling off when it is 0.
const SWITCHES: [&str; 4] = [
    "DOTNET_EnableDiagnostics",
    "DOTNET_EnableDiagnostics_Profiler",
    "COMPlus_EnableDiagnostics",
    "COMPlus_EnableDiagnostics_Profiler",
];

/// Every variable that makes the runtime load a profiler.
pub(crate) fn profiler_names() -> Vec<String> {
    let words = ["ENABLE_PROFILING", "PROFILER", "PROFILER_PATH", "PROFILER_PATH_64"];
    let of = |prefix: &str| words.map(|word| format!("{prefix}_{word}"));
    ["CORECLR", "DOTNET"].into_iter().flat_map(of).chain(BESIDE_US.map(str::to_owned)).collect()
}

/// A variable of the environment that concerns profiling.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// Another profiler would have been loaded; the variable that names it and its value.
    OtherProfiler(String, String),
    /// Other profilers will be loaded as well, as those that only listen; the variable and its value.
    BesideUs(&'static str, String),
    /// Profiling is switched off by this variable.
    Disabled(&'static str),
}

/// Looks for obstacles in an environment given as a lookup.
pub(crate) fn obstacles(get: impl Fn(&str) -> Option<OsString>) -> Vec<Obstacle> {
    let mut found = Vec::new();
    let other = ["CORECLR", "DOTNET"].iter().find_map(|prefix| other_profiler(prefix, &get));
    found.extend(other.map(|(name, value)| Obstacle::OtherProfiler(name, value)));
    found.extend(BESIDE_US.iter().find_map(|name| {
        let value = get(name).filter(|value| !value.is_empty())?;
        Some(Obstacle::BesideUs(name, value.to_string_lossy().into_owned()))
    }));
    let off = SWITCHES.iter().filter(|name| get(name).is_some_and(|value| is_zero(&value)));
    found.extend(off.map(|name| Obstacle::Disabled(name)));
    found
}

/// The variable of our own environment that switches profiling off, if one does.
pub(crate) fn disabled_by() -> Option<&'static str> {
    obstacles(|name| std::env::var_os(name)).into_iter().find_map(|obstacle| match obstacle {
        Obstacle::Disabled(name) => Some(name),
        Obstacle::OtherProfiler(..) | Obstacle::BesideUs(..) => None,
    })
}

/// The runtime reads a hexadecimal number.
fn is_zero(value: &OsStr) -> bool {
    let text = value.to_string_lossy();
    let digits = text.trim().trim_start_matches("0x");
    !digits.is_empty() && digits.chars().all(|digit| digit == '0')
}

fn other_profiler(prefix: &str, get: &impl Fn(&str) -> Option<OsString>) -> Option<(String, String)> {
    get(&format!("{prefix}_ENABLE_PROFILING")).filter(|value| value == "1")?;
    let id = get(&format!("{prefix}_PROFILER"))?;
    if id.is_empty() || id.eq_ignore_ascii_case(AGENT_CLSID) {
        return None;
    }
    let by_path = ["PROFILER_PATH_64", "PROFILER_PATH"].iter().find_map(|name| {
        let name = format!("{prefix}_{name}");
        get(&name).filter(|value| !value.is_empty()).map(|value| (name, value))
    });
    let (name, value) = by_path.unwrap_or((format!("{prefix}_PROFILER"), id));
    Some((name, value.to_string_lossy().into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Vec<Obstacle> {
        obstacles(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value)))
    }

    #[test]
    fn another_profiler_is_seen_only_when_it_would_load() {
        assert_eq!(found(&[("CORECLR_PROFILER", "{1}")]), []);
        assert_eq!(found(&[("CORECLR_ENABLE_PROFILING", "1"), ("CORECLR_PROFILER", AGENT_CLSID)]), []);
        let both =
            [("CORECLR_ENABLE_PROFILING", "1"), ("CORECLR_PROFILER", "{1}"), ("CORECLR_PROFILER_PATH", "/opt/apm.so")];
        assert_eq!(
            found(&both),
            [Obstacle::OtherProfiler("CORECLR_PROFILER_PATH".to_owned(), "/opt/apm.so".to_owned())]
        );
    }

    #[test]
    fn switched_off_diagnostics_are_seen() {
        assert_eq!(found(&[("DOTNET_EnableDiagnostics", "0")]), [Obstacle::Disabled("DOTNET_EnableDiagnostics")]);
        assert_eq!(found(&[("DOTNET_EnableDiagnostics", "1")]), []);
        assert_eq!(found(&[("COMPlus_EnableDiagnostics", "0x00")]), [Obstacle::Disabled("COMPlus_EnableDiagnostics")]);
    }

    #[test]
    fn profilers_that_only_listen_are_seen() {
        let name = "CORECLR_NOTIFICATION_PROFILERS";
        assert_eq!(found(&[(name, "/opt/x.so={1}")]), [Obstacle::BesideUs(name, "/opt/x.so={1}".to_owned())]);
        assert_eq!(found(&[(name, "")]), []);
    }

    #[test]
    fn every_name_a_runtime_may_read_is_set() {
        let request = Request { out: Some("/tmp/x.clrs.d".to_owned()), ..Request::default() };
        let variables = agent_variables(Path::new("/a.so"), &request);
        let value =
            |name: &str| variables.iter().find(|(n, _)| n == name).map(|(_, v)| v.to_string_lossy().into_owned());
        for prefix in ["CORECLR", "DOTNET"] {
            assert_eq!(value(&format!("{prefix}_ENABLE_PROFILING")).as_deref(), Some("1"));
            assert_eq!(value(&format!("{prefix}_PROFILER")).as_deref(), Some(AGENT_CLSID));
            assert_eq!(value(&format!("{prefix}_PROFILER_PATH_64")).as_deref(), Some("/a.so"));
        }
        assert_eq!(value(AGENT_VARIABLE).as_deref(), Some("out=/tmp/x.clrs.d"));
    }
}
