//! A runtime's information about its process.

use crate::Error;
use crate::wire::Reader;

/// Process information, as reported by the runtime.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// Process id in the namespace of the process: inside a container it differs from the id
    /// outside.
    pub pid: u64,
    /// Unique number of the runtime instance.
    pub cookie: [u8; 16],
    /// The command line, as one text.
    pub command_line: String,
    /// The operating system, such as `Linux`.
    pub os: String,
    /// The architecture, such as `x64`.
    pub architecture: String,
    /// Name of the assembly with the entry point; empty before .NET 6, and while the runtime
    /// starts.
    pub entry_assembly: String,
    /// Version of the runtime, such as `8.0.33`, followed by build details; empty before .NET 6.
    pub runtime_version: String,
    /// The portable runtime identifier, such as `linux-x64` or `linux-musl-x64`. It is empty before
    /// .NET 8.
    pub portable_rid: String,
}

impl ProcessInfo {
    /// Reads the payload of the answer to this version of the process information command.
    pub(crate) fn parse(payload: &[u8], version: u8) -> Result<Self, Error> {
        let mut reader = Reader(payload);
        let extended = if version >= 3 { reader.u32()? } else { 0 };
        let mut info = Self {
            pid: reader.u64()?,
            cookie: reader.array()?,
            command_line: reader.text()?,
            os: reader.text()?,
            architecture: reader.text()?,
            ..Self::default()
        };
        if version >= 2 {
            info.entry_assembly = reader.text()?;
            info.runtime_version = reader.text()?;
        }
        if extended >= 1 {
            info.portable_rid = reader.text()?;
        }
        Ok(info)
    }

    /// The version of the runtime without build details: `8.0.33`.
    #[must_use]
    pub fn short_version(&self) -> &str {
        self.runtime_version.split(['+', ' ']).next().unwrap_or_default()
    }
}
