//! Processes that run .NET, as `/proc` shows them.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Error, Port};

/// File name of the runtime's library. A single-file program contains the runtime and does not map
/// this file.
const RUNTIME: &[u8] = b"/libcoreclr.so";

/// First part of the name of a runtime's diagnostics socket.
const DIAGNOSTICS: &str = "dotnet-diagnostic";

/// A process of this machine that may run .NET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pid: u32,
    inner_pid: u32,
    uid: u32,
    gid: u32,
    started: u64,
}

/// End of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProcessEnd {
    /// The process returned this exit code.
    Code(i32),
    /// A signal with this number ended the process.
    Signal(i32),
}

/// Lists the visible processes that run .NET, ordered by id: processes with a diagnostics socket,
/// and processes without one that have mapped the runtime's library. A process of another user is
/// listed if its socket is in the calling process's folder for temporary files.
#[must_use]
pub fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids.into_iter().filter_map(|pid| Process::open(pid).ok()).filter(Process::is_dotnet).collect()
}

impl Process {
    /// Opens the process with this id, whether or not it runs .NET.
    ///
    /// # Errors
    /// [`Error::NoProcess`].
    pub fn open(pid: u32) -> Result<Self, Error> {
        let gone = || Error::NoProcess { pid };
        let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|_| gone())?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        // Threads also have such folders, which listings of `/proc` do not show.
        if field("Tgid").and_then(|tgid| tgid.trim().parse().ok()) != Some(pid) {
            return Err(gone());
        }
        // File access depends on the effective id, the second of four.
        let id = |name| field(name).and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
        let inner = field("NSpid").and_then(|ids| ids.split_whitespace().last()?.parse().ok());
        Ok(Self {
            pid,
            inner_pid: inner.unwrap_or(pid),
            uid: id("Uid").ok_or_else(gone)?,
            gid: id("Gid").ok_or_else(gone)?,
            started: stat(pid).ok_or_else(gone)?.1,
        })
    }

    /// Process id in the namespace of the calling process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Process id in the innermost namespace of the process: inside a container it differs from the
    /// id outside.
    #[must_use]
    pub fn inner_pid(&self) -> u32 {
        self.inner_pid
    }

    /// The effective user id of the process.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The effective group id of the process.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// Start time of the process, in clock ticks since the machine's start. Process id and start
    /// time together identify a process uniquely.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.started
    }

    /// How long the process has been running.
    #[must_use]
    pub fn age(&self) -> Duration {
        let up = fs::read_to_string("/proc/uptime").unwrap_or_default();
        let up: f64 = up.split(' ').next().and_then(|seconds| seconds.parse().ok()).unwrap_or_default();
        let started = self.started as f64 / rustix::param::clock_ticks_per_second() as f64;
        Duration::try_from_secs_f64(up - started).unwrap_or_default()
    }

    /// CPU time of all threads of the process so far; zero after its end.
    #[must_use]
    pub fn cpu_time(&self) -> Duration {
        let text = fs::read(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let ticks = parse_cpu_ticks(&String::from_utf8_lossy(&text)).unwrap_or(0);
        Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Resident memory of the process in bytes; `None` after its end.
    #[must_use]
    pub fn resident_bytes(&self) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{}/statm", self.pid)).ok()?;
        let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    }

    /// Whether this process still exists. A new process with the same id does not count.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        stat(self.pid).is_some_and(|(state, started)| started == self.started && !"ZX".contains(state))
    }

    /// Exit code or signal of the process. `None` while the process runs, and again after its
    /// parent has waited for it: then the system no longer has the status.
    #[must_use]
    pub fn end(&self) -> Option<ProcessEnd> {
        let text = fs::read(format!("/proc/{}/stat", self.pid)).ok()?;
        let text = String::from_utf8_lossy(&text);
        parse_stat(&text).filter(|&(state, started)| state == 'Z' && started == self.started)?;
        parse_end(&text)
    }

    /// Whether a signal or a debugger has stopped the process, so that it does not answer.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        stat(self.pid).is_some_and(|(state, _)| "Tt".contains(state))
    }

    /// The words of the command line. Every user may read them.
    #[must_use]
    pub fn command_line(&self) -> Vec<String> {
        let bytes = fs::read(self.proc_path("cmdline")).unwrap_or_default();
        let text = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
        text.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    /// The root directory of the process: `/proc/PID/root`.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.proc_path("root")
    }

    /// Folder for temporary files of the process, as a path inside the process: `TMPDIR` of its
    /// environment, or `/tmp`.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] and [`Error::NoProcess`].
    pub fn temporary_folder(&self) -> Result<PathBuf, Error> {
        let given = self.variable("TMPDIR")?.filter(|value| value.starts_with('/'));
        Ok(PathBuf::from(given.unwrap_or_else(|| "/tmp".to_owned())))
    }

    /// Value of a variable in the environment that the process was started with.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] and [`Error::NoProcess`].
    pub fn variable(&self, name: &str) -> Result<Option<String>, Error> {
        let environment = fs::read(self.proc_path("environ")).map_err(|error| self.unreadable(&error))?;
        let mut entries = environment.split(|&byte| byte == 0);
        let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        Ok(value.map(|value| String::from_utf8_lossy(value).into_owned()))
    }

    /// The files that the process has mapped, as paths inside the process, without duplicates.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] and [`Error::NoProcess`].
    pub fn mapped_files(&self) -> Result<Vec<PathBuf>, Error> {
        let maps = fs::read(self.proc_path("maps")).map_err(|error| self.unreadable(&error))?;
        let paths = maps.split(|&byte| byte == b'\n').filter_map(|line| {
            let at = line.iter().position(|&byte| byte == b'/')?;
            let path = &line[at..];
            Some(path.strip_suffix(b" (deleted)").unwrap_or(path))
        });
        let mut files: Vec<_> = paths.map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path))).collect();
        files.sort_unstable();
        files.dedup();
        Ok(files)
    }

    /// The diagnostics port of the process.
    ///
    /// # Errors
    /// [`Error::NotDotnet`], [`Error::DiagnosticsOff`], [`Error::NotPermitted`],
    /// [`Error::ForeignSocket`], [`Error::NoProcess`].
    pub fn port(&self) -> Result<Port, Error> {
        match self.socket(DIAGNOSTICS)? {
            Some(socket) => Ok(Port::at(socket)),
            None if self.has_runtime()? => Err(Error::DiagnosticsOff { pid: self.pid }),
            None => Err(Error::NotDotnet { pid: self.pid }),
        }
    }

    /// Path of the process's socket `NAME-PID-START-socket` in its folder for temporary files;
    /// `None` if there is none. The runtime names its diagnostics socket in this way. If another
    /// user has taken that name, the result is a socket named `NAME-PID-START-WORD-socket`, where
    /// WORD can be any word.
    ///
    /// # Errors
    /// [`Error::NotPermitted`], [`Error::ForeignSocket`], [`Error::NoProcess`].
    pub fn socket(&self, name: &str) -> Result<Option<PathBuf>, Error> {
        let inside = self.temporary_folder()?;
        let folder = self.root().join(inside.strip_prefix("/").unwrap_or(&inside));
        let Some(socket) = self.socket_in(&folder, name) else { return Ok(None) };
        // Any user with write access to the folder could have created the socket. Then the wrong
        // user would answer, or would make us wait.
        let owner = fs::symlink_metadata(&socket).map_err(|error| self.unreadable(&error))?.uid();
        if self.may_own(owner) {
            return Ok(Some(socket));
        }
        self.socket_beside(&folder, name).map(Some).ok_or(Error::ForeignSocket { socket })
    }

    /// Whether a file with this owner in a folder of temporary files may be the process's.
    fn may_own(&self, owner: u32) -> bool {
        owner == self.uid || owner == 0
    }

    /// Finds the socket of the process when another user has taken its usual name:
    /// `NAME-PID-START-WORD-socket`.
    fn socket_beside(&self, folder: &Path, name: &str) -> Option<PathBuf> {
        let is_own = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|there| self.may_own(there.uid()));
        let prefix = format!("{name}-{}-{}-", self.inner_pid, self.started);
        sockets(folder, &prefix).map(|entry| entry.path()).find(is_own)
    }

    /// Finds the socket of the process in a folder. The socket's name contains the start time,
    /// which differs in another time namespace.
    fn socket_in(&self, folder: &Path, name: &str) -> Option<PathBuf> {
        let prefix = format!("{name}-{}-", self.inner_pid);
        let exact = folder.join(format!("{prefix}{}-socket", self.started));
        if fs::symlink_metadata(&exact).is_ok() {
            return Some(exact);
        }
        // If both processes share a clock, a socket with another start time is a leftover of an
        // earlier process with this id. The folder of temporary files is listed only for processes
        // that have a runtime.
        if self.shares_our_clock() || !self.has_runtime().unwrap_or(false) {
            return None;
        }
        let modified = |entry: &fs::DirEntry| entry.metadata().and_then(|metadata| metadata.modified()).ok();
        sockets(folder, &prefix).max_by_key(modified).map(|entry| entry.path())
    }

    /// Whether the process is in the same time namespace as this one, so that both measure the same
    /// time since the machine's start.
    fn shares_our_clock(&self) -> bool {
        let ours = fs::read_link("/proc/self/ns/time");
        // Kernels before 5.6 have no time namespaces, so all processes share one clock.
        ours.map_or(true, |ours| fs::read_link(self.proc_path("ns/time")).is_ok_and(|theirs| theirs == ours))
    }

    /// Whether the runtime's library is mapped.
    fn has_runtime(&self) -> Result<bool, Error> {
        Ok(self.mapped_files()?.iter().any(|file| file.as_os_str().as_bytes().ends_with(RUNTIME)))
    }

    /// Whether the process visibly runs .NET. [`processes`] lists all such processes.
    #[must_use]
    pub fn is_dotnet(&self) -> bool {
        match self.port() {
            Ok(_) | Err(Error::DiagnosticsOff { .. } | Error::ForeignSocket { .. }) => true,
            // Every user may list our own folder of temporary files.
            Err(Error::NotPermitted { .. }) => {
                let name = format!("{DIAGNOSTICS}-{}-{}-socket", self.inner_pid, self.started);
                [std::env::temp_dir(), PathBuf::from("/tmp")].iter().any(|folder| folder.join(&name).exists())
            }
            Err(_) => false,
        }
    }

    fn proc_path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.pid))
    }

    fn unreadable(&self, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Error::NotPermitted { pid: self.pid, uid: self.uid },
            _ => Error::NoProcess { pid: self.pid },
        }
    }
}

