//! The program that `run` starts: finds its file, and checks that it can be started.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::errors::{EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND, Failure, quoted, shell_word, shown};

/// A program that exists and may be started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// Path for the operating system, or a bare name found on `PATH`.
    pub(crate) executable: OsString,
    /// Arguments of the program, unchanged.
    pub(crate) arguments: Vec<OsString>,
    /// Name for the recording.
    pub(crate) name: String,
}

/// Finds the program of a command as given after `run --`.
///
/// # Errors
/// Exit code 127 when there is no such file, 126 when it can't be executed.
pub(crate) fn resolve(
    command: &[OsString],
    dotnet: impl FnOnce() -> Result<PathBuf, Failure>,
) -> Result<Program, Failure> {
    let (given, arguments) = command.split_first().ok_or_else(nothing_given)?;
    let path = Path::new(given);
    let name = |name: Option<&OsStr>| recording_name(name.unwrap_or(given));
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("dll")) {
        return resolve_library(path, arguments, name(path.file_stem()), dotnet);
    }
    if path.extension().is_some_and(|e| PROJECTS.iter().any(|project| e.eq_ignore_ascii_case(project)))
        && path.is_file()
    {
        return Err(is_project(path));
    }
    if given.as_bytes().contains(&b'/') {
        check_file(path)?;
    } else {
        check_on_path(given).map_err(|failure| where_dotnet_is(failure, given, dotnet))?;
    }
    Ok(Program { executable: given.clone(), arguments: arguments.to_vec(), name: name(path.file_name()) })
}

/// Extensions of files that `dotnet run` builds and runs.
const PROJECTS: [&str; 3] = ["csproj", "fsproj", "vbproj"];

fn is_project(path: &Path) -> Failure {
    let run = format!("clrscope run -- dotnet run --project {}", shell_word(&path.to_string_lossy()));
    not_executable(path, "it is a project, not a program", &run)
}

/// Resolves `app.dll` to `dotnet app.dll`.
fn resolve_library(
    library: &Path,
    arguments: &[OsString],
    name: String,
    dotnet: impl FnOnce() -> Result<PathBuf, Failure>,
) -> Result<Program, Failure> {
    if !library.is_file() {
        return Err(not_found(library));
    }
    let mut all = vec![library.as_os_str().to_owned()];
    all.extend_from_slice(arguments);
    Ok(Program { executable: dotnet()?.into_os_string(), arguments: all, name })
}

fn check_file(path: &Path) -> Result<(), Failure> {
    match path.metadata() {
        Err(_) => Err(not_found(path)),
        Ok(metadata) if metadata.is_dir() => Err(not_executable(path, "it is a folder", "name a file in it")),
        Ok(_) if access(path, Access::EXEC_OK).is_err() => {
            Err(not_executable(path, "it is not marked executable", &format!("chmod +x {}", shown(path))))
        }
        Ok(_) => Ok(()),
    }
}

/// Whether a folder of `PATH` has a program of this name.
///
/// # Errors
/// Exit code 127 when no folder has it, 126 when the file can't be executed.
pub(super) fn check_on_path(name: &OsStr) -> Result<(), Failure> {
    let variable = env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    let mut refused = None;
    for candidate in env::split_paths(&variable).map(|folder| folder.join(name)) {
        match check_file(&candidate) {
            Ok(()) => return Ok(()),
            Err(failure) if failure.code() == EXIT_NOT_EXECUTABLE && candidate.is_file() => refused = Some(failure),
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| not_on_path(name)))
}

/// Improves the failure if `dotnet` is installed but not on `PATH`, which is common and easy to
/// fix.
fn where_dotnet_is(failure: Failure, given: &OsStr, dotnet: impl FnOnce() -> Result<PathBuf, Failure>) -> Failure {
    match dotnet() {
        Ok(host) if given == "dotnet" && failure.code() == EXIT_NOT_FOUND => {
            let hint = format!("write {}, or 'clrscope run app.dll', which finds it", shown(&host));
            Failure::new(failure.what(), failure.why(), hint).with_code(EXIT_NOT_FOUND)
        }
        _ => failure,
    }
}

