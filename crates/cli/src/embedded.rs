//! .NET programs inside the tool: what `demo` shows and `doctor` tries out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A compiled program with the file that says which runtimes it runs on.
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
    /// Writes it into `folder`; the library's path.
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
