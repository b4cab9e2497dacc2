//! Place of a recording: `NAME.clrs`, and `NAME.clrs.d` while the program runs.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clrscope_contract::request::without_arguments;
use clrscope_recording::writer::RunWriter;

use crate::errors::{Failure, one_line, reason, shown};

/// Number of names that are tried before giving up: so many recordings of one program in one second
/// are not plausible.
pub(crate) const MOST_NAMES: u32 = 10_000;

/// The two names of one recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordingPath {
    /// Path of the packed file, as the user gave it.
    pub(crate) file: PathBuf,
    /// Path of the directory that exists while the program runs; absolute, because the program may
    /// change its working folder.
    pub(crate) folder: PathBuf,
}

/// Data that the launcher writes into a new recording.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    /// The command as the user gave it.
    pub(crate) command: &'a [OsString],
    /// The instruments as the user gave them.
    pub(crate) instruments: &'a str,
    /// Whether to leave out the command's arguments.
    pub(crate) no_command_line: bool,
    /// Whether to hold the recording's lock. With the lock, attached processes notice the
    /// launcher's end, and other launchers know that the recording is still in use.
    pub(crate) is_held: bool,
}

impl RecordingPath {
    /// The names for a path given with `-o`, which may also be the directory's name.
    fn new(path: &Path) -> Result<Self, Failure> {
        refuse_stdout(path)?;
        let file = file_of(path).unwrap_or_else(|| path.to_owned());
        let name = file.file_name().ok_or_else(|| cannot_write(path, "it names no file", "write -o NAME.clrs"))?;
        let parent = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let parent = fs::canonicalize(parent)
            .map_err(|e| cannot_write(path, &format!("{}: {}", shown(parent), reason(&e)), "make the folder first"))?;
        let mut folder_name = name.to_owned();
        folder_name.push(".d");
        let folder = parent.join(folder_name);
        if folder.to_str().is_none() {
            let hint = "choose another folder or name with -o";
            return Err(cannot_write(path, "the agent takes its path as text, and this one is not UTF-8", hint));
        }
        Ok(Self { file, folder })
    }

    /// Path of the directory as text.
    pub(crate) fn folder_text(&self) -> String {
        self.folder.to_string_lossy().into_owned()
    }
}

/// Refuses `-o -`, which means standard output in other tools.
///
/// # Errors
/// Where `path` is `-`.
pub(crate) fn refuse_stdout(path: &Path) -> Result<(), Failure> {
    if path != Path::new("-") {
        return Ok(());
    }
    let why = "'-' would be standard output, and a recording is a file: views and exports read it out of order";
    Err(Failure::new("cannot write a recording to '-'", why, "write -o NAME.clrs (a file of that name is ./-)"))
}

/// `NAME.clrs` of `NAME.clrs.d`.
pub(crate) fn file_of(folder: &Path) -> Option<PathBuf> {
    let is_folder_name = folder.extension().is_some_and(|e| e == "d")
        && folder.file_stem().is_some_and(|stem| Path::new(stem).extension().is_some());
    is_folder_name.then(|| folder.with_extension(""))
}

/// Begins a recording at the path that the user gave.
///
/// # Errors
/// When the path exists and `force` is not given, or when the folder can't be created.
pub(crate) fn begin_at(path: &Path, force: bool, start: &Start<'_>) -> Result<(RecordingPath, RunWriter), Failure> {
    let place = RecordingPath::new(path)?;
    make_free(&place, force)?;
    match create(&place, start) {
        Ok(writer) => Ok((place, writer)),
        Err(error) => Err(cannot_write(&place.file, &reason(&error), "choose another place with -o")),
    }
}

/// Begins a recording in the current folder, under the first free name made of the program and the
/// time.
///
/// # Errors
/// When the folder can't be made.
pub(crate) fn begin_named(program: &str, start: &Start<'_>) -> Result<(RecordingPath, RunWriter), Failure> {
    begin_named_in(Path::new(""), program, start)
}

/// Like [`begin_named`], but in `folder`.
///
/// # Errors
/// When the folder can't be made.
pub(crate) fn begin_named_in(
    folder: &Path,
    program: &str,
    start: &Start<'_>,
) -> Result<(RecordingPath, RunWriter), Failure> {
    let stem = format!("{program}-{}", jiff::Zoned::now().strftime("%Y%m%d-%H%M%S"));
    for number in 1..MOST_NAMES {
        let place = RecordingPath::new(&folder.join(numbered(&stem, number)))?;
        if place.file.symlink_metadata().is_ok() {
            continue;
        }
        match create(&place, start) {
            Ok(writer) => return Ok((place, writer)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot_write(&place.file, &reason(&error), "choose another place with -o")),
        }
    }
    Err(cannot_write(Path::new(&stem), "all names are taken", "choose one with -o"))
}

fn numbered(stem: &str, number: u32) -> String {
    if number == 1 { format!("{stem}.clrs") } else { format!("{stem}-{number}.clrs") }
}

fn create(place: &RecordingPath, start: &Start<'_>) -> io::Result<RunWriter> {
    begin_in(&place.folder, start)
}

/// Begins a recording in a folder of any name, which must not exist.
///
/// # Errors
/// Errors of making the folder.
pub(crate) fn begin_in(folder: &Path, start: &Start<'_>) -> io::Result<RunWriter> {
    let command: Vec<String> = start.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let command = if start.no_command_line { without_arguments(&command) } else { command };
    let now = jiff::Timestamp::now().as_nanosecond();
    let create = if start.is_held { RunWriter::create_held } else { RunWriter::create };
    create(folder, &command, start.instruments, u64::try_from(now).unwrap_or(0))
}