fn nothing_given() -> Failure {
    Failure::usage("no program given", "PROGRAM is required", "clrscope run -- dotnet app.dll")
}

fn not_found(path: &Path) -> Failure {
    Failure::new(
        format!("cannot start {}", shown(path)),
        "there is no such file",
        "check the spelling and the current folder",
    )
    .with_code(EXIT_NOT_FOUND)
}

fn not_on_path(name: &OsStr) -> Failure {
    let here = Path::new(".").join(name);
    let hint = match here.is_file() {
        true => format!("for the file in this folder write {}", shown(&here)),
        false => "check the spelling, or give the path of the program".to_owned(),
    };
    Failure::new(
        format!("cannot start {}", quoted(&name.to_string_lossy())),
        "no folder of PATH has a program of that name",
        hint,
    )
    .with_code(EXIT_NOT_FOUND)
}

fn not_executable(path: &Path, why: &str, hint: &str) -> Failure {
    Failure::new(format!("cannot start {}", shown(path)), why, hint).with_code(EXIT_NOT_EXECUTABLE)
}

/// The file name without characters that are special to a terminal or a shell.
fn recording_name(name: &OsStr) -> String {
    let clean = |c: char| if c.is_control() || c == '/' || c == '\u{fffd}' { '_' } else { c };
    name.to_string_lossy().chars().map(clean).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn command(words: &[&OsStr]) -> Vec<OsString> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }

    fn no_dotnet() -> Result<PathBuf, Failure> {
        Err(Failure::new("no dotnet", "none", "none"))
    }

    #[test]
    fn a_library_is_given_to_dotnet_with_all_its_arguments() {
        let temp = tempfile::tempdir().expect("a folder");
        let library = temp.path().join("My App.dll");
        fs::write(&library, b"MZ").expect("a file");
        let odd = OsStr::from_bytes(b"a\xff b");
        let given = command(&[library.as_os_str(), odd]);
        let program = resolve(&given, || Ok(PathBuf::from("/net/dotnet"))).expect("a program");
        assert_eq!(program.executable, "/net/dotnet");
        assert_eq!(program.arguments, given);
        assert_eq!(program.name, "My App");
    }

    #[test]
    fn what_cannot_be_started_has_the_shells_exit_codes() {
        let temp = tempfile::tempdir().expect("a folder");
        let plain = temp.path().join("plain");
        fs::write(&plain, b"text").expect("a file");
        let code = |words: &[&OsStr]| resolve(&command(words), no_dotnet).expect_err("must fail").code();
        assert_eq!(code(&[plain.as_os_str()]), EXIT_NOT_EXECUTABLE);
        assert_eq!(code(&[temp.path().as_os_str()]), EXIT_NOT_EXECUTABLE);
        assert_eq!(code(&[temp.path().join("none").as_os_str()]), EXIT_NOT_FOUND);
        assert_eq!(code(&[temp.path().join("none.dll").as_os_str()]), EXIT_NOT_FOUND);
        assert_eq!(code(&[OsStr::new("surely-no-such-program")]), EXIT_NOT_FOUND);
    }

    #[test]
    fn dotnet_that_is_not_on_the_path_is_pointed_at() {
        let failure = check_on_path(OsStr::new("surely-no-such-program")).expect_err("must fail");
        let pointed = where_dotnet_is(failure.clone(), OsStr::new("dotnet"), || Ok(PathBuf::from("/net/dotnet")));
        assert!(pointed.hint().starts_with("write '/net/dotnet'"), "{pointed}");
        assert_eq!(where_dotnet_is(failure.clone(), OsStr::new("dotnet"), no_dotnet), failure);
    }

    #[test]
    fn programs_on_the_path_are_found() {
        let program = resolve(&command(&[OsStr::new("sh"), OsStr::new("-c")]), no_dotnet).expect("a program");
        assert_eq!((program.executable.as_os_str(), program.name.as_str()), (OsStr::new("sh"), "sh"));
    }
}
