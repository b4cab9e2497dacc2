//! Suspensions of the whole runtime, in which the runtime's own walk of each thread's stack
//! (`DoStackSnapshot`) is compared with ours. Compiled only with the feature `stops-on-demand`,
//! which no distributed agent has.
//!
//! Both walks concern the same suspended thread. The runtime's walk begins with its own data on the
//! thread, ours with the system call in which the thread waits. The words of its stack are copied
//! before the threads resume. Both walks must give the same methods with the same return addresses,
//! in the same order.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use clr_profiler::{FunctionId, ProfilerInfo, StackFrame, StackWalk, Suspended, ThreadId};
use clrscope_recording::writer::monotonic_ns;

use super::frames::Frames;
use super::os::task::{StackRanges, Task, copy_stack};
use super::raw::{RawSample, Registers, UNKNOWN_FRAME};
use super::unwind::{Ending, OnMissingWords};
use crate::code::{CodeMap, Place};

/// The environment variable that names the file for the outcome.
const VARIABLE: &str = "CLRSCOPE_TEST_STOPS";
/// Pause between two suspensions.
const BETWEEN_NS: u64 = 2_000_000;
/// Longest wait of a suspension for another one, such as that of a collection.
const PATIENCE: Duration = Duration::from_millis(20);
/// Most differences that are reported in full.
const EXAMPLES: usize = 20;

/// The suspensions made so far, and their results.
pub(super) struct Stops {
    file: PathBuf,
    next_ns: u64,
    /// Number of each outcome.
    counts: BTreeMap<String, u64>,
    examples: Vec<String>,
}

/// A thread at a suspension: its methods by the runtime, innermost first, and its stack.
struct StoppedThread {
    by_runtime: Vec<StackFrame>,
    sample: RawSample,
}

/// A method on a stack.
struct Method {
    id: FunctionId,
    /// Address at which the method resumes.
    ip: usize,
}

impl Method {
    /// The method at an address that the walker found; `None` for a method that the runtime's walk
    /// leaves out.
    fn at(ip: usize, map: &mut CodeMap, time_ns: u64) -> Option<Self> {
        let Place::Method(body) = resuming_code(ip, map, time_ns) else { return None };
        (!is_hidden(&map.name(&body).unwrap_or_default())).then_some(Self { id: body.id(), ip })
    }
}

impl Stops {
    /// Prepares suspensions, if they are requested.
    pub(super) fn asked_for() -> Option<Self> {
        let file = std::env::var_os(VARIABLE)?.into();
        Some(Self { file, next_ns: 0, counts: BTreeMap::new(), examples: Vec::new() })
    }

    fn count(&mut self, what: &str, more: u64) {
        *self.counts.entry(what.to_owned()).or_default() += more;
    }

    /// Suspends the runtime and compares the walks, if the last suspension is long enough ago.
    pub(super) fn round(&mut self, info: &ProfilerInfo, frames: &mut Frames) {
        if monotonic_ns() < self.next_ns {
            return;
        }
        let stopped = self.stop(info);
        // Includes code that was compiled while the runtime came to a stop.
        frames.update();
        for stopped in &stopped {
            frames.look(|frames| self.compare(stopped, frames));
        }
        self.next_ns = monotonic_ns() + BETWEEN_NS;
    }

    /// The threads with methods on their stacks at a suspension. Names and code are looked up after
    /// they resume: for that the runtime may need locks that a suspended thread holds.
    fn stop(&mut self, info: &ProfilerInfo) -> Vec<StoppedThread> {
        let Ok(suspended) = info.suspend_within(PATIENCE) else {
            self.count("refused", 1);
            return Vec::new();
        };
        let (mut all, stacks) = (Vec::new(), StackRanges::read());
        for thread in info.threads().unwrap_or_default() {
            match stopped(info, &suspended, thread, &stacks) {
                Ok(Some(one)) => all.push(one),
                Ok(None) => {}
                Err(why) => self.count(&why, 1),
            }
        }
        self.count("stops", 1);
        all
    }