/// Refuses an existing path, or, with `force`, removes an older recording's directory. The older
/// file stays until it is replaced, so that a failed run loses nothing.
fn make_free(place: &RecordingPath, force: bool) -> Result<(), Failure> {
    if place.file.is_dir() {
        return Err(cannot_write(&place.file, "it is a folder", "name a file in it"));
    }
    if place.file.metadata().is_ok_and(|there| !there.is_file()) {
        // A pipe or a device is not a recording that may be replaced.
        return Err(cannot_write(&place.file, "it is not a regular file", "choose another name with -o"));
    }
    let taken = [&place.file, &place.folder].into_iter().find(|path| path.symlink_metadata().is_ok());
    match taken {
        None => Ok(()),
        Some(path) if !force => {
            let why = format!("{} exists", shown(path));
            Err(cannot_write(&place.file, &why, "choose another name with -o, or overwrite it with --force"))
        }
        Some(_) => remove_folder(place),
    }
}

fn remove_folder(place: &RecordingPath) -> Result<(), Failure> {
    if place.folder.symlink_metadata().is_err() {
        return Ok(());
    }
    // --force permits to replace a recording, but not to empty an unrelated folder with its name.
    let is_recording = place.folder.is_dir() && !place.folder.is_symlink();
    if !is_recording || (!is_empty(&place.folder) && clrscope_recording::open(&place.folder).is_err()) {
        let why = format!("{} is there and is not a recording", shown(&place.folder));
        return Err(cannot_write(&place.file, &why, "choose another name with -o"));
    }
    remove(&place.folder).map_err(|e| cannot_write(&place.file, &reason(&e), "choose another name with -o"))
}

/// Removes the directory of a recording. The directory is renamed first, so that a concurrent
/// reader finds either all of its files or no directory.
///
/// # Errors
/// Errors of the file system. The rest then has the original name, or a hidden name next to it.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let unnamed = folder.with_file_name(format!(".{name}.removed-{}", std::process::id()));
    // In a sticky folder another user's directory can't be renamed, but it may be removable.
    let folder = if fs::rename(folder, &unnamed).is_ok() { &unnamed } else { folder };
    for _ in 0..50 {
        match fs::remove_dir_all(folder) {
            // A process that starts at this moment creates and removes its folder, which can
            // interfere.
            Err(error) if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => {}
            other => return other,
        }
        if !folder.exists() {
            return Ok(());
        }
        #[expect(clippy::disallowed_methods, reason = "nobody says when the other process is done")]
        thread::sleep(Duration::from_millis(10));
    }
    fs::remove_dir_all(folder)
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

fn cannot_write(path: &Path, why: &str, hint: &str) -> Failure {
    Failure::new(format!("cannot write the recording {}", shown(path)), one_line(why), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Start<'_> = Start { command: &[], instruments: "calls", no_command_line: false, is_held: false };

    #[test]
    fn a_dash_is_no_file_of_that_name() {
        let failure = begin_at(Path::new("-"), true, &START).expect_err("must be refused").to_string();
        assert!(failure.contains("standard output") && failure.contains("./-"), "{failure}");
        assert!(!Path::new("-.d").exists() && refuse_stdout(Path::new("./-")).is_ok());
    }

    #[test]
    fn a_taken_name_is_refused_without_force() {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("a.clrs");
        fs::write(&path, b"old").expect("a file");
        let failure = begin_at(&path, false, &START).expect_err("must be refused").to_string();
        assert!(failure.contains("exists") && failure.contains("--force"), "{failure}");
        let (place, _writer) = begin_at(&path, true, &START).expect("a place");
        assert_eq!(fs::read(&path).expect("the old file"), b"old", "kept until it is replaced");
        assert!(place.folder.ends_with("a.clrs.d") && place.folder.is_absolute());
    }

    #[test]
    fn force_takes_a_recording_away_but_nothing_else() {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("a.clrs");
        begin_at(&path, false, &START).expect("a place");
        assert!(begin_at(&path, false, &START).is_err());
        begin_at(&path, true, &START).expect("the older recording goes");
        let precious = temp.path().join("b.clrs.d");
        fs::create_dir(&precious).expect("a folder");
        fs::write(precious.join("thesis.txt"), b"years of work").expect("a file");
        let failure = begin_at(&temp.path().join("b.clrs"), true, &START).expect_err("must be refused").to_string();
        assert!(failure.contains("is not a recording"), "{failure}");
        assert!(precious.join("thesis.txt").exists());
    }

    #[test]
    fn force_replaces_no_pipe() {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("pipe.clrs");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
        assert!(made.success());
        for force in [false, true] {
            let failure = begin_at(&path, force, &START).expect_err("must be refused").to_string();
            assert!(failure.contains("not a regular file"), "{failure}");
        }
        assert!(path.exists());
    }

    #[test]
    fn the_directory_name_means_the_recording() {
        assert_eq!(file_of(Path::new("x/a.clrs.d")), Some(PathBuf::from("x/a.clrs")));
        assert_eq!(file_of(Path::new("a.clrs")), None);
        assert_eq!(file_of(Path::new("conf.d")).map(|p| p.display().to_string()), None);
        assert_eq!(numbered("a", 1), "a.clrs");
        assert_eq!(numbered("a", 3), "a-3.clrs");
    }

    #[test]
    fn a_missing_folder_is_named() {
        let failure = begin_at(Path::new("/no/such/folder/a.clrs"), false, &START).expect_err("must fail").to_string();
        assert!(failure.contains("'/no/such/folder': no such file or directory"), "{failure}");
    }
}
