//! Downloads package files with pip, shows the progress, and checks the files.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};

use super::{Fetcher, WITHOUT_NETWORK, WITHOUT_PIP, Wheel, cannot, cannot_use};
use crate::Failure;

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Whether this Python has pip.
pub(super) fn is_there(python: &OsStr) -> bool {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--version"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Downloads each wheel into its own folder below `staging`. Returns the files in the same order.
pub(super) fn download(fetcher: &Fetcher, staging: &Path, wheels: &[Wheel]) -> Result<Vec<PathBuf>, Failure> {
    let bar =
        if fetcher.quiet { ProgressBar::hidden() } else { visible_bar(wheels.iter().map(|wheel| wheel.bytes).sum()) };
    let files = wheels.iter().map(|wheel| download_one(fetcher, staging, wheel, &bar)).collect();
    bar.finish_and_clear();
    files
}

/// Drawn on stderr, and only if that is a terminal.
fn visible_bar(bytes: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn download_one(fetcher: &Fetcher, staging: &Path, wheel: &Wheel, bar: &ProgressBar) -> Result<PathBuf, Failure> {
    let folder = staging.join(wheel.package);
    let work = staging.join("work");
    for path in [&folder, &work] {
        fs::create_dir_all(path).map_err(|error| cannot_use(path, &error))?;
    }
    let before = bar.position();
    let mut child = start(fetcher, wheel, &folder, &work)?;
    let complaint = watch(&mut child, &[&folder, &work], before, wheel.bytes, bar)
        .map_err(|error| cannot(format!("pip: {error}"), WITHOUT_NETWORK))?;
    if let Some(complaint) = complaint {
        let why = format!("pip could not download {} {}: {complaint}", wheel.package, wheel.version);
        return Err(cannot(why, WITHOUT_NETWORK));
    }
    bar.set_position(before + wheel.bytes);
    let file = only_file(&folder)
        .ok_or_else(|| cannot(format!("pip brought no file for {}", wheel.package), WITHOUT_NETWORK))?;
    check(&file, wheel)?;
    Ok(file)
}

/// pip writes into its temporary folder first, so the temporary folder is placed where its size can
/// be watched.
fn start(fetcher: &Fetcher, wheel: &Wheel, folder: &Path, work: &Path) -> Result<Child, Failure> {
    let mut command = Command::new(&fetcher.python);
    command.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-input", "--disable-pip-version-check"]);
    command.args(["--progress-bar=off", "--only-binary=:all:"]).args(wheel.selectors);
    command.arg("--dest").arg(folder).arg(format!("{}=={}", wheel.package, wheel.version));
    command.env("TMPDIR", work).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(|error| cannot(format!("pip does not start: {error}"), WITHOUT_PIP))
}

/// Waits for pip; returns its error message if it fails.
fn watch(
    child: &mut Child,
    folders: &[&Path],
    before: u64,
    bytes: u64,
    bar: &ProgressBar,
) -> io::Result<Option<String>> {
    let mut stderr = child.stderr.take();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(pipe) = &mut stderr {
            // A broken pipe has already delivered all its data.
            let _ = pipe.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let so_far = folders.iter().map(|folder| size_of(folder)).sum::<u64>();
        bar.set_position(before + so_far.min(bytes));
        #[expect(clippy::disallowed_methods, reason = "the progress is shown now and then")]
        thread::sleep(LOOK_EVERY);
    };
    let text = reader.join().unwrap_or_default();
    Ok(if status.success() { None } else { Some(last_error(&text)) })
}

/// pip summarises the error in its last line that begins with ERROR.
fn last_error(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().rfind(|line| line.starts_with("ERROR:")).or_else(|| lines().next_back());
    line.map_or_else(|| "it says nothing more".to_owned(), |line| line.trim_start_matches("ERROR:").trim().to_owned())
}

fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
            Ok(metadata) => metadata.len(),
            // The file was moved or removed in the meantime.
            Err(_) => 0,
        })
        .sum()
}

fn only_file(folder: &Path) -> Option<PathBuf> {
    let mut files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let file = files.next()?;
    if files.next().is_some() { None } else { Some(file) }
}

fn check(file: &Path, wheel: &Wheel) -> Result<(), Failure> {
    let found = sha256(file).map_err(|error| cannot_use(file, &error))?;
    if found == wheel.sha256 {
        return Ok(());
    }
    let why = format!(
        "{} {} is not the expected file: its SHA-256 is {found}, not {}",
        wheel.package, wheel.version, wheel.sha256
    );
    Err(cannot(why, WITHOUT_NETWORK))
}

fn sha256(file: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(file)?, &mut hash)?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::RUNTIME;
    use std::os::unix::fs::PermissionsExt;

    /// A fake python3 whose pip runs these shell lines; `$dest` is pip's target folder.
    fn fake_python(folder: &Path, lines: &str) -> Fetcher {
        let python = folder.join("python3");
        let find_dest = "while [ $# -gt 0 ]; do [ \"$1\" = --dest ] && dest=$2; shift; done";
        fs::write(&python, format!("#!/bin/sh\n[ \"$3\" = --version ] && exit 0\n{find_dest}\n{lines}\n"))
            .expect("write");
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("chmod");
        Fetcher { cache: folder.join("cache"), python: python.into(), quiet: true }
    }

    #[test]
    fn a_wrong_file_is_refused_and_nothing_stays() {
        let temp = tempfile::tempdir().expect("temp dir");
        let fetcher = fake_python(temp.path(), "echo evil > \"$dest/artifacts_keyring.whl\"");
        let failure = fetcher.fetch().expect_err("the hash differs");
        assert!(failure.why.contains("is not the expected file") && failure.why.contains(RUNTIME.sha256), "{failure}");
        let left: Vec<_> =
            fs::read_dir(&fetcher.cache).expect("there").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["fetch.lock"]);
    }

    #[test]
    fn the_users_proxy_trouble_is_told_in_pips_words() {
        let temp = tempfile::tempdir().expect("temp dir");
        let lines = "echo 'WARNING: Retrying' >&2; echo 'ERROR: Could not find a version' >&2; echo 'ERROR: No matching distribution' >&2; exit 1";
        let failure = fake_python(temp.path(), lines).fetch().expect_err("pip fails");
        assert_eq!(failure.why, "pip could not download artifacts-keyring 1.0.0: No matching distribution");
        assert!(failure.hint.contains("DOTNET_ROOT"));
    }

    #[test]
    fn pip_that_brings_nothing_is_a_failure() {
        let temp = tempfile::tempdir().expect("temp dir");
        let failure = fake_python(temp.path(), "exit 0").fetch().expect_err("no file");
        assert_eq!(failure.why, "pip brought no file for artifacts-keyring");
    }
}
