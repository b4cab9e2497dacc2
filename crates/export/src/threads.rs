//! Threads and processes as shown to other programs, with control characters escaped.

use clrscope_analysis::one_line;
use clrscope_recording::model::{Process, Recording, Thread};

/// Name of a thread (its role if it has no name), followed by the numbers that identify it, if any.
pub(crate) fn thread_name(thread: &Thread) -> String {
    let name = plain_thread_name(thread);
    match thread.id {
        0 => name,
        id => format!("{name} (thread {id}, OS thread {})", thread.os_id),
    }
}

/// Name of a thread without numbers; its role if it has no name.
pub(crate) fn plain_thread_name(thread: &Thread) -> String {
    one_line(if thread.name.is_empty() { thread.role.name() } else { &thread.name })
}

/// Name of a thread; if there are several processes, the process comes first.
pub(crate) fn thread_title(recording: &Recording, process: &Process, thread: &Thread) -> String {
    match recording.processes.len() {
        0 | 1 => thread_name(thread),
        _ => format!("process {}: {}", process.pid, thread_name(thread)),
    }
}

/// The command line of a process.
pub(crate) fn command_of(process: &Process) -> String {
    one_line(process.command.join(" "))
}

/// The command line of the recording.
pub(crate) fn command(recording: &Recording) -> String {
    match recording.processes.first() {
        _ if !recording.run.command.is_empty() => one_line(recording.run.command.join(" ")),
        Some(process) => command_of(process),
        None => String::new(),
    }
}
