//! Finds .NET in `DOTNET_ROOT`, `PATH`, the usual folders and clrscope's cache.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Version;

/// The framework that every .NET program needs.
pub const FRAMEWORK: &str = "Microsoft.NETCore.App";

const USUAL_PLACES: [&str; 5] =
    ["/usr/share/dotnet", "/usr/lib/dotnet", "/usr/lib64/dotnet", "/usr/local/share/dotnet", "/opt/dotnet"];

/// Origin of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The variable `DOTNET_ROOT` names it.
    Variable,
    /// Found through `dotnet` in `PATH`.
    Path,
    /// Found where distributions and Microsoft's scripts put .NET.
    UsualPlace,
    /// Fetched by clrscope into its cache.
    Cache,
}

impl Origin {
    /// The origin in words, for a report: `found by ...`.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Variable => "DOTNET_ROOT",
            Self::Path => "PATH",
            Self::UsualPlace => "usual place",
            Self::Cache => "fetched by clrscope",
        }
    }
}

/// A folder with a `dotnet` host and at least one runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Install {
    /// The folder, suitable for `DOTNET_ROOT`, with symbolic links resolved.
    pub root: PathBuf,
    /// Origin of the installation.
    pub origin: Origin,
    /// Versions of `Microsoft.NETCore.App` in the installation, lowest first, never empty.
    pub runtimes: Vec<Version>,
}

impl Install {
    /// The host, `ROOT/dotnet`.
    pub fn host(&self) -> PathBuf {
        self.root.join("dotnet")
    }

    /// The folder of a runtime of the installation, with its `libcoreclr.so`.
    pub fn runtime_folder(&self, version: &Version) -> PathBuf {
        self.root.join("shared").join(FRAMEWORK).join(version.to_string())
    }

    /// The installation in a folder; `None` if the folder has no host or no runtime.
    pub fn in_folder(folder: &Path, origin: Origin) -> Option<Self> {
        let root = folder.canonicalize().ok()?;
        if !is_executable(&root.join("dotnet")) {
            return None;
        }
        let runtimes = versions_in(&root.join("shared").join(FRAMEWORK), "libcoreclr.so");
        if runtimes.is_empty() { None } else { Some(Self { root, origin, runtimes }) }
    }
}

/// Places to search for .NET. The program takes them from the process's own environment; tests make
/// them up.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The value of `DOTNET_ROOT`.
    pub dotnet_root: Option<PathBuf>,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// Folders where distributions put .NET.
    pub usual: Vec<PathBuf>,
    /// Folder in which clrscope keeps fetched runtimes.
    pub cache: Option<PathBuf>,
}

impl Places {
    /// Where this process looks for .NET.
    pub fn of_this_process() -> Self {
        Self {
            dotnet_root: variable("DOTNET_ROOT"),
            path: env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default(),
            home: variable("HOME"),
            usual: USUAL_PLACES.iter().map(PathBuf::from).collect(),
            cache: cache_folder(),
        }
    }

    /// Every installation, in the order to try, each folder once.
    pub fn installs(&self) -> Vec<Install> {
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        for (origin, folder) in self.candidates() {
            if let Some(install) = Install::in_folder(&folder, origin)
                && seen.insert(install.root.clone())
            {
                found.push(install);
            }
        }
        found
    }

    fn candidates(&self) -> Vec<(Origin, PathBuf)> {
        let mut all = Vec::new();
        all.extend(self.dotnet_root.iter().map(|root| (Origin::Variable, root.clone())));
        all.extend(
            self.path.iter().filter_map(|folder| root_of_host(&folder.join("dotnet"))).map(|root| (Origin::Path, root)),
        );
        all.extend(self.usual.iter().map(|folder| (Origin::UsualPlace, folder.clone())));
        all.extend(self.home.iter().map(|home| (Origin::UsualPlace, home.join(".dotnet"))));
        all.extend(self.fetched().into_iter().map(|root| (Origin::Cache, root)));
        all
    }

