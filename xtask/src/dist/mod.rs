//! `cargo xtask dist`: makes the files of a release. The same sources always give the same bytes.
//!
//! 1. [`binaries`] builds agent and tool for glibc 2.17 and, with what [`musl`] adds, for musl, and
//!    checks what they need and what they say. Each tool carries both agents.
//! 2. [`tarball`], [`dotnet_tool`] and [`image`] lay them out, as [`entries`] that are written in
//!    one order, with one time and one owner.
//! 3. `SHA256SUMS` has the sums of all files.

mod binaries;
mod dotnet_tool;
mod entries;
mod image;
mod musl;
mod tarball;

use std::fs;
use std::path::{Path, PathBuf};

use clrscope_symbols::{CLibrary, GlibcVersion};
use clrscope_testkit::{target_folder, workspace_root};
use sha2::{Digest, Sha256};

pub(crate) use binaries::{Binaries, Platform};
pub(crate) use entries::hex;
pub(crate) use tarball::name as tarball_name;

/// Version that is published.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Name of the file with the checksums of all other files, in the format of `sha256sum --check`.
pub(crate) const SUMS: &str = "SHA256SUMS";

/// Builds everything into the given folder, or into `target/dist`.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let folder = match arguments {
        [] => target_folder().join("dist"),
        [folder] => PathBuf::from(folder),
        _ => return Err("usage: cargo xtask dist [FOLDER]".to_owned()),
    };
    let binaries = Binaries::build(&target_folder().join("dist-build"))?;
    let written = pack(&binaries, &folder)?;
    say(&binaries, &written);
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a command line tool")]
fn say(binaries: &Binaries, written: &[Package]) {
    for files in &binaries.all {
        for (what, bytes) in [("clrscope", &files.tool), ("agent", &files.agent)] {
            let needed = match (CLibrary::needed_by(bytes), GlibcVersion::needed_by(bytes)) {
                (Some(CLibrary::Gnu), Some(version)) => format!("glibc {version}"),
                (Some(library), _) => library.to_string(),
                (None, _) => "no C library".to_owned(),
            };
            println!("{what} for {}: {} bytes, needs {needed}", files.platform.name(), bytes.len());
        }
    }
    for package in written {
        println!("{}: {} bytes", package.path.display(), package.bytes);
    }
}

/// A file of a release, after it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    /// Path of the file.
    pub(crate) path: PathBuf,
    /// Size in bytes.
    pub(crate) bytes: usize,
    /// SHA-256 in hexadecimal.
    pub(crate) sum: String,
}

/// Writes all packages and the file with their checksums into `folder`. Returns all of them, the
/// checksums last.
///
/// # Errors
/// A sentence, when something can't be read, compiled or written.
pub(crate) fn pack(binaries: &Binaries, folder: &Path) -> Result<Vec<Package>, String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut made = binaries.all.iter().map(tarball::make).collect::<Result<Vec<_>, _>>()?;
    made.extend([dotnet_tool::make(binaries)?, image::make(binaries)?]);
    let mut written =
        made.into_iter().map(|(name, bytes)| write(folder, &name, &bytes)).collect::<Result<Vec<_>, _>>()?;
    let line = |package: &Package| {
        format!("{}  {}\n", package.sum, package.path.file_name().unwrap_or_default().to_string_lossy())
    };
    let sums: String = written.iter().map(line).collect();
    written.push(write(folder, SUMS, sums.as_bytes())?);
    Ok(written)
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<Package, String> {
    let path = folder.join(name);
    fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Package { path, bytes: bytes.len(), sum: hex(&Sha256::digest(bytes)) })
}

/// A file of the workspace.
fn read(path: &str) -> Result<Vec<u8>, String> {
    fs::read(workspace_root().join(path)).map_err(|error| format!("{path}: {error}"))
}
