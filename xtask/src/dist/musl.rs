//! Additional steps of a build for musl: Rust's own library is built too, and the results are
//! checked.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clrscope_contract::AGENT_LIBRARY as LIBRARY;
use clrscope_symbols::CLibrary;
use clrscope_testkit::{debian_package, debian_packages};
use object::{Object, ObjectSymbol};

/// Debian's packages with a compiler of Rust and the sources of Rust's own library, of one version:
/// a compiler builds no other version of that library.
const COMPILER: [&str; 3] = ["rustc-web", "libstd-rust-web-dev", "rust-web-src"];
/// Starts of the names of packages with libraries that these need, and that other programs need in
/// one version only.
const LIBRARIES: [&str; 2] = ["libstd-rust-web-", "libllvm"];
/// Debian 12's package with the oldest musl that .NET 8 runs on, 1.2.3 (Alpine 3.17).
const OLDEST_PACKAGE: &str = "musl";

/// A compiler for which the sources of Rust's own library are available.
pub(super) struct Compiler {
    /// The program; `None` for the usual one, whose toolchain has the component `rust-src`.
    rustc: Option<PathBuf>,
    /// The library's folder.
    library: PathBuf,
}

impl Compiler {
    /// Fetches a compiler if the usual one lacks the sources.
    pub(super) fn prepare(tools: &Path) -> Result<Self, String> {
        let usual = library_in(&printed(Path::new("rustc"), &["--print", "sysroot"])?);
        if usual.join("Cargo.lock").is_file() {
            return Ok(Self { rustc: None, library: usual });
        }
        let folder = debian_packages(&COMPILER, &LIBRARIES, tools)?;
        // Debian's programs look for their libraries in the folders of the system.
        let rustc = folder.join("rustc");
        let libraries = folder.join("usr/lib/x86_64-linux-gnu");
        let program = folder.join("usr/bin/rustc");
        let script =
            format!("#!/bin/sh\nLD_LIBRARY_PATH='{}' exec '{}' \"$@\"\n", libraries.display(), program.display());
        fs::write(&rustc, script)
            .and_then(|()| fs::set_permissions(&rustc, fs::Permissions::from_mode(0o755)))
            .map_err(|error| format!("{}: {error}", rustc.display()))?;
        let library = library_in(&printed(&rustc, &["--print", "sysroot"])?);
        Ok(Self { rustc: Some(rustc), library })
    }

    /// Prepares a build. Returns additional flags for the compiler.
    pub(super) fn prepare_build(&self, command: &mut Command, file: &str) -> Vec<String> {
        command.arg("-Zbuild-std=std,panic_unwind").env("RUSTC_BOOTSTRAP", "1");
        command.envs(self.rustc.iter().map(|rustc| ("RUSTC", rustc)));
        let mut flags = vec![format!("--remap-path-prefix={}=/rustc/library", self.library.display())];
        // A library that is loaded needs the C library of its program; the tool brings its own.
        if file == LIBRARY {
            flags.push("-Ctarget-feature=-crt-static".to_owned());
        }
        flags
    }
}

/// The folder of Rust's own library as sources in a toolchain.
fn library_in(toolchain: &str) -> PathBuf {
    Path::new(toolchain.trim()).join("lib/rustlib/src/rust/library")
}

fn printed(program: &Path, words: &[&str]) -> Result<String, String> {
    let output =
        Command::new(program).args(words).output().map_err(|error| format!("{}: {error}", program.display()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr))),
    }
}

/// Refuses a tool that needs a dynamic loader, because the tool must run on every system.
pub(super) fn check_tool(bytes: &[u8]) -> Result<(), String> {
    match CLibrary::needed_by(bytes) {
        None => Ok(()),
        Some(library) => Err(format!("the tool for musl is linked with {library} dynamically")),
    }
}

/// Refuses an agent that is linked with another library or needs a function that the oldest musl
/// lacks.
pub(super) fn check_agent(bytes: &[u8], tools: &Path) -> Result<(), String> {
    if CLibrary::needed_by(bytes) != Some(CLibrary::Musl) {
        return Err(format!("{LIBRARY} is not linked with musl"));
    }
    let oldest = debian_package(OLDEST_PACKAGE, None, tools)?.join("lib/x86_64-linux-musl/libc.so");
    let oldest = fs::read(&oldest).map_err(|error| format!("{}: {error}", oldest.display()))?;
    let lacks = missing(bytes, &oldest)?;
    if lacks.is_empty() { Ok(()) } else { Err(format!("{LIBRARY} needs more than musl 1.2.3: {}", lacks.join(", "))) }
}

/// The functions and variables that a file must have and a library has not.
fn missing(bytes: &[u8], library: &[u8]) -> Result<Vec<String>, String> {
    let parsed = |bytes| object::File::parse(bytes).map_err(|error: object::Error| error.to_string());
    let (file, library) = (parsed(bytes)?, parsed(library)?);
    let defined: BTreeSet<_> = library
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition())
        .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
        .collect();
    let asked = file.dynamic_symbols().filter(|symbol| symbol.is_undefined() && !symbol.is_weak());
    let names = asked.filter_map(|symbol| symbol.name().ok()).filter(|name| !name.is_empty());
    Ok(names.filter(|name| !defined.contains(*name)).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test is bound to glibc, whose functions musl lacks in part.
    #[test]
    fn functions_that_a_library_lacks_are_named() {
        let own = fs::read("/proc/self/exe").expect("the test");
        assert_eq!(check_tool(&own), Err("the tool for musl is linked with glibc dynamically".to_owned()));
        let maps = fs::read_to_string("/proc/self/maps").expect("its maps");
        let loader = maps.lines().filter_map(|line| Some(&line[line.find('/')?..])).find(|path| path.contains("/ld-"));
        let loader = fs::read(loader.expect("it has a loader")).expect("the loader");
        let lacks = missing(&own, &loader).expect("two ELF files");
        assert!(lacks.iter().any(|name| name == "memcpy" || name == "strlen"), "{lacks:?}");
        assert_eq!(missing(&loader, &own), Ok(vec![]));
    }
}
