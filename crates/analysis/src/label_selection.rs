//! Selects processes by their labels: `version=v2,environment=prod`.

use std::borrow::Cow;
use std::fmt;

use clrscope_contract::labels::is_fact;
use clrscope_contract::request::Glob;
use clrscope_recording::model::{Process, Recording};

use crate::resource::Resource;

/// Short keys, and the attributes that they represent.
const SHORT: [(&str, &str); 4] =
    [("service", "service.name"), ("version", "service.version"), ("host", "host.name"), ("container", "container.id")];
/// Key of the environment, for which there are two attributes.
const ENVIRONMENT: &str = "environment";

/// Labels that a selected process must all have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelection {
    text: String,
    wanted: Vec<(String, Glob)>,
}

/// Reason why a text is not a valid selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectionError(pub String);

impl fmt::Display for SelectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SelectionError {}

impl fmt::Display for LabelSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl LabelSelection {
    /// Parses `KEY=VALUE[,KEY=VALUE]`. A key is the key of an attribute, or `service`, `version`,
    /// `environment`, `host` or `container`. In values, `*` represents any text and `?` for any
    /// character.
    ///
    /// # Errors
    /// The reason why the text is not a selection.
    pub fn parse(text: &str) -> Result<Self, SelectionError> {
        let mut wanted: Vec<(String, Glob)> = Vec::new();
        for pair in text.split(',') {
            let Some((key, value)) = pair.split_once('=') else {
                let what =
                    if pair.trim().is_empty() { "a label is empty".into() } else { format!("'{pair}' has no '='") };
                return Err(SelectionError(what));
            };
            let key = key.trim();
            if key.is_empty() {
                return Err(SelectionError(format!("'{pair}' has no key")));
            }
            let key = SHORT.iter().find(|(short, _)| *short == key).map_or(key, |(_, attribute)| attribute);
            if wanted.iter().any(|(known, _)| known == key) {
                return Err(SelectionError(format!("the key {key} is given twice, and a process has one value of it")));
            }
            wanted.push((key.to_owned(), Glob::new(value)));
        }
        Ok(Self { text: text.trim().to_owned(), wanted })
    }

    /// Keys of the attributes that the selection tests.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.wanted.iter().map(|(key, _)| key.as_str())
    }

    /// The short key of an attribute, such as `version`; the attribute's own key if it has no short
    /// one.
    #[must_use]
    pub fn short_key(key: &str) -> &str {
        match key {
            "deployment.environment.name" | "deployment.environment" => ENVIRONMENT,
            _ => SHORT.iter().find(|(_, attribute)| *attribute == key).map_or(key, |(short, _)| short),
        }
    }

    /// Whether a process has all of the labels.
    #[must_use]
    pub fn selects(&self, recording: &Recording, process: &Process) -> bool {
        let resource = Resource::from_process(recording, process);
        self.wanted.iter().all(|(key, value)| Self::value(&resource, key).is_some_and(|own| value.matches(&own)))
    }

    /// The value that a process has for a key; `None` if it has none.
    fn value<'r>(resource: &'r Resource<'_>, key: &str) -> Option<Cow<'r, str>> {
        if key == ENVIRONMENT {
            return Some(resource.environment()).filter(|value| !value.is_empty());
        }
        resource.attributes().find(|(known, _)| *known == key).map(|(_, value)| value.to_text())
    }

    /// The labels of a process in the form of a selection, such as `version=v2`. Labels that
    /// clrscope itself adds, such as the process's number, are left out.
    #[must_use]
    pub fn labels_of(recording: &Recording, process: &Process) -> Vec<(String, String)> {
        let resource = Resource::from_process(recording, process);
        let named = resource.attributes().filter(|(key, _)| !is_fact(key));
        named.map(|(key, value)| (Self::short_key(key).to_owned(), value.to_text().into_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use clrscope_contract::labels::Label;
    use clrscope_recording::model::{EntryAssembly, Identity};

    use super::*;

    fn recording() -> Recording {
        let label = |(key, value): (&str, &str)| Label { key: key.to_owned(), value: value.to_owned() };
        let labels = [("service.version", "v2"), ("team", "a,b"), ("deployment.environment.name", "prod")].map(label);
        let process = Process {
            pid: 7,
            runtime: ".NET 8.0.33".into(),
            identity: Identity { host: "web-3".into(), labels: labels.to_vec(), ..Identity::default() },
            entry_assembly: EntryAssembly { name: "Shop".into(), version: String::new() },
            ..Process::default()
        };
        Recording { processes: vec![process], ..Recording::default() }
    }

    #[test]
    fn all_labels_of_a_selection_must_be_there() {
        let recording = recording();
        let selects =
            |text: &str| LabelSelection::parse(text).expect("a selection").selects(&recording, &recording.processes[0]);
        for text in [
            "version=v2",
            " service.version = v2 ",
            "version=v*,service=Shop,host=web-?",
            "environment=prod",
            "deployment.environment.name=prod",
            "team=a?b",
            "process.runtime.version=8.0.*",
        ] {
            assert!(selects(text), "{text}");
        }
        for text in ["version=v3", "version=v", "version=v2,host=web-4", "region=*", "environment=", "container=*"] {
            assert!(!selects(text), "{text}");
        }
        let labels = LabelSelection::labels_of(&recording, &recording.processes[0]);
        let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let expected = ["service=Shop", "version=v2", "host=web-3", "team=a,b", "environment=prod"];
        assert_eq!(labels, expected);
    }

    #[test]
    fn what_selects_nothing_is_refused() {
        for (text, part) in [
            ("", "empty"),
            ("v2", "'v2' has no '='"),
            ("=v2", "no key"),
            ("version=v2,", "empty"),
            ("version=v2,version=v3", "twice"),
            ("version=v2,service.version=v3", "service.version is given twice"),
        ] {
            let SelectionError(why) = LabelSelection::parse(text).expect_err("no selection");
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
