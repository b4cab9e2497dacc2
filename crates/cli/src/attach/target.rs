//! The process to attach to, and the reasons why that may be impossible.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use clr_diagnostics::{Error, Port, Process, ProcessInfo};
use clrscope_symbols::CLibrary;
use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::io::Errno;

use super::powers;
use crate::agent_file::Agent;
use crate::c_library;
use crate::errors::{Failure, quoted};
use crate::recorded_process;

/// Longest time for a runtime to answer with its process information.
const PATIENCE: Duration = Duration::from_secs(10);
/// Age below which a program may have no listening runtime yet: a start takes 0.1 s here, and more
/// on a busy machine.
const START: Duration = Duration::from_secs(3);
/// Interval between two looks at a starting program.
const LOOK: Duration = Duration::from_millis(20);
/// `e_machine` of x86-64.
const X86_64: u16 = 62;
/// Bytes of an executable that say for which processor it is.
const HEAD_BYTES: u64 = 64;

/// A process whose runtime answers.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) process: Process,
    pub(crate) port: Port,
    pub(crate) info: ProcessInfo,
    /// The agent that the process's C library can load.
    pub(crate) agent: &'static Agent,
}

impl Target {
    /// Finds the process with this id and checks everything that attaching needs.
    ///
    /// # Errors
    /// The reason why the process can't be attached to.
    pub(crate) fn find(pid: u32) -> Result<Self, Failure> {
        let process = Process::open(pid).map_err(|error| unreachable(pid, &error))?;
        if process.is_stopped() {
            return Err(stopped(pid));
        }
        let port = port_of_started(&process).map_err(|error| explained(&process, &error))?;
        check_machine(&process)?;
        let info = port.with_limit(PATIENCE).info().map_err(|error| explained(&process, &error))?;
        let library = c_library::of_process(&process).unwrap_or(match info.portable_rid.contains("musl") {
            true => CLibrary::Musl,
            false => CLibrary::Gnu,
        });
        let agent = c_library::agent_of_process(&process, library, &format!("cannot attach to process {pid}"))?;
        Ok(Self { process, port, info, agent })
    }

    /// Name of the program for the recording's file.
    pub(crate) fn name(&self) -> String {
        let words = self.process.command_line();
        let program = words.first().map(|word| Path::new(word).file_name().unwrap_or_default().to_string_lossy());
        let name = match self.info.entry_assembly.as_str() {
            "" => program.unwrap_or_default().into_owned(),
            assembly => assembly.to_owned(),
        };
        plain_name(&name)
    }

    /// Whether the process sees the same files as this one, with the same rights.
    pub(crate) fn shares_our_files(&self) -> bool {
        let place = |path: &str| fs::metadata(path).map(|there| (there.dev(), there.ino())).ok();
        let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
        let pid = self.process.pid().to_string();
        self.process.uid() == rustix::process::geteuid().as_raw()
            && namespace(&pid) == namespace("self")
            && place(&format!("/proc/{pid}/root")) == place("/proc/self/root")
    }
}

/// Turns a name that a process gave into a plain file name: the process is not trusted.
pub(crate) fn plain_name(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-+".contains(c);
    let name: String = name.chars().filter(|&c| is_plain(c)).take(100).collect();
    if name.trim_matches('.').is_empty() { "attached".to_owned() } else { name }
}

/// The diagnostic port of a process. For a process that was just started, waits until it has one.
fn port_of_started(process: &Process) -> Result<Port, Error> {
    loop {
        match process.port() {
            Err(Error::NotDotnet { .. } | Error::DiagnosticsOff { .. })
                if process.age() < START && process.is_alive() && !process.is_stopped() =>
            {
                std::thread::park_timeout(LOOK);
            }
            answer => return answer,
        }
    }
}

/// Translates an error about the process into a failure to attach.
fn unreachable(pid: u32, error: &Error) -> Failure {
    let ps = "'clrscope ps' lists the .NET processes";
    let (why, hint) = match error {
        Error::NoProcess { .. } => ("there is no such process".to_owned(), ps.to_owned()),
        Error::NotDotnet { .. } => ("it runs no .NET runtime that answers".to_owned(), ps.to_owned()),
        Error::DiagnosticsOff { .. } => without_socket(pid),
        Error::NotPermitted { .. } => powers::not_permitted(pid),
        Error::ForeignSocket { socket } => (
            format!("its socket {} belongs to another user", quoted(&socket.to_string_lossy())),
            "someone may have put it there to deceive you; remove it".to_owned(),
        ),
        Error::NobodyListens { .. } | Error::Closed { .. } => {
            ("it ended, or its runtime is shutting down".to_owned(), ps.to_owned())
        }
        Error::TimedOut { after, .. } => (
            format!("its runtime did not answer within {:.0} s", after.as_secs_f64()),
            "check whether it is stopped, or the machine overloaded, then try again".to_owned(),
        ),
        other => {
            (other.to_string(), "try again; if that does not help, record from the start: clrscope run".to_owned())
        }
    };
    Failure::new(format!("cannot attach to process {pid}"), why, hint)
}

