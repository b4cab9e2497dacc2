//! Builds agents and tools for publication: for glibc 2.17 and for musl, without paths of this
//! machine.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clrscope_symbols::{GlibcSymbol, GlibcVersion};
use clrscope_testkit::{from_pypi, target_folder, workspace_root};

use super::musl;

/// The oldest C library that what is published loads with: that of RHEL 7 and of manylinux2014.
const OLDEST: GlibcVersion = GlibcVersion { major: 2, minor: 17 };
/// The agent's file.
pub(super) const LIBRARY: &str = clrscope_contract::AGENT_LIBRARY;
/// The linker and C compiler, which has the symbols of every version of glibc, from PyPI.
const ZIG: (&str, &str) = ("ziglang", "0.17.1");
/// What has Cargo use it, from crates.io.
const ZIGBUILD: (&str, &str) = ("cargo-zigbuild", "0.24.1");

/// A C library for which files are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    Gnu,
    Musl,
}

impl Platform {
    pub(crate) const ALL: [Self; 2] = [Self::Gnu, Self::Musl];

    /// The name that packages use.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gnu => "x86_64-linux-gnu",
            Self::Musl => "x86_64-linux-musl",
        }
    }

    /// The name for Cargo.
    fn target(self) -> &'static str {
        match self {
            Self::Gnu => "x86_64-unknown-linux-gnu",
            Self::Musl => "x86_64-unknown-linux-musl",
        }
    }
}

/// The published files for one C library.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) platform: Platform,
    /// The program `clrscope`. The program for musl is linked statically and runs on every Linux.
    pub(crate) tool: Vec<u8>,
    /// The agent's library. Each tool contains the agents for all C libraries.
    pub(crate) agent: Vec<u8>,
}

/// All published files, in the order of [`Platform::ALL`].
#[derive(Debug, Clone)]
pub(crate) struct Binaries {
    pub(crate) all: Vec<Files>,
}

impl Binaries {
    /// Builds everything with `target` as Cargo's target folder.
    ///
    /// # Errors
    /// A sentence or the compiler's words, when something can't be built, or is not as it is to be.
    pub(crate) fn build(target: &Path) -> Result<Self, String> {
        let builder = Builder::prepare(target)?;
        // Names of functions stay in the agent: a crash in a user's program must say where.
        let agent_of = |platform| builder.build(platform, "clrscope-agent", LIBRARY, "debuginfo", &[]);
        let agents = Platform::ALL.into_iter().map(agent_of).collect::<Result<Vec<_>, _>>()?;
        let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        let mut all = Vec::new();
        for (platform, agent) in Platform::ALL.into_iter().zip(&agents) {
            let tool = builder.build(platform, "clrscope", "clrscope", "symbols", &agents)?;
            all.push(Files { platform, tool: read(&tool)?, agent: read(agent)? });
        }
        for files in &all {
            match files.platform {
                Platform::Gnu => {
                    check_library("clrscope", &files.tool)?;
                    check_library(LIBRARY, &files.agent)?;
                }
                Platform::Musl => {
                    musl::check_tool(&files.tool)?;
                    musl::check_agent(&files.agent, &builder.tools)?;
                }
            }
            for (name, bytes) in [("clrscope", &files.tool), (LIBRARY, &files.agent)] {
                check_paths(name, bytes, &builder.private_paths())?;
            }
            let has = |agent: &[u8]| files.tool.windows(agent.len()).any(|part| part == agent);
            if !all.iter().all(|other| has(&other.agent)) {
                return Err(format!("the tool for {} lacks an agent", files.platform.name()));
            }
        }
        Ok(Self { all })
    }

    /// Files that an earlier build left in Cargo's target folder; `None` if one is missing.
    pub(crate) fn built(target: &Path) -> Option<Self> {
        let read = |platform: Platform, file: &str| fs::read(built_file(target, platform, file)).ok();
        let files =
            |platform| Some(Files { platform, tool: read(platform, "clrscope")?, agent: read(platform, LIBRARY)? });
        Some(Self { all: Platform::ALL.into_iter().map(files).collect::<Option<_>>()? })
    }

    /// The published files for one C library.
    pub(crate) fn of(&self, platform: Platform) -> &Files {
        self.all.iter().find(|files| files.platform == platform).expect("there is one for each")
    }
}

/// Refuses a file that needs a newer C library, and says what of it.
fn check_library(name: &str, bytes: &[u8]) -> Result<(), String> {
    match GlibcVersion::needed_by(bytes) {
        None => Err(format!("{name} is bound to no glibc")),
        Some(needed) if needed > OLDEST => {
            let imported = GlibcSymbol::imported_by(bytes).into_iter().filter(|symbol| symbol.version > OLDEST);
            let newer: Vec<String> = imported.map(|symbol| symbol.to_string()).collect();
            Err(format!("{name} needs more than glibc {OLDEST}: {}", newer.join(", ")))
        }
        Some(_) => Ok(()),
    }
}

/// Refuses a file that names folders of this machine, and shows where.
fn check_paths(name: &str, bytes: &[u8], private: &[PathBuf]) -> Result<(), String> {
    for path in private {
        let path = path.to_string_lossy();
        if let Some(at) = bytes.windows(path.len()).position(|part| part == path.as_bytes()) {
            let around = &bytes[at.saturating_sub(20)..(at + path.len() + 60).min(bytes.len())];
            return Err(format!("{name} names a folder of this machine: {}", around.escape_ascii()));
        }
    }
    Ok(())
}

