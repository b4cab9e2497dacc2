//! Programs that ended by stack overflow. The runtime reports this only on stderr.

use std::fmt;

use clrscope_recording::model::{Exit, Process, Recording, Thread};

use crate::printable::one_line;

/// The signal with which the runtime ends a program after a stack overflow.
const SIGABRT: i32 = 6;
/// The signal that ends a program after a stack overflow that the runtime could not report.
const SIGSEGV: i32 = 11;
/// Base of the exit status that a shell reports for an end by signal.
const BY_SIGNAL: i32 = 128;

/// A thread that exhausted its stack, in a process that did not end normally.
#[derive(Debug, Clone, Copy)]
pub struct StackOverflow<'a> {
    /// The process.
    pub process: &'a Process,
    /// The thread.
    pub thread: &'a Thread,
}

/// The threads that probably ended the program by a stack overflow; empty if the program did not
/// end in such a way.
pub fn stack_overflows(recording: &Recording) -> Vec<StackOverflow<'_>> {
    let ends_alike = match recording.run.exit {
        Some(Exit::Signal(signal)) => matches!(signal, SIGABRT | SIGSEGV),
        Some(Exit::Code(code)) => matches!(code - BY_SIGNAL, SIGABRT | SIGSEGV),
        // The launcher does not see the end of a program that it did not start.
        None => true,
    };
    let broken = recording.processes.iter().filter(|process| ends_alike && !process.complete);
    let threads =
        broken.flat_map(|process| process.threads.iter().map(move |thread| StackOverflow { process, thread }));
    threads.filter(|found| found.thread.out_of_stack_at > 0 && found.thread.ended_ns.is_none()).collect()
}

impl fmt::Display for StackOverflow<'_> {
    /// The event and its remedy, in one sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Thread { id, name, out_of_stack_at, .. } = self.thread;
        match name.as_str() {
            "" => write!(f, "thread {id}")?,
            name => write!(f, "thread '{}'", one_line(name))?,
        }
        write!(
            f,
            " of process {} used up its stack, {out_of_stack_at} calls deep, and hooks take stack, too. To avoid it: a \
             larger stack (ulimit -s for the first thread, DOTNET_DefaultStackSize in hexadecimal for others), \
             DOTNET_TieredCompilation=0, or -i events or -i exceptions, which need no hooks",
            self.process.pid
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(exit: Option<Exit>, complete: bool, deep: u32) -> Recording {
        let thread = Thread { id: 3, out_of_stack_at: deep, ..Thread::default() };
        let process = Process { pid: 7, complete, threads: vec![Thread::default(), thread], ..Process::default() };
        let mut recording = Recording { processes: vec![process], ..Recording::default() };
        recording.run.exit = exit;
        recording
    }

    #[test]
    fn only_programs_that_end_as_by_stack_overflow_are_said_to() {
        let count = |exit, complete, deep| stack_overflows(&recording(exit, complete, deep)).len();
        for exit in [Some(Exit::Signal(6)), Some(Exit::Signal(11)), Some(Exit::Code(134)), None] {
            assert_eq!([count(exit, false, 100), count(exit, true, 100), count(exit, false, 0)], [1, 0, 0], "{exit:?}");
        }
        assert_eq!(count(Some(Exit::Signal(9)), false, 100), 0);
        assert_eq!(count(Some(Exit::Code(0)), false, 100), 0);
        let recording = recording(None, false, 100);
        let said = stack_overflows(&recording)[0].to_string();
        assert!(
            said.starts_with("thread 3 of process 7 used up its stack, 100 calls deep, and hooks take stack"),
            "{said}"
        );
    }
}
