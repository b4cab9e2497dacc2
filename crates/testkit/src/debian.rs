//! Third-party programs from Debian packages, for tests that compare with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The reference reader of profiles, `go tool pprof`. It is extracted once to `place` from the Go
/// compiler on which Debian's package `golang-go` depends. `None` where it is not available.
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