    /// Folders `dotnet-VERSION` in the cache, newest first.
    fn fetched(&self) -> Vec<PathBuf> {
        let Some(cache) = &self.cache else { return Vec::new() };
        let Ok(entries) = fs::read_dir(cache) else { return Vec::new() };
        let mut versions: Vec<Version> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("dotnet-")?.parse().ok())
            .collect();
        versions.sort();
        versions.iter().rev().map(|version| cache.join(format!("dotnet-{version}"))).collect()
    }
}

/// Every installation of .NET that this process can see, each folder once. The user's own choice
/// comes first.
pub fn installs() -> Vec<Install> {
    Places::of_this_process().installs()
}

/// Folder for private files that clrscope can recreate: `$XDG_CACHE_HOME/clrscope` or
/// `~/.cache/clrscope`.
pub fn cache_folder() -> Option<PathBuf> {
    // A relative XDG_CACHE_HOME is invalid by the specification and must be ignored.
    let base = variable("XDG_CACHE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| Some(variable("HOME")?.join(".cache")))?;
    Some(base.join("clrscope"))
}

fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// `dotnet` in `PATH` is often a link (`/usr/bin/dotnet` to `/usr/lib/dotnet/dotnet`): the real
/// file is in the root.
fn root_of_host(host: &Path) -> Option<PathBuf> {
    let real = host.canonicalize().ok()?;
    if is_executable(&real) { Some(real.parent()?.to_path_buf()) } else { None }
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// Sub-folders of `folder` that are named after versions and contain `file`, lowest version first.
pub fn versions_in(folder: &Path, file: &str) -> Vec<Version> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut versions: Vec<Version> = entries
        .flatten()
        .filter(|entry| entry.path().join(file).is_file())
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    versions.sort();
    versions
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn make_install(root: &Path, versions: &[&str]) {
        for version in versions {
            let folder = root.join("shared").join(FRAMEWORK).join(version);
            fs::create_dir_all(&folder).expect("create");
            fs::write(folder.join("libcoreclr.so"), b"").expect("write");
        }
        fs::create_dir_all(root).expect("create");
        fs::write(root.join("dotnet"), b"").expect("write");
        fs::set_permissions(root.join("dotnet"), fs::Permissions::from_mode(0o755)).expect("chmod");
    }

    #[test]
    fn finds_each_installation_once_and_the_users_choice_first() {
        let temp = tempfile::tempdir().expect("temp dir");
        let base = temp.path().canonicalize().expect("canonical");
        make_install(&base.join("chosen"), &["9.0.1", "8.0.15", "10.0.0-rc.1"]);
        make_install(&base.join("lib/dotnet"), &["8.0.1"]);
        make_install(&base.join("cache/dotnet-8.0.15"), &["8.0.15"]);
        fs::create_dir_all(base.join("bin")).expect("create");
        symlink("../lib/dotnet/dotnet", base.join("bin/dotnet")).expect("link");
        let places = Places {
            dotnet_root: Some(base.join("chosen")),
            path: vec![base.join("nothing"), base.join("bin")],
            home: Some(base.join("home")),
            usual: vec![base.join("lib/dotnet"), base.join("missing")],
            cache: Some(base.join("cache")),
        };

        let found = places.installs();
        let seen: Vec<(Origin, PathBuf)> = found.iter().map(|install| (install.origin, install.root.clone())).collect();
        let expected =
            [(Origin::Variable, "chosen"), (Origin::Path, "lib/dotnet"), (Origin::Cache, "cache/dotnet-8.0.15")];
        assert_eq!(seen, expected.map(|(origin, folder)| (origin, base.join(folder))));
        let versions: Vec<String> = found[0].runtimes.iter().map(Version::to_string).collect();
        assert_eq!(versions, ["8.0.15", "9.0.1", "10.0.0-rc.1"]);
    }

    #[test]
    fn a_host_without_runtime_or_a_runtime_without_host_is_no_installation() {
        let temp = tempfile::tempdir().expect("temp dir");
        let bare = temp.path().join("bare");
        make_install(&bare, &[]);
        assert_eq!(Install::in_folder(&bare, Origin::Variable), None);
        let headless = temp.path().join("headless");
        make_install(&headless, &["8.0.1"]);
        fs::remove_file(headless.join("dotnet")).expect("remove");
        assert_eq!(Install::in_folder(&headless, Origin::Variable), None);
    }
}
