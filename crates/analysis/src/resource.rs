//! A process as an OpenTelemetry resource: its service, host and container, and its labels.

use std::borrow::Cow;

use clrscope_contract::labels::{SERVICE_NAME, is_fact};
use clrscope_recording::model::{Process, Recording};

use crate::programs::Program;

/// Keys of the attributes known without labels, in output order.
pub const RESOURCE_KEYS: [&str; 11] = [
    SERVICE_NAME,
    SERVICE_VERSION,
    HOST_NAME,
    CONTAINER_ID,
    PROCESS_ID,
    COMMAND_LINE,
    RUNTIME_NAME,
    RUNTIME_VERSION,
    RUNTIME_DESCRIPTION,
    PROCESSORS,
    RECORDING_ID,
];

const SERVICE_VERSION: &str = "service.version";
const HOST_NAME: &str = "host.name";
const CONTAINER_ID: &str = "container.id";
const PROCESS_ID: &str = "process.pid";
const COMMAND_LINE: &str = "process.command_line";
const RUNTIME_NAME: &str = "process.runtime.name";
const RUNTIME_VERSION: &str = "process.runtime.version";
const RUNTIME_DESCRIPTION: &str = "process.runtime.description";
const PROCESSORS: &str = "clrscope.processors";
const RECORDING_ID: &str = "clrscope.recording.id";

/// Keys of the label that names the environment: the current key and the older one.
const ENVIRONMENT: [&str; 2] = ["deployment.environment.name", "deployment.environment"];

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// A number.
    Number(u64),
}

impl AttributeValue<'_> {
    /// Returns the value as text.
    #[must_use]
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Number(number) => Cow::Owned(number.to_string()),
        }
    }
}

/// Attributes of a process. Each key occurs once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resource<'a>(Vec<(&'a str, AttributeValue<'a>)>);

impl<'a> Resource<'a> {
    /// Returns the resource that describes a process of a recording. Unknown facts have no
    /// attribute. A label replaces a detected value, unless the key belongs to one of clrscope's
    /// own facts.
    #[must_use]
    pub fn from_process(recording: &'a Recording, process: &'a Process) -> Self {
        let mut all = Self::default();
        let identity = &process.identity;
        let found = |key: &'static str, text: &'a str| (key, AttributeValue::Text(Cow::Borrowed(text)));
        let runtime = process.runtime.strip_prefix(".NET").unwrap_or_default().trim_start();
        for (key, value) in [
            found(SERVICE_NAME, service_name(process)),
            found(SERVICE_VERSION, process.entry_assembly.version.as_str()),
            found(HOST_NAME, identity.host.as_str()),
            found(CONTAINER_ID, identity.container.as_str()),
            (PROCESS_ID, AttributeValue::Number(process.pid.into())),
            (COMMAND_LINE, AttributeValue::Text(Cow::Owned(process.command.join(" ")))),
            found(RUNTIME_NAME, ".NET"),
            found(RUNTIME_VERSION, runtime),
            found(RUNTIME_DESCRIPTION, process.runtime.as_str()),
            (PROCESSORS, AttributeValue::Number(process.processors.into())),
            found(RECORDING_ID, recording.run.id.as_str()),
        ] {
            let label = identity.label(key).filter(|_| !is_fact(key));
            let value = label.map_or(value, |label| AttributeValue::Text(Cow::Borrowed(label)));
            let is_known = match &value {
                AttributeValue::Text(text) => label.is_some() || !text.is_empty(),
                AttributeValue::Number(number) => *number > 0,
            };
            if is_known {
                all.0.push((key, value));
            }
        }
        for label in &identity.labels {
            if !RESOURCE_KEYS.contains(&label.key.as_str()) {
                all.0.push((&label.key, AttributeValue::Text(Cow::Borrowed(&label.value))));
            }
        }
        all
    }

