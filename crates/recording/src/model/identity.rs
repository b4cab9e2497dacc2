//! Data that distinguishes recordings of many programs on many machines.

use clrscope_contract::labels::Label;

use crate::codec::{Field, record};
use crate::payload::{PayloadReader, PayloadWriter};

record! {
    /// Machine, container and labels of a process.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct Identity {
        /// A random identifier: 32 hexadecimal digits grouped as in a UUID. It is the recording's
        /// identifier if no launcher assigned one to the process.
        pub id: String,
        /// Name of the host, as the process sees it; empty if unknown.
        pub host: String,
        /// Identifier of the container; empty if there is none or it is unknown.
        pub container: String,
        /// Labels with unique keys: first from the request, then from the process's environment.
        pub labels: Vec<Label>,
    }
}

impl Identity {
    /// Returns the value of the label with this key.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|label| label.key == key).map(|label| label.value.as_str())
    }
}

record! {
    /// The assembly with the program's entry point.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct EntryAssembly {
        /// Simple name of the assembly; empty if unknown.
        pub name: String,
        /// The assembly's informational version, for instance `1.4.2+8a3f12c`; if it has none, its
        /// assembly version.
        pub version: String,
    }
}

impl Field for Label {
    fn put(&self, payload: &mut PayloadWriter) {
        payload.text(&self.key).text(&self.value);
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        let key = payload.text();
        Some(Self { key, value: payload.text() })
    }
}
