//! The environment variables that make the runtime load the agent, and those that prevent it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clrscope_contract::request::{AGENT_CLSID, AGENT_VARIABLE, NOTIFICATION_CLSID, Request};

/// Variable that makes the JIT compiler keep the places of inlined methods (`clrconfignames.h`);
/// the runtime reads it only at its start.
const RICH_DEBUG_INFO: &str = "DOTNET_RichDebugInfo";

/// Variables that make every .NET program that has them load the agent.
pub(crate) fn agent_variables(agent: &Path, request: &Request) -> Vec<(String, OsString)> {
    with_request(profiler_variables(agent, AGENT_CLSID), request)
}

/// Variables that make every .NET program that has them load the agent and the other profilers of
/// [`notification_list`]. The program keeps its main profiler.
pub(crate) fn notification_variables(list: &(&'static str, OsString), request: &Request) -> Vec<(String, OsString)> {
    let variables = [(NOTIFICATION_SWITCH, OsString::from("1")), (list.0, list.1.clone())];
    with_request(variables.map(|(name, value)| (name.to_owned(), value)).to_vec(), request)
}

fn with_request(mut variables: Vec<(String, OsString)>, request: &Request) -> Vec<(String, OsString)> {
    variables.push((AGENT_VARIABLE.to_owned(), OsString::from(request.to_string())));
    if request.inlined_exact {
        variables.push((RICH_DEBUG_INFO.to_owned(), OsString::from("1")));
    }
    variables
}

/// Variables that make every .NET program that has them load a profiler.
///
/// The runtime reads `CORECLR_` names; .NET 11 and later also `DOTNET_` ones. The path is also set
/// under the 64-bit name, because a value that another profiler left there would take precedence.
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

/// Variable that must be 1 for the runtime to load notification-only profilers.
const NOTIFICATION_SWITCH: &str = "CORECLR_ENABLE_NOTIFICATION_PROFILERS";
/// Variables with lists of notification-only profilers, `PATH={GUID};...`; the runtime reads the
/// first that is set.
const BESIDE_US: [&str; 2] = ["CORECLR_NOTIFICATION_PROFILERS_64", "CORECLR_NOTIFICATION_PROFILERS"];
/// Variables that switch profiling off when they are 0.
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
    /// Another profiler has the main slot.
    OtherProfiler(OtherProfiler),
    /// Other profilers will also be loaded, as notification-only profilers. Holds the variable that
    /// names them, and its value.
    BesideUs(&'static str, String),
    /// Profiling is switched off by this variable.
    Disabled(&'static str),
}

/// A profiler that an environment names for the main slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OtherProfiler {
    /// Prefix of the profiler's variables: `CORECLR` or `DOTNET`.
    prefix: &'static str,
    /// Class id as in the environment.
    class_id: String,
    /// The variable that names the profiler's library; if there is none, the variable that names
    /// its class.
    pub(crate) variable: String,
    /// The value of that variable.
    pub(crate) value: String,
}

/// Profilers that many production systems use: class id, a part of the library's name, and the
/// product's name. The ids are from the installation instructions of each.
const KNOWN: [(&str, &str, &str); 4] = [
    ("{918728DD-259F-4A6A-AC2B-B85E1B658318}", "OpenTelemetry.AutoInstrumentation", "OpenTelemetry"),
    ("{846F5F1C-F9AE-4B07-969E-05C26BC060D8}", "Datadog.", "Datadog"),
    ("{36032161-FFC0-4B61-B559-F6C5D41BAE5A}", "libNewRelicProfiler", "New Relic"),
    ("{FA65FE15-F085-4681-9B20-95E04F6C03CC}", "libelastic_apm_profiler", "Elastic APM"),
];

impl OtherProfiler {
    /// Finds the profiler that an environment, given as a lookup, names for the main slot, if it is
    /// not ours.
    pub(crate) fn find(get: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        ["CORECLR", "DOTNET"].into_iter().find_map(|prefix| other_profiler(prefix, &get))
    }

    /// Name of the profiler, if it is a well-known one.
    pub(crate) fn name(&self) -> Option<&'static str> {
        let is_known = |(id, part, _): &&(&str, &str, &str)| {
            id.eq_ignore_ascii_case(&self.class_id)
                || Path::new(&self.value).file_name().is_some_and(|file| file.to_string_lossy().contains(part))
        };
        KNOWN.iter().find(is_known).map(|(.., name)| *name)
    }

    /// The profiler in a sentence: its name, and its variable in the environment.
    pub(crate) fn in_words(&self) -> String {
        let value = crate::errors::quoted(&self.value);
        self.name().map_or_else(|| value.clone(), |name| format!("{name} ({value})"))
    }

    /// The variable that enables the profiler.
    pub(crate) fn switch(&self) -> String {
        format!("{}_ENABLE_PROFILING", self.prefix)
    }
}

