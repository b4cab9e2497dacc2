//! `cargo xtask fixtures`: compiles the programs in `dotnet/` and writes the manifest of sources
//! and compiled programs.

use std::fs;
use std::io;
use std::path::Path;

use clrscope_testkit::{Sdk, compile, manifest, scratch, workspace_root};

/// Rebuilds every committed program.
///
/// # Errors
/// A sentence, when there is no SDK for .NET 8 or a program does not compile.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub(crate) fn run() -> Result<(), String> {
    let sdk = Sdk::find().ok_or("no .NET SDK with the reference assemblies of .NET 8 is at hand; set DOTNET_ROOT")?;
    let dotnet = workspace_root().join("dotnet");
    let built = scratch();
    let files = compile::build_all(&sdk, &dotnet, built.path())?;
    let mut changed = 0;
    for file in &files {
        let is_new = replace(&built.path().join(file), &dotnet.join(file));
        changed += usize::from(is_new.map_err(|error| format!("{}: {error}", file.display()))?);
    }
    fs::write(dotnet.join(manifest::NAME), manifest::manifest_text(&dotnet, &sdk.identity()))
        .map_err(|error| error.to_string())?;
    println!("{} files, {changed} of them changed, {}", files.len(), sdk.identity());
    Ok(())
}

/// Puts a file in the place of another one, and returns whether that changes its content. A program
/// that runs keeps the old file: if the file itself were written to, the program would end with
/// SIGBUS, as the runtime maps it.
fn replace(new: &Path, old: &Path) -> io::Result<bool> {
    let content = fs::read(new)?;
    if fs::read(old).is_ok_and(|before| before == content) {
        return Ok(false);
    }
    let draft = old.with_extension("new");
    if let Some(folder) = old.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&draft, content)?;
    fs::rename(&draft, old)?;
    Ok(true)
}
