//! The process that records one program: `clrscope attach --every`.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::WatchPlan;
use crate::periods::{Event, Watched};

/// How a recording process uses memory, by variables of glibc: what it needs for a moment once in a
/// period goes back to the system. A recorder kept 10 MB without this, and keeps 1 MB. Other C
/// libraries take no notice.
const MEMORY: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "1"), ("MALLOC_MMAP_THRESHOLD_", "131072"), ("MALLOC_TRIM_THRESHOLD_", "131072")];

/// A process that records one program.
#[derive(Debug)]
pub(super) struct Recorder {
    child: Child,
    output: ChildStdout,
    /// Bytes of a line that is not complete.
    rest: Vec<u8>,
    is_told_to_end: bool,
}

impl Recorder {
    /// Starts the process for a program, which records into `folder`.
    ///
    /// # Errors
    /// When the system starts no process.
    pub(super) fn start(plan: &WatchPlan, watched: Watched, pid: u32, folder: &Path, rate: u32) -> io::Result<Self> {
        // The file of this process, also after an update has replaced it.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("clrscope")
            .arg("attach")
            .args(&plan.options)
            .args(["--quiet", "--rate", &rate.to_string(), "--watched", &watched.to_string(), "-o"])
            .args([folder.as_os_str(), OsStr::new("--"), &OsString::from(pid.to_string())])
            .envs(MEMORY)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // Ctrl-C reaches the watch alone, which ends its recordings.
            .process_group(0);
        let mut child = command.spawn()?;
        let output = child.stdout.take().ok_or(ErrorKind::BrokenPipe)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        Ok(Self { child, output, rest: Vec::new(), is_told_to_end: false })
    }

    /// Id of this process.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The events that this process reported since the last call.
    pub(super) fn events(&mut self) -> Vec<Event> {
        let mut bytes = [0; 1024];
        loop {
            match self.output.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => self.rest.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nothing more for now.
                Err(_) => break,
            }
        }
        let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') else { return Vec::new() };
        let rest = self.rest.split_off(end + 1);
        let lines = std::mem::replace(&mut self.rest, rest);
        String::from_utf8_lossy(&lines).lines().filter_map(Event::parse).collect()
    }

    /// Exit status of this process; `None` while it runs.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends the recording, in an orderly way. A second call does nothing.
    pub(super) fn end(&mut self) {
        if std::mem::replace(&mut self.is_told_to_end, true) {
            return;
        }
        if let Some(pid) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw) {
            // It was not waited for, so the number is its own.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}