/// Reason and hint for a runtime without a socket. In containers with a read-only root there is
/// often no place for one.
fn without_socket(pid: u32) -> (String, String) {
    match unusable_temporary_folder(pid) {
        Some(why) => (
            format!("its runtime has no diagnostics socket: {why}"),
            "start it with a folder for temporary files that it can write: a volume at /tmp, or TMPDIR".to_owned(),
        ),
        None => (
            "its runtime has no diagnostics socket, as with DOTNET_EnableDiagnostics=0".to_owned(),
            "start it without that variable, or record it from its start: clrscope run".to_owned(),
        ),
    }
}

/// The reason why the process can't create files in its temporary folder, where known.
fn unusable_temporary_folder(pid: u32) -> Option<String> {
    let process = Process::open(pid).ok()?;
    let inside = process.temporary_folder().ok()?;
    let folder = process.root().join(inside.strip_prefix("/").unwrap_or(&inside));
    let why = match statvfs(&folder) {
        Ok(file_system) if file_system.f_flag.contains(StatVfsMountFlags::RDONLY) => "is read-only",
        Err(Errno::NOENT) => "does not exist",
        Ok(_) | Err(_) => return None,
    };
    Some(format!("its folder for temporary files, {}, {why}", inside.display()))
}

/// As [`unreachable`], but if the process has ended or was stopped meanwhile, the failure says so.
pub(super) fn explained(process: &Process, error: &Error) -> Failure {
    let pid = process.pid();
    if process.is_alive() && process.is_stopped() {
        return stopped(pid);
    }
    unless_ended(process, unreachable(pid, error))
}

/// The failure, replaced if its cause is that the process has ended.
pub(super) fn unless_ended(process: &Process, failure: Failure) -> Failure {
    if process.is_alive() {
        return failure;
    }
    let what = format!("cannot attach to process {}", process.pid());
    Failure::new(what, "it ended while clrscope attached", "'clrscope ps' lists the .NET processes")
}

fn stopped(pid: u32) -> Failure {
    recorded_process::stopped(format!("cannot attach to process {pid}"), pid)
}

/// Checks the executable, before the runtime is asked anything.
fn check_machine(process: &Process) -> Result<(), Failure> {
    let mut head = Vec::new();
    let read = File::open(format!("/proc/{}/exe", process.pid()))
        .and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    // If the executable can't be read, the runtime's own answer decides.
    match read {
        Ok(_) => check_head(process.pid(), &head),
        Err(_) => Ok(()),
    }
}

/// Checks the first bytes of an executable. A file that is no Linux executable passes.
fn check_head(pid: u32, head: &[u8]) -> Result<(), Failure> {
    if !head.starts_with(b"\x7fELF") {
        return Ok(());
    }
    let machine = head.get(18..20).map_or(X86_64, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    if machine != X86_64 {
        let why = format!("it runs code for {}, and this agent is built for x64", machine_name(machine));
        let hint = "record it on a machine, or in an image, for x64";
        return Err(Failure::new(format!("cannot attach to process {pid}"), why, hint));
    }
    Ok(())
}

fn machine_name(machine: u16) -> String {
    match machine {
        3 => "x86 (32 bits)".to_owned(),
        40 => "arm (32 bits)".to_owned(),
        183 => "arm64".to_owned(),
        other => format!("another processor (ELF machine {other})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message about an executable that begins like the test's own, with other bytes at one
    /// place.
    fn said(at: usize, bytes: &[u8]) -> String {
        let mut head = std::fs::read("/proc/self/exe").expect("the test");
        head.truncate(HEAD_BYTES as usize);
        head[at..at + bytes.len()].copy_from_slice(bytes);
        check_head(7, &head).map_or_else(|failure| format!("{failure:?}"), |()| "nothing".to_owned())
    }

    #[test]
    fn programs_for_other_machines_are_refused_by_name() {
        assert_eq!(said(0, b"\x7fELF"), "nothing");
        assert_eq!(said(0, b"#!/bin/sh"), "nothing");
        for (machine, name) in
            [(183_u16, "arm64"), (40, "arm (32 bits)"), (3, "x86 (32 bits)"), (243, "ELF machine 243")]
        {
            let said = said(18, &machine.to_le_bytes());
            assert!(said.contains(name) && said.contains("x64") && said.contains("process 7"), "{said}");
        }
    }
}