/// Where Cargo leaves a file.
fn built_file(target: &Path, platform: Platform, file: &str) -> PathBuf {
    target.join(platform.target()).join("release").join(file)
}

/// The tools for a build, and where it is built.
struct Builder {
    tools: PathBuf,
    zig: PathBuf,
    zigbuild: PathBuf,
    target: PathBuf,
    cargo_home: PathBuf,
    /// The compiler for musl.
    compiler: musl::Compiler,
}

impl Builder {
    /// Fetches the tools where they are not there.
    fn prepare(target: &Path) -> Result<Self, String> {
        let tools = target_folder().join("tools");
        let place = tools.join(ZIG.1);
        fs::create_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
        let package = format!("{}=={} --no-deps", ZIG.0, ZIG.1);
        let python = from_pypi(&package, &place).ok_or_else(|| format!("pip could not install {package}"))?;
        let zigbuild = tools.join("bin").join(ZIGBUILD.0);
        let said = Command::new(&zigbuild).arg("--version").output();
        if !said.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().ends_with(ZIGBUILD.1)) {
            let mut install = Command::new(cargo());
            install.args(["install", "--quiet", "--locked", "--force", "--root"]).arg(&tools);
            run(install.arg(format!("{}@{}", ZIGBUILD.0, ZIGBUILD.1)))?;
        }
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let cargo_home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
        let cargo_home = cargo_home.ok_or("neither CARGO_HOME nor HOME is set")?;
        let compiler = musl::Compiler::prepare(&tools)?;
        let zig = python.join("ziglang/zig");
        Ok(Self { tools, zig, zigbuild, target: target.to_owned(), cargo_home, compiler })
    }

    /// Builds a package and returns the file of it; `agents` are those that the tool carries.
    fn build(
        &self,
        platform: Platform,
        package: &str,
        file: &str,
        strip: &str,
        agents: &[PathBuf],
    ) -> Result<PathBuf, String> {
        let mut command = Command::new(&self.zigbuild);
        command.current_dir(workspace_root()).args(["zigbuild", "--quiet", "--release", "--locked"]);
        for (name, _) in env::vars_os().filter(|(name, _)| disturbs(name)) {
            command.env_remove(name);
        }
        let mut flags = self.renamed_folders();
        match platform {
            Platform::Gnu => {
                command.args(["--target", &format!("{}.{OLDEST}", platform.target())]);
            }
            Platform::Musl => {
                command.args(["--target", platform.target()]);
                flags.extend(self.compiler.prepare_build(&mut command, file));
            }
        }
        command.args(["--package", package]).arg("--target-dir").arg(&self.target);
        command.env("CARGO_ZIGBUILD_ZIG_PATH", &self.zig).env("CARGO_PROFILE_RELEASE_STRIP", strip);
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
        if !agents.is_empty() {
            command.env("CLRSCOPE_PREBUILT_AGENT", env::join_paths(agents).map_err(|error| error.to_string())?);
        }
        run(&mut command)?;
        Ok(built_file(&self.target, platform, file))
    }

    /// Flags by which messages of panics name no folder of this machine.
    fn renamed_folders(&self) -> Vec<String> {
        let sources = fs::read_dir(self.cargo_home.join("registry/src")).into_iter().flatten().flatten();
        let crates = sources.map(|registry| (registry.path(), "/crates"));
        let mut all: Vec<_> = crates.chain([(workspace_root(), "/clrscope")]).collect();
        all.sort();
        all.into_iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect()
    }

    /// Folders that only this machine has.
    fn private_paths(&self) -> Vec<PathBuf> {
        vec![workspace_root(), self.cargo_home.clone(), self.target.clone()]
    }
}

/// Whether a variable must not reach the build: it would make other binaries.
fn disturbs(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    let starts = ["CARGO_BUILD_", "CARGO_PROFILE_", "CARGO_TARGET_", "CARGO_ENCODED_", "CARGO_PKG_", "RUSTC", "CFLAGS"];
    starts.iter().any(|start| name.starts_with(start)) || name == "RUSTFLAGS" || name == "CARGO_MANIFEST_DIR"
}

fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Runs a command to its end; an error if it fails.
pub(super) fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test was built for this machine, in a folder of it.
    #[test]
    fn newer_libraries_and_folders_of_this_machine_are_found() {
        let own = fs::read("/proc/self/exe").expect("the test");
        let refusal = check_library("own", &own).expect_err("it is built for this machine's C library");
        let imported = GlibcSymbol::imported_by(&own).into_iter().max_by_key(|symbol| symbol.version);
        let newest = imported.expect("it has some").to_string();
        assert!(refusal.starts_with("own needs more than glibc 2.17: ") && refusal.contains(&newest), "{refusal}");
        let assembly = fs::read(clrscope_testkit::fixture("Hello")).expect("a fixture");
        assert_eq!(check_library("Hello.dll", &assembly), Err("Hello.dll is bound to no glibc".to_owned()));
        let refusal = check_paths("own", &own, &[workspace_root()]);
        let refusal = refusal.expect_err("the test kit knows where it lies");
        assert!(refusal.contains(&*workspace_root().to_string_lossy()), "{refusal}");
        assert_eq!(check_paths("Hello.dll", &assembly, &[workspace_root()]), Ok(()));
    }
}