/// The variable and the value that add the agent to the notification-only profilers of an
/// environment, given as a lookup. Listed profilers stay in the list if they would be loaded
/// without us.
pub(crate) fn notification_list(agent: &str, get: impl Fn(&str) -> Option<OsString>) -> (&'static str, OsString) {
    let listed = BESIDE_US.into_iter().find_map(|name| Some((name, get(name).filter(|value| !value.is_empty())?)));
    let (name, value) = listed.unwrap_or((BESIDE_US[1], OsString::new()));
    let others = get(NOTIFICATION_SWITCH).filter(|value| is_one(value)).map_or_else(OsString::new, |_| value);
    // From .NET 9 on the runtime loads only entries that end with a semicolon. The agent comes
    // first, so that it does not change whether the last of the other entries is loaded.
    let mut list = OsString::from(format!("{agent}={NOTIFICATION_CLSID};"));
    let others = others.to_string_lossy().into_owned();
    for entry in others.split_inclusive(';').filter(|entry| !is_ours(entry)) {
        list.push(entry);
    }
    (name, list)
}

/// The agent in the list of notification-only profilers of an environment, given as a lookup.
pub(crate) fn listed_agent(get: impl Fn(&str) -> Option<OsString>) -> Option<(&'static str, PathBuf)> {
    get(NOTIFICATION_SWITCH).filter(|value| is_one(value))?;
    let (name, value) = BESIDE_US.into_iter().find_map(|name| Some((name, get(name)?)))?;
    let value = value.to_string_lossy().into_owned();
    let entry = value.split(';').find(|entry| is_ours(entry))?;
    Some((name, PathBuf::from(entry.split_once('=')?.0)))
}

/// Whether an entry of a list is the agent.
fn is_ours(entry: &str) -> bool {
    entry.split_once('=').is_some_and(|(_, class)| class.trim_end_matches(';').eq_ignore_ascii_case(NOTIFICATION_CLSID))
}