    fn compare(&mut self, stopped: &StoppedThread, frames: &mut Frames) {
        let Frames { unwinder, map, .. } = frames;
        let (ending, _) = unwinder.walk(map, &stopped.sample, None, OnMissingWords::Guessed);
        let walked = &unwinder.walked;
        let is_certain = ending == Ending::Complete && !walked.iter().any(|walked| walked.marks.guessed);
        let ours = walked.iter().filter(|walked| walked.marks.method).map(|walked| walked.registers.ip);
        let ours: Vec<Method> = ours.filter_map(|ip| Method::at(ip, map, stopped.sample.time_ns)).collect();
        let theirs: Vec<Method> = stopped
            .by_runtime
            .iter()
            .map(|frame| Method { id: frame.function, ip: frame.address })
            .filter(|method| !is_hidden(&name(method.ip, map, u64::MAX)))
            .collect();
        let same = |ours: &[Method]| ours.iter().map(|method| method.id).eq(theirs.iter().map(|method| method.id));
        let verdict = match ours.as_slice() {
            ours if same(ours) => "equal",
            // A method that native code calls is on the stack before the runtime knows about it.
            [_, callers @ ..] if same(callers) => "entering",
            _ => "different",
        };
        self.count(&format!("{verdict} {}", if is_certain { "certain" } else { "guessed" }), 1);
        if verdict == "equal" {
            self.count("frames", ours.len() as u64);
            let pairs = ours.iter().zip(&theirs);
            self.count("addresses", pairs.filter(|(ours, theirs)| ours.ip == theirs.ip).count() as u64);
        }
        if verdict == "different" && is_certain && self.examples.len() < EXAMPLES {
            let words = |ips: &mut dyn Iterator<Item = usize>, map: &mut CodeMap| {
                ips.map(|ip| name(ip, map, stopped.sample.time_ns)).collect::<Vec<_>>().join(" < ")
            };
            let theirs = words(&mut theirs.iter().map(|method| method.ip), map);
            let ours = words(&mut walked.iter().map(|walked| walked.registers.ip), map);
            self.examples.push(format!("the runtime: {theirs}; the walker: {ours}"));
        }
    }

    /// Writes the results of all comparisons.
    pub(super) fn finish(&self) {
        let mut text = String::new();
        for (what, count) in &self.counts {
            let _ = writeln!(text, "{count} {what}");
        }
        for example in &self.examples {
            let _ = writeln!(text, "example {example}");
        }
        // The test fails if it finds no file.
        let _ = std::fs::write(&self.file, text);
    }
}

/// Whether the runtime's walk leaves out methods of this name, at least in some versions: code made
/// at run time, such as stubs for calls of native functions, and the runtime's own exception
/// handling.
fn is_hidden(name: &str) -> bool {
    name.starts_with("DynamicClass::") || name.starts_with("System.Runtime.EH::")
}

/// Returns the code that resumes at an address. For a method that was interrupted at its first
/// instruction, the byte before that belongs to no method.
fn resuming_code(ip: usize, map: &mut CodeMap, time_ns: u64) -> Place {
    match map.place_of_call(ip, time_ns) {
        Place::Stub | Place::Nowhere => map.place_at(ip, time_ns),
        found => found,
    }
}

/// The name of the code at an address.
fn name(ip: usize, map: &mut CodeMap, time_ns: u64) -> String {
    match resuming_code(ip, map, time_ns) {
        Place::Method(body) => map.name(&body).unwrap_or_else(|| "[gone]".to_owned()),
        Place::Native(library, _) => format!("{}+{:x}", library.name, ip - library.base),
        Place::Stub => "[stub]".to_owned(),
        Place::Nowhere => "[nowhere]".to_owned(),
    }
}

/// A suspended thread as both walks see it; `None` if no method is on its stack. The error is a
/// word that says why it can't be compared.
fn stopped(
    info: &ProfilerInfo,
    suspended: &Suspended<'_>,
    thread: ThreadId,
    stacks: &StackRanges,
) -> Result<Option<StoppedThread>, String> {
    let mut by_runtime = Vec::new();
    let walk = suspended.stack_of(thread, |frame| {
        by_runtime.push(frame);
        ControlFlow::Continue(())
    });
    match walk {
        Ok(StackWalk::NoManagedFrames) => return Ok(None),
        Ok(_) => {}
        Err(why) => return Err(format!("unwalked: {why}")),
    }
    let running = || "running".to_owned();
    let os_id = info.os_thread(thread).map_err(|error| format!("unnumbered: {error}"))?;
    let task = Task::open(os_id).ok_or_else(running)?;
    let schedule = task.schedule();
    let call = task.system_call().ok_or_else(running)?;
    let registers = Registers { ip: call.ip, sp: call.sp, bp: UNKNOWN_FRAME };
    let mut sample = RawSample { registers, os_id, time_ns: monotonic_ns(), ..RawSample::default() };
    copy_stack(&mut sample, stacks.around(call.sp).map_or(0, |stack| stack.end));
    // A thread that runs native code is not stopped.
    if task.schedule() != schedule { Err(running()) } else { Ok(Some(StoppedThread { by_runtime, sample })) }
}
