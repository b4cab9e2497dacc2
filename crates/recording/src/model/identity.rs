//! By what recordings of many programs on many machines are told apart.

use clrscope_contract::labels::Label;

use crate::codec::{Field, record};
use crate::payload::{PayloadReader, PayloadWriter};

record! {
    /// Machine, container and labels of a process.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct Identity {
        /// A random identifier, 32 hexadecimal digits in groups as a UUID has them; that of the
        /// recording where no launcher gave it another.
        pub id: String,
        /// Name of the host, as the process sees it; empty where that is not known.
        pub host: String,
        /// Identifier of the container; empty where there is none, or it is not known.
        pub container: String,
        /// Labels, each key once: those that were given, then those of the process's environment.
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
    /// The assembly that the program begins in.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct EntryAssembly {
        /// Its simple name; empty where it is not known.
        pub name: String,
        /// Its informational version, or that of the assembly where it has none: `1.4.2+8a3f12c`.
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