/// State and start time of a process.
fn stat(pid: u32) -> Option<(char, u64)> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&text))
}

/// Parses the fields after the name. The name may contain any characters, also brackets and spaces.
fn parse_stat(text: &str) -> Option<(char, u64)> {
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    Some((fields.next()?.chars().next()?, fields.nth(18)?.parse().ok()?))
}

/// Sum of the clock ticks in user mode and in kernel mode, fields 14 and 15.
fn parse_cpu_ticks(text: &str) -> Option<u64> {
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// The exit status for the parent, field 52.
fn parse_end(text: &str) -> Option<ProcessEnd> {
    let (_, fields) = text.rsplit_once(") ")?;
    let status: i32 = fields.split_ascii_whitespace().nth(49)?.parse().ok()?;
    Some(match status & 0x7F {
        0 => ProcessEnd::Code(status >> 8 & 0xFF),
        signal => ProcessEnd::Signal(signal),
    })
}

/// Lists the entries of a folder whose names begin with `prefix` and have the form of a process's
/// socket.
fn sockets(folder: &Path, prefix: &str) -> impl Iterator<Item = fs::DirEntry> {
    let is_it = move |name: &[u8]| name.starts_with(prefix.as_bytes()) && name.ends_with(b"-socket");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(move |entry| is_it(entry.file_name().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_known_until_its_parent_is_told() {
        for (script, end) in [("exit 7", ProcessEnd::Code(7)), ("kill -KILL $$", ProcessEnd::Signal(9))] {
            let mut child = std::process::Command::new("sh").args(["-c", script]).spawn().expect("a shell");
            let process = Process::open(child.id()).expect("it is there until it is waited for");
            let began = std::time::Instant::now();
            while process.is_alive() && began.elapsed() < Duration::from_secs(60) {
                std::thread::yield_now();
            }
            assert_eq!(process.end(), Some(end), "{script}");
            child.wait().expect("it ended");
            assert_eq!(process.end(), None, "{script}");
        }
        assert_eq!(Process::open(std::process::id()).expect("this one").end(), None);
    }

    #[test]
    fn this_process_is_there_and_runs_no_dotnet() {
        let me = Process::open(std::process::id()).expect("it is there");
        assert!(me.is_alive() && !me.is_stopped());
        assert!(me.age() < Duration::from_secs(24 * 60 * 60), "{:?}", me.age());
        assert_eq!(me.uid(), rustix::process::geteuid().as_raw());
        let own = std::env::current_exe().expect("a path");
        assert!(me.mapped_files().expect("maps").contains(&own));
        assert!(matches!(me.port(), Err(Error::NotDotnet { .. })));
        assert_eq!(me.command_line(), std::env::args().collect::<Vec<_>>());
    }

    #[test]
    fn no_process_and_no_thread_is_a_process() {
        assert!(matches!(Process::open(u32::MAX - 1), Err(Error::NoProcess { .. })));
        let thread = std::thread::spawn(|| {
            let id = fs::read_link("/proc/thread-self").expect("a link");
            id.file_name().and_then(|name| name.to_str()?.parse().ok()).expect("a number")
        });
        let id: u32 = thread.join().expect("a thread");
        assert!(matches!(Process::open(id), Err(Error::NoProcess { .. })));
    }

    #[test]
    fn names_of_programs_may_hold_anything() {
        let fields: Vec<String> = (0..40).map(|field| field.to_string()).collect();
        let text = format!("7 (a) b) S {}", fields.join(" "));
        assert_eq!(parse_stat(&text), Some(('S', 18)));
        assert_eq!(parse_stat("7 (a"), None);
    }
}