/// Looks for obstacles in an environment given as a lookup.
pub(crate) fn obstacles(get: impl Fn(&str) -> Option<OsString>) -> Vec<Obstacle> {
    let mut found = Vec::new();
    found.extend(OtherProfiler::find(&get).map(Obstacle::OtherProfiler));
    let are_listed_loaded = get(NOTIFICATION_SWITCH).is_some_and(|value| is_one(&value));
    found.extend(BESIDE_US.iter().filter(|_| are_listed_loaded).find_map(|name| {
        let value = get(name).filter(|value| !value.is_empty() && listed_agent(&get).is_none())?;
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

/// Whether the value is 0 for the runtime, which reads a hexadecimal number.
fn is_zero(value: &OsStr) -> bool {
    let text = value.to_string_lossy();
    let digits = text.trim().trim_start_matches("0x");
    !digits.is_empty() && digits.chars().all(|digit| digit == '0')
}

/// Whether the value is 1 for the runtime.
fn is_one(value: &OsStr) -> bool {
    let text = value.to_string_lossy();
    u64::from_str_radix(text.trim().trim_start_matches("0x"), 16) == Ok(1)
}

fn other_profiler(prefix: &'static str, get: &impl Fn(&str) -> Option<OsString>) -> Option<OtherProfiler> {
    get(&format!("{prefix}_ENABLE_PROFILING")).filter(|value| value == "1")?;
    let id = get(&format!("{prefix}_PROFILER"))?;
    if id.is_empty() || id.eq_ignore_ascii_case(AGENT_CLSID) {
        return None;
    }
    let by_path = ["PROFILER_PATH_64", "PROFILER_PATH"].iter().find_map(|name| {
        let name = format!("{prefix}_{name}");
        get(&name).filter(|value| !value.is_empty()).map(|value| (name, value))
    });
    let (variable, value) = by_path.unwrap_or((format!("{prefix}_PROFILER"), id.clone()));
    let text = |value: OsString| value.to_string_lossy().into_owned();
    Some(OtherProfiler { prefix, class_id: text(id), variable, value: text(value) })
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
        let [Obstacle::OtherProfiler(other)] = &found(&both)[..] else { panic!("{:?}", found(&both)) };
        assert_eq!((other.variable.as_str(), other.value.as_str()), ("CORECLR_PROFILER_PATH", "/opt/apm.so"));
        assert_eq!((other.name(), other.in_words()), (None, "'/opt/apm.so'".to_owned()));
        assert_eq!(other.switch(), "CORECLR_ENABLE_PROFILING");
    }

    #[test]
    fn switched_off_diagnostics_are_seen() {
        assert_eq!(found(&[("DOTNET_EnableDiagnostics", "0")]), [Obstacle::Disabled("DOTNET_EnableDiagnostics")]);
        assert_eq!(found(&[("DOTNET_EnableDiagnostics", "1")]), []);
        assert_eq!(found(&[("COMPlus_EnableDiagnostics", "0x00")]), [Obstacle::Disabled("COMPlus_EnableDiagnostics")]);
    }

    #[test]
    fn profilers_that_only_listen_are_seen() {
        let (name, on) = ("CORECLR_NOTIFICATION_PROFILERS", (NOTIFICATION_SWITCH, "1"));
        assert_eq!(found(&[(name, "/opt/x.so={1}"), on]), [Obstacle::BesideUs(name, "/opt/x.so={1}".to_owned())]);
        assert_eq!(found(&[(name, ""), on]), []);
        assert_eq!(found(&[(name, "/opt/x.so={1}")]), [], "the runtime loads none of them");
    }

    fn list(variables: &[(&str, &str)]) -> (&'static str, String) {
        let get = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        let (name, value) = notification_list("/a.so", get);
        (name, value.to_string_lossy().into_owned())
    }

    #[test]
    fn the_agent_is_listed_with_those_that_are_loaded_without_it() {
        let (plain, wide) = ("CORECLR_NOTIFICATION_PROFILERS", "CORECLR_NOTIFICATION_PROFILERS_64");
        let (ours, on) = (format!("/a.so={NOTIFICATION_CLSID};"), (NOTIFICATION_SWITCH, "1"));
        assert_eq!(list(&[]), (plain, ours.clone()));
        assert_eq!(list(&[(plain, "/x.so={1}")]), (plain, ours.clone()), "it is not loaded without us");
        assert_eq!(list(&[(plain, "/x.so={1}"), on]), (plain, format!("{ours}/x.so={{1}}")));
        let both = [(plain, "/x.so={1}"), (wide, "/y.so={2};"), on];
        assert_eq!(list(&both), (wide, format!("{ours}/y.so={{2}};")));
        let old = format!("/old.so={NOTIFICATION_CLSID};/x.so={{1}}");
        assert_eq!(list(&[(plain, &old), on]), (plain, format!("{ours}/x.so={{1}}")));
        let get = |name: &str| [(plain, old.as_str()), on].iter().find(|(n, _)| *n == name).map(|(_, v)| v.into());
        assert_eq!(listed_agent(get), Some((plain, PathBuf::from("/old.so"))));
    }

    #[test]
    fn known_profilers_are_named_by_class_or_by_library() {
        let named = |id: &str, path: &str| {
            let variables = [("ENABLE_PROFILING", "1"), ("PROFILER", id), ("PROFILER_PATH", path)];
            let get = |name: &str| {
                let name = name.strip_prefix("CORECLR_")?;
                variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value))
            };
            OtherProfiler::find(get).expect("a profiler").name()
        };
        assert_eq!(named("{918728dd-259f-4a6a-ac2b-b85e1b658318}", "/x.so"), Some("OpenTelemetry"));
        assert_eq!(named("{1}", "/opt/datadog/linux-x64/Datadog.Trace.ClrProfiler.Native.so"), Some("Datadog"));
        assert_eq!(named("{1}", "/app/newrelic/libNewRelicProfiler.so"), Some("New Relic"));
        assert_eq!(named("{1}", "/opt/Datadog.x/libmine.so"), None);
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
