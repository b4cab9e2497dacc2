//! .NET programs that are embedded in the tool, for `demo` and `doctor`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A compiled program, with the file that lists the runtimes that it runs on.
#[derive(Debug)]
pub(crate) struct EmbeddedProgram {
    name: &'static str,
    library: &'static [u8],
    configuration: &'static [u8],
}

/// A shop that works through a day of orders.
pub(crate) static DEMO: EmbeddedProgram = EmbeddedProgram {
    name: "Demo",
    library: include_bytes!("../../../dotnet/demo/bin/Demo.dll"),
    configuration: include_bytes!("../../../dotnet/demo/bin/Demo.runtimeconfig.json"),
};

/// The smallest program.
pub(crate) static HELLO: EmbeddedProgram = EmbeddedProgram {
    name: "Hello",
    library: include_bytes!("../../../dotnet/fixtures/bin/Hello.dll"),
    configuration: include_bytes!("../../../dotnet/fixtures/bin/Hello.runtimeconfig.json"),
};

impl EmbeddedProgram {
    /// Writes the program into `folder`. Returns the path of its assembly.
    ///
    /// # Errors
    /// Errors of writing.
    pub(crate) fn write_into(&self, folder: &Path) -> io::Result<PathBuf> {
        let library = folder.join(self.name).with_extension("dll");
        fs::write(&library, self.library)?;
        fs::write(folder.join(self.name).with_extension("runtimeconfig.json"), self.configuration)?;
        Ok(library)
    }
}
