//! Third-party programs from Debian packages, for tests that compare with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The reference reader of profiles, `go tool pprof`. It is extracted once to `place` from the Go
/// compiler on which Debian's package `golang-go` depends. `None` if it is not available.
#[must_use]
pub fn go_pprof(place: &Path) -> Option<PathBuf> {
    let folder = place.join("go-pprof");
    let tool = folder.join("pprof");
    if tool.exists() {
        return Some(tool);
    }
    fs::create_dir_all(&folder).ok()?;
    let depends = output(Command::new("apt-cache").args(["depends", "golang-go"]))?;
    let is_compiler = |word: &&str| *word != "golang-go" && word.starts_with("golang-") && word.ends_with("-go");
    let package = depends.split_whitespace().find(is_compiler)?;
    output(Command::new("apt-get").args(["download", package]).current_dir(&folder))?;
    let downloaded = fs::read_dir(&folder).ok()?.flatten().map(|entry| entry.path());
    let downloaded =
        downloaded.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "deb"))?;
    let mut unpack =
        Command::new("dpkg-deb").arg("--fsys-tarfile").arg(&downloaded).stdout(Stdio::piped()).spawn().ok()?;
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--to-stdout", "--wildcards", "*/pkg/tool/*/pprof"]).stdin(unpack.stdout.take()?);
    let found = tar.output().ok()?;
    let done = unpack.wait().ok()?;
    fs::remove_file(downloaded).ok()?;
    if !found.status.success() || !done.success() {
        return None;
    }
    // The file gets its name only when it is complete.
    let partial = folder.join(format!("pprof.{}", std::process::id()));
    fs::write(&partial, found.stdout).ok()?;
    let copied = Command::new("install").args(["-m", "755"]).arg(&partial).arg(folder.join("made")).status().ok()?;
    fs::remove_file(&partial).ok()?;
    fs::rename(folder.join("made"), &tool).ok()?;
    copied.success().then_some(tool)
}

fn output(command: &mut Command) -> Option<String> {
    let done = command.stderr(Stdio::null()).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Returns a folder below `place` with the files of a Debian package, which is fetched once.
/// `suite` names a Debian suite; `None` means this machine's own. The servers are the same for
/// both.
///
/// # Errors
/// The messages of Debian's programs, when the package can't be fetched.
pub fn debian_package(name: &str, suite: Option<&str>, place: &Path) -> Result<PathBuf, String> {
    let folder = place.join(format!("debian-{name}{}", suite.map(|suite| format!("-{suite}")).unwrap_or_default()));
    fetched_once(folder, |folder| fetch_package(name, suite, folder))
}

/// The folder, filled by `fetch` unless it is complete.
fn fetched_once(folder: PathBuf, fetch: impl FnOnce(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
    let complete = folder.join("complete");
    if complete.exists() {
        return Ok(folder);
    }
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    fetch(&folder)?;
    fs::write(complete, "").map_err(failed)?;
    Ok(folder)
}

fn fetch_package(name: &str, suite: Option<&str>, folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let download = folder.join("download");
    fs::create_dir_all(&download).map_err(failed)?;
    let options = suite.map(|suite| sources_of(suite, &download)).transpose()?.unwrap_or_default();
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(&options).args(["-qq", "-o", "APT::Sandbox::User=root"]).args(words).current_dir(&download);
        succeed(&mut command)
    };
    if suite.is_some() {
        apt(&["update"])?;
    }
    apt(&["download", name])?;
    let files = fs::read_dir(&download).map_err(failed)?.flatten().map(|entry| entry.path());
    let package = files.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    let package = package.ok_or_else(|| format!("apt-get downloaded no {name}"))?;
    succeed(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(folder))?;
    fs::remove_dir_all(&download).map_err(failed)
}

/// Options for `apt-get`, so that it uses this machine's servers with another suite, and lists of
/// its own in `folder`.
fn sources_of(suite: &str, folder: &Path) -> Result<Vec<String>, String> {
    let release = fs::read_to_string("/etc/os-release").map_err(|error| error.to_string())?;
    let own = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let own = own.ok_or("this system does not say which suite of Debian it is")?;
    let parts = folder.join("sources");
    let lists = folder.join("lists/partial");
    for made in [&parts, &lists, &folder.join("cache/archives/partial")] {
        fs::create_dir_all(made).map_err(|error| format!("{}: {error}", made.display()))?;
    }
    let own_list = PathBuf::from("/etc/apt/sources.list");
    let listed = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|entry| entry.path());
    for file in listed.chain([own_list]) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let name = file.file_name().unwrap_or_default();
        fs::write(parts.join(name), text.replace(own, suite)).map_err(|error| error.to_string())?;
    }
    let set = |name: &str, path: &Path| ["-o".to_owned(), format!("{name}={}", path.display())];
    let all = [
        set("Dir::Etc::SourceList", Path::new("/dev/null")),
        set("Dir::Etc::SourceParts", &parts),
        set("Dir::State::Lists", &folder.join("lists")),
        set("Dir::Cache", &folder.join("cache")),
    ];
    Ok(all.concat())
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr)))
}

/// Returns a folder below `place` with the files of Debian packages, which are fetched once. The
/// folder also has the packages that these depend on, if their names begin with one of `libraries`.
/// The first package names the folder.
///
/// # Errors
/// The messages of Debian's programs, when a package can't be fetched.
pub fn debian_packages(packages: &[&str], libraries: &[&str], place: &Path) -> Result<PathBuf, String> {
    let first = packages.first().ok_or("no package is named")?;
    fetched_once(place.join(format!("debian-all-{first}")), |folder| {
        for package in with_libraries(packages, libraries)? {
            let unpacked = debian_package(&package, None, place)?;
            succeed(Command::new("cp").args(["--archive", "--link"]).arg(unpacked.join("usr")).arg(folder))?;
        }
        Ok(())
    })
}

/// The packages and, recursively, their dependencies whose names begin with one of `libraries`.
fn with_libraries(packages: &[&str], libraries: &[&str]) -> Result<Vec<String>, String> {
    let mut all: Vec<String> = packages.iter().map(|&package| package.to_owned()).collect();
    let mut at = 0;
    while at < all.len() {
        let depends = output(Command::new("apt-cache").args(["depends", &all[at]]));
        let depends = depends.ok_or_else(|| format!("apt-cache does not know {}", all[at]))?;
        let names = depends.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        for name in names.filter(|name| libraries.iter().any(|start| name.starts_with(start))) {
            if !all.iter().any(|known| known == name) {
                all.push(name.to_owned());
            }
        }
        at += 1;
    }
    Ok(all)
}