    /// Attributes in the order of [`RESOURCE_KEYS`], then the other labels in their given order.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &AttributeValue<'a>)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    /// Returns the value of an attribute as text; empty if there is no such attribute.
    #[must_use]
    pub fn text(&self, key: &str) -> Cow<'_, str> {
        let found = self.0.iter().find(|(known, _)| *known == key);
        found.map_or(Cow::Borrowed(""), |(_, value)| value.to_text())
    }

    /// Returns the name of the service.
    #[must_use]
    pub fn service(&self) -> Cow<'_, str> {
        self.text(SERVICE_NAME)
    }

    /// Returns the version of the service.
    #[must_use]
    pub fn version(&self) -> Cow<'_, str> {
        self.text(SERVICE_VERSION)
    }

    /// Returns the name of the host.
    #[must_use]
    pub fn host(&self) -> Cow<'_, str> {
        self.text(HOST_NAME)
    }

    /// Returns the identifier of the container.
    #[must_use]
    pub fn container(&self) -> Cow<'_, str> {
        self.text(CONTAINER_ID)
    }

    /// Returns the name of the environment, such as `production`.
    #[must_use]
    pub fn environment(&self) -> Cow<'_, str> {
        let [today, before] = ENVIRONMENT.map(|key| self.text(key));
        if today.is_empty() { before } else { today }
    }
}

/// The name of the service if no label sets it: the name of the entry assembly, or of the program's
/// file.
fn service_name(process: &Process) -> &str {
    match process.entry_assembly.name.as_str() {
        "" => Program::from_process(process).name(),
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use clrscope_contract::labels::Label;
    use clrscope_recording::model::{EntryAssembly, Identity, Run};

    use super::*;

    fn recording(labels: &[(&str, &str)]) -> Recording {
        let label = |(key, value): &(&str, &str)| Label { key: (*key).to_owned(), value: (*value).to_owned() };
        let process = Process {
            pid: 7,
            command: vec!["dotnet".into(), "/srv/Shop.Web.dll".into()],
            runtime: ".NET 8.0.33".into(),
            processors: 4,
            identity: Identity {
                host: "web-3".into(),
                labels: labels.iter().map(label).collect(),
                ..Identity::default()
            },
            entry_assembly: EntryAssembly { name: "Shop.Web".into(), version: "1.4.2+8a3f12c".into() },
            ..Process::default()
        };
        let run = Run { id: "an-id".into(), ..Run::default() };
        Recording { run, processes: vec![process], ..Recording::default() }
    }

    fn texts(recording: &Recording) -> Vec<String> {
        let resource = Resource::from_process(recording, &recording.processes[0]);
        resource.attributes().map(|(key, value)| format!("{key}={}", value.to_text())).collect()
    }

    #[test]
    fn what_was_found_stands_first_and_labels_win_but_over_facts() {
        let rest = [
            "process.pid=7",
            "process.command_line=dotnet /srv/Shop.Web.dll",
            "process.runtime.name=.NET",
            "process.runtime.version=8.0.33",
            "process.runtime.description=.NET 8.0.33",
            "clrscope.processors=4",
            "clrscope.recording.id=an-id",
        ];
        let found = ["service.name=Shop.Web", "service.version=1.4.2+8a3f12c", "host.name=web-3"];
        assert_eq!(texts(&recording(&[])), [&found[..], &rest].concat());
        let labelled = recording(&[
            ("team", "carts"),
            ("service.name", "shop"),
            ("service.version", ""),
            ("process.pid", "99"),
            ("deployment.environment", "prod"),
        ]);
        let given = ["service.name=shop", "service.version=", "host.name=web-3"];
        let others = ["team=carts", "deployment.environment=prod"];
        assert_eq!(texts(&labelled), [&given[..], &rest, &others].concat());
        let resource = Resource::from_process(&labelled, &labelled.processes[0]);
        assert_eq!((&*resource.service(), &*resource.environment()), ("shop", "prod"));
    }

    #[test]
    fn a_recording_from_before_has_what_it_knows() {
        let mut old = recording(&[]);
        old.run.id.clear();
        let process = &mut old.processes[0];
        (process.identity, process.entry_assembly, process.processors) = Default::default();
        let expected = ["service.name=Shop.Web", "process.pid=7", "process.command_line=dotnet /srv/Shop.Web.dll"];
        assert_eq!(texts(&old)[..3], expected);
    }

    /// The table of the documentation has the keys in the order in which they are written.
    #[test]
    fn the_documentation_has_the_keys() {
        let docs = include_str!("../../../docs/labels.md");
        let attributes = docs.split("## Attributes").nth(1).and_then(|rest| rest.split("## ").next());
        let rows = attributes.expect("a section").lines().filter_map(|line| line.strip_prefix("| `"));
        let keys: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
        assert_eq!(keys, RESOURCE_KEYS);
    }
}
