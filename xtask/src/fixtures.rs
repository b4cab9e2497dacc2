//! `cargo xtask fixtures`: compiles the programs in `dotnet/` and writes the manifest of sources
//! and compiled programs.

use std::fs;

use clrscope_testkit::{Sdk, compile, manifest, workspace_root};

/// Rebuilds every committed program.
///
/// # Errors
/// A sentence, when there is no SDK for .NET 8 or a program does not compile.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub(crate) fn run() -> Result<(), String> {
    let sdk = Sdk::find().ok_or("no .NET SDK with the reference assemblies of .NET 8 is at hand; set DOTNET_ROOT")?;
    let dotnet = workspace_root().join("dotnet");
    let written = compile::build_all(&sdk, &dotnet, &dotnet)?;
    fs::write(dotnet.join(manifest::NAME), manifest::manifest_text(&dotnet, &sdk.identity()))
        .map_err(|error| error.to_string())?;
    println!("{} files written, {}", written.len(), sdk.identity());
    Ok(())
}
